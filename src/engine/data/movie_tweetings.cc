#include "engine/data/movie_tweetings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "base/text.h"
#include "engine/data/line_source.h"
#include "engine/data/shown_field.h"

namespace portolan {
namespace {

enum Column { kUser = 1, kItem, kRating, kTimestamp, kGenres };
constexpr const char* kFeatureNames[] = {"user", "item", "genres"};
constexpr const char* kDenseNames[] = {"hour", "weekday", "year"};
constexpr double kSecondsPerDay = 86400;

// Ids in the order of appearance, or those of a vocabulary.
class Vocabulary {
 public:
  Status Load(const std::string& path) {
    if (path.empty()) return {};
    fixed_ = true;
    PORTOLAN_ASSIGN_OR_RETURN(const SplitParts parts, SplitTextFiles({path}, 0));
    PORTOLAN_ASSIGN_OR_RETURN(LineSource lines, LineSource::Open(parts.train));
    while (true) {
      std::string_view line;
      PORTOLAN_ASSIGN_OR_RETURN(const bool more, lines.Peek(&line));
      if (!more) return {};
      if (lines.overlong()) return lines.ErrorAt(0, ErrorCode::kParse, "", "a key of more than 1 MiB");
      if (!ids_.emplace(line, std::ssize(ids_)).second) {
        return lines.ErrorAt(0, ErrorCode::kParse, "", fmt::format("'{}' stands twice", ShownField(line)));
      }
      lines.Pass();
    }
  }
  // -1: not in the vocabulary.
  int64_t Id(std::string_view key) {
    const auto found = ids_.find(std::string(key));
    if (found != ids_.end()) return found->second;
    if (fixed_) return -1;
    const int64_t id = std::ssize(ids_);
    ids_.emplace(key, id);
    return id;
  }
  int64_t size() const { return std::ssize(ids_); }

 private:
  std::unordered_map<std::string, int64_t> ids_;
  bool fixed_ = false;
};

// The fields of a line between "::"; a title may hold "::" itself, so that the last field is cut from the right.
bool SplitFields(std::string_view line, size_t count, std::vector<std::string_view>* fields) {
  fields->clear();
  while (fields->size() + 1 < count) {
    const size_t end = line.find("::");
    if (end == std::string_view::npos) return false;
    fields->push_back(line.substr(0, end));
    line.remove_prefix(end + 2);
  }
  fields->push_back(line);
  return true;
}

// The key of a movie: its IMDb number without leading zeros, which some releases write and some do not.
std::string_view ItemKey(std::string_view field) {
  field.remove_prefix(std::min(field.find_first_not_of('0'), field.empty() ? 0 : field.size() - 1));
  return field;
}

struct Movie {
  std::vector<int64_t> genres;
  float year = 0;
};

struct Rating {
  int64_t time = 0;
  std::array<int64_t, 2> ids{};  // user, item
  float label = 0;
  const Movie* movie = nullptr;
};

class MovieTweetings : public SampleSource {
 public:
  explicit MovieTweetings(PolicyBook policies) : SampleSource(std::move(policies)) {}

  Status Load(const MovieTweetingsOptions& options, const BatchSchema& schema) {
    options_ = options;
    PORTOLAN_RETURN_IF_ERROR(Describe(schema));
    PORTOLAN_RETURN_IF_ERROR(vocabularies_[0].Load(options.user_vocabulary));
    PORTOLAN_RETURN_IF_ERROR(vocabularies_[1].Load(options.item_vocabulary));
    if (!options.movies.empty()) PORTOLAN_RETURN_IF_ERROR(LoadMovies());
    PORTOLAN_ASSIGN_OR_RETURN(SplitParts parts, SplitTextFiles(options.ratings, 0));
    PORTOLAN_ASSIGN_OR_RETURN(LineSource lines, LineSource::Open(std::move(parts.train)));
    while (true) {
      std::string_view line;
      PORTOLAN_ASSIGN_OR_RETURN(const bool more, lines.Peek(&line));
      if (!more) break;
      Rating rating;
      PORTOLAN_ASSIGN_OR_RETURN(const RowOutcome outcome, ParseRating(lines, line, &rating));
      if (outcome == RowOutcome::kKept) {
        ratings_.push_back(rating);
      } else {
        policies_.CountSkipped();
      }
      lines.Pass();
    }
    std::stable_sort(ratings_.begin(), ratings_.end(),
                     [](const Rating& a, const Rating& b) { return a.time < b.time; });
    const int64_t total = std::ssize(ratings_);
    const int64_t eval = std::llround(options.eval_fraction * static_cast<double>(total));
    begin_ = options.split == DataSplit::kEval ? total - eval : 0;
    end_ = options.split == DataSplit::kEval ? total : total - eval;
    next_ = begin_;
    return {};
  }

  Bags bags() const override { return Bags::kVariable; }
  SourcePosition Position() const override { return {0, next_}; }
  SourcePosition Start() const override { return {0, begin_}; }
  Status Seek(SourcePosition position) override {
    if (position.part != 0 || position.offset < begin_ || position.offset > end_) {
      return MakeError(ErrorCode::kInvalidValue, "the position lies outside the data files");
    }
    next_ = position.offset;
    return {};
  }

  Status Read(int64_t count, SampleRows* rows) override {
    for (const int64_t stop = std::min(end_, next_ + count); next_ < stop; ++next_) {
      const Rating& rating = ratings_[next_];
      rows->Reserve(1);
      rows->labels[rows->size] = rating.label;
      for (size_t i = 0; i < dense_.size(); ++i) {
        rows->dense[rows->size * rows->dense_width + i] = DenseValue(dense_[i], rating);
      }
      for (size_t f = 0; f < features_.size(); ++f) {
        if (features_[f] == kGenres) {
          if (rating.movie != nullptr) {
            rows->ids.insert(rows->ids.end(), rating.movie->genres.begin(), rating.movie->genres.end());
          }
        } else {
          rows->ids.push_back(rating.ids[features_[f] - kUser]);
        }
        rows->ends[rows->size * rows->features + f] = std::ssize(rows->ids);
      }
      ++rows->size;
      policies_.CountSample();
    }
    return {};
  }

 private:
  Status Describe(const BatchSchema& schema) {
    for (const BatchSchema::Feature& feature : schema.features) {
      const auto* found = std::find(std::begin(kFeatureNames), std::end(kFeatureNames), feature.name);
      const int column = found == std::begin(kFeatureNames) ? kUser : found == kFeatureNames + 1 ? kItem : kGenres;
      if (found == std::end(kFeatureNames) || std::count(features_.begin(), features_.end(), column) > 0) {
        return MakeError(
            ErrorCode::kInvalidValue,
            fmt::format("MovieTweetings has no feature '{}', or it stands twice; there are: user, item, genres",
                        feature.name));
      }
      features_.push_back(column);
      const int which = column == kGenres ? 2 : column - kUser;
      maps_[which] = {options_.ids, feature.rows};
      used_[which] = true;
    }
    for (const std::string& name : options_.dense) {
      const auto* found = std::find(std::begin(kDenseNames), std::end(kDenseNames), name);
      if (found == std::end(kDenseNames)) {
        return MakeError(ErrorCode::kInvalidValue,
                         fmt::format("MovieTweetings has no dense value '{}'; there are: hour, weekday, year", name));
      }
      dense_.push_back(static_cast<int>(found - kDenseNames));
    }
    if (std::ssize(dense_) != schema.dense_width) {
      return MakeError(ErrorCode::kInvalidValue,
                       fmt::format("{} dense values are named (of hour, weekday, year), the model takes {}",
                                   dense_.size(), schema.dense_width));
    }
    const bool needs_movies = used_[2] || std::count(dense_.begin(), dense_.end(), 2) > 0;
    if (needs_movies && options_.movies.empty()) {
      return MakeError(ErrorCode::kMissingField, "genres and year stand in movies.dat: name it with 'movies'");
    }
    return {};
  }

  Result<RowOutcome> Judge(const LineSource& lines, int column, FieldProblem problem, std::string_view field,
                           const std::string& accepted) {
    if (const std::optional<RowOutcome> judged = policies_.Judge(column, problem)) return *judged;
    return lines.ErrorAt(0, ErrorCode::kParse, column == PolicyBook::kLine ? "" : policies_.Name(column),
                         ProblemText(problem, field, accepted));
  }

  static int PolicyColumn(int which) { return which == 2 ? kGenres : kUser + which; }

  // A dense id against the rows of feature `which` (0 user, 1 item, 2 genres).
  Result<RowOutcome> Place(const LineSource& lines, int which, std::string_view key, int64_t* id) {
    if (!used_[which]) return RowOutcome::kKept;
    const IdMap& map = maps_[which];
    const int64_t dense = vocabularies_[which].Id(key);
    if (dense < 0) {
      *id = 0;
      return Judge(lines, PolicyColumn(which), FieldProblem::kBadValue, key, "a key of the vocabulary");
    }
    if (map.Map(dense, id)) return RowOutcome::kKept;
    *id = map.rows() - 1;
    return Judge(lines, PolicyColumn(which), FieldProblem::kOutOfRange, fmt::format("{} (id {})", key, dense),
                 fmt::format("ids 0 to {} (rows - 1); the files hold more than {}", map.rows() - 1, map.rows()));
  }

  Result<RowOutcome> ParseRating(const LineSource& lines, std::string_view line, Rating* rating) {
    if (lines.overlong() || !SplitFields(line, 4, &fields_)) {
      // There is no nearest sample of half a line: clamp is an error here.
      if (policies_.Action(PolicyBook::kLine, FieldProblem::kBadLine) != PolicyAction::kSkip) {
        return lines.ErrorAt(0, ErrorCode::kParse, "",
                             ProblemText(FieldProblem::kBadLine, line, "user::item::rating::timestamp"));
      }
      policies_.Meet(PolicyBook::kLine, FieldProblem::kBadLine);
      return RowOutcome::kSkipped;
    }
    double score = 0;
    if (!ParseDouble(fields_[2], &score) || !std::isfinite(score)) {
      const FieldProblem problem = fields_[2].empty() ? FieldProblem::kMissing : FieldProblem::kBadValue;
      PORTOLAN_ASSIGN_OR_RETURN(const RowOutcome outcome, Judge(lines, kRating, problem, fields_[2], "a number"));
      if (outcome == RowOutcome::kSkipped) return outcome;
      score = 0;
    }
    rating->label = score >= options_.threshold ? 1.0F : 0.0F;
    long long time = 0;
    if (!ParseInt64(fields_[3], &time)) {
      const FieldProblem problem = fields_[3].empty() ? FieldProblem::kMissing : FieldProblem::kBadValue;
      PORTOLAN_ASSIGN_OR_RETURN(const RowOutcome outcome,
                                Judge(lines, kTimestamp, problem, fields_[3], "Unix seconds"));
      if (outcome == RowOutcome::kSkipped) return outcome;
      time = 0;
    }
    if (time < 0) {
      PORTOLAN_ASSIGN_OR_RETURN(const RowOutcome outcome,
                                Judge(lines, kTimestamp, FieldProblem::kNegative, fields_[3], "Unix seconds"));
      if (outcome == RowOutcome::kSkipped) return outcome;
      time = 0;
    }
    rating->time = time;
    const std::string_view keys[] = {fields_[0], ItemKey(fields_[1])};
    for (int which = 0; which < 2; ++which) {
      if (keys[which].empty()) {
        PORTOLAN_ASSIGN_OR_RETURN(const RowOutcome outcome,
                                  Judge(lines, PolicyColumn(which), FieldProblem::kMissing, {}, "a key"));
        if (outcome == RowOutcome::kSkipped) return outcome;
        continue;
      }
      PORTOLAN_ASSIGN_OR_RETURN(const RowOutcome outcome, Place(lines, which, keys[which], &rating->ids[which]));
      if (outcome == RowOutcome::kSkipped) return outcome;
    }
    const auto movie = movies_.find(std::string(keys[1]));
    if (movie != movies_.end()) rating->movie = &movie->second;
    if (movie == movies_.end() && !options_.movies.empty()) {
      return Judge(lines, kGenres, FieldProblem::kMissing, keys[1], "a movie of movies.dat");
    }
    return RowOutcome::kKept;
  }

  Status LoadMovies() {
    PORTOLAN_ASSIGN_OR_RETURN(SplitParts parts, SplitTextFiles({options_.movies}, 0));
    PORTOLAN_ASSIGN_OR_RETURN(LineSource lines, LineSource::Open(std::move(parts.train)));
    while (true) {
      std::string_view line;
      PORTOLAN_ASSIGN_OR_RETURN(const bool more, lines.Peek(&line));
      if (!more) return {};
      const size_t first = line.find("::");
      const size_t last = line.rfind("::");
      if (lines.overlong() || first == std::string_view::npos || first == last) {
        if (policies_.Action(PolicyBook::kLine, FieldProblem::kBadLine) != PolicyAction::kSkip) {
          return lines.ErrorAt(0, ErrorCode::kParse, "",
                               ProblemText(FieldProblem::kBadLine, line, "item::title (year)::genre|genre"));
        }
        policies_.Meet(PolicyBook::kLine, FieldProblem::kBadLine);
        lines.Pass();
        continue;
      }
      Movie& movie = movies_[std::string(ItemKey(line.substr(0, first)))];
      movie = {};
      const std::string_view title = line.substr(first + 2, last - first - 2);
      const size_t year = title.rfind('(');
      double number = 0;
      if (year != std::string_view::npos && title.ends_with(')') &&
          ParseDouble(title.substr(year + 1, title.size() - year - 2), &number) && number >= 1800 && number <= 2200) {
        movie.year = static_cast<float>((number - 1900) / 100);
      }
      for (const std::string& genre : Split(line.substr(last + 2), '|')) {
        if (genre.empty() || !used_[2]) continue;
        int64_t id = 0;
        PORTOLAN_ASSIGN_OR_RETURN(const RowOutcome outcome, Place(lines, 2, genre, &id));
        if (outcome == RowOutcome::kKept) movie.genres.push_back(id);
      }
      lines.Pass();
    }
  }

  static float DenseValue(int which, const Rating& rating) {
    const double seconds = static_cast<double>(rating.time);
    if (which == 0) return static_cast<float>(std::fmod(seconds, kSecondsPerDay) / kSecondsPerDay);
    // 1 January 1970 was a Thursday, day 4 counted from Sunday.
    if (which == 1) return static_cast<float>(std::fmod(std::floor(seconds / kSecondsPerDay) + 4, 7.0) / 7);
    return rating.movie == nullptr ? 0.0F : rating.movie->year;
  }

  MovieTweetingsOptions options_;
  std::vector<int> features_;  // kUser, kItem or kGenres, in the model's order
  std::vector<int> dense_;     // index into kDenseNames
  std::array<bool, 3> used_{};
  std::array<IdMap, 3> maps_{IdMap(IdRule::kExact, 1), IdMap(IdRule::kExact, 1), IdMap(IdRule::kExact, 1)};
  std::array<Vocabulary, 3> vocabularies_;  // user, item, genres
  std::unordered_map<std::string, Movie> movies_;
  std::vector<Rating> ratings_;  // in the order of time
  std::vector<std::string_view> fields_;
  int64_t begin_ = 0, end_ = 0, next_ = 0;  // of the split
};

}  // namespace

PolicyBook MovieTweetingsPolicies() {
  PolicyBook policies;
  for (const char* name : {"user", "item", "rating", "timestamp", "genres"}) policies.Add(name);
  return policies;
}

Result<std::unique_ptr<SampleSource>> OpenMovieTweetings(const MovieTweetingsOptions& options,
                                                         const BatchSchema& schema, PolicyBook policies) {
  auto source = std::make_unique<MovieTweetings>(std::move(policies));
  PORTOLAN_RETURN_IF_ERROR(source->Load(options, schema));
  return source;
}

}  // namespace portolan
