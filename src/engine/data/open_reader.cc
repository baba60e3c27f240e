#include "engine/data/open_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "base/text.h"
#include "base/yaml_enum.h"
#include "engine/data/criteo_tsv.h"
#include "engine/data/csv_source.h"
#include "engine/data/fixed_rows.h"
#include "engine/data/prefetch_reader.h"
#include "engine/data/sample_reader.h"

namespace portolan {
namespace {

enum class Format { kCriteoTsv, kCsv, kNpy, kDlrmBinary, kHugeCtrRaw, kMovieTweetings };
constexpr NamedValue<Format> kFormats[] = {{"criteo_tsv", Format::kCriteoTsv},
                                           {"csv", Format::kCsv},
                                           {"npy", Format::kNpy},
                                           {"dlrm_binary", Format::kDlrmBinary},
                                           {"hugectr_raw", Format::kHugeCtrRaw},
                                           {"movie_tweetings", Format::kMovieTweetings}};
constexpr NamedValue<ElementType> kLabelTypes[] = {{"int32", ElementType::kInt32}, {"float32", ElementType::kFloat32}};

// Batches read ahead unless the section says otherwise: the training loop has a reading thread of its own.
constexpr int64_t kPrefetch = 0;
// A window stays in memory whole; 2^28 samples of Criteo take 70 GB.
constexpr double kMaxWindow = 1 << 28;

// Keys that leave the order of the samples alone, or that stand in the identity by their files' names.
constexpr std::string_view kOutsideIdentity[] = {"epochs", "prefetch",        "files",           "eval_files",
                                                 "movies", "user_vocabulary", "item_vocabulary", "description"};

// A value as one text, the same for the same value.
std::string Flat(const YamlValue& value) {
  std::string text;
  if (const auto map = value.Map()) {
    YamlMap entries(value);
    for (const auto& [key, entry] : entries.Entries()) {
      if (std::find(std::begin(kOutsideIdentity), std::end(kOutsideIdentity), key) != std::end(kOutsideIdentity))
        continue;
      text += key + "=" + Flat(entry) + ";";
    }
  } else if (const auto elements = value.Elements()) {
    for (const YamlValue& element : *elements) text += Flat(element) + ",";
  } else if (const auto scalar = value.String()) {
    text = *scalar;
  }
  return text;
}

// The section while it is read: what all formats share, and the formats' own keys.
class Section {
 public:
  Section(const YamlMap& data, const BatchSchema& schema, DataSplit split)
      : map_(data.value()), schema_(schema), split_(split) {}

  Result<std::unique_ptr<Reader>> Open() {
    // The format decides which keys there are; without one nothing else is worth saying.
    const std::vector<std::string> names = [] {
      std::vector<std::string> all;
      for (const auto& row : kFormats) all.emplace_back(row.name);
      return all;
    }();
    const std::string name = map_.OneOf("format", names);
    if (!map_.ok()) return tl::make_unexpected(map_.Finish().error());
    fraction_ = map_.Number("eval_fraction", {0, 0.999}, 0);
    if (fraction_ > 0 && map_.Has("eval_files")) {
      map_.Fail(map_.Find("eval_files")
                    ->MakeError(ErrorCode::kInvalidValue, "eval_fraction and eval_files exclude each other"));
    }
    ReadOrder();
    const int64_t ahead = map_.Integer("prefetch", {0, 1024}, kPrefetch);
    for (const auto& row : kFormats) {
      if (name == row.name) ReadFormat(row.value);
    }
    PORTOLAN_RETURN_IF_ERROR(map_.Finish());
    PORTOLAN_ASSIGN_OR_RETURN(std::unique_ptr<SampleSource> source, open_());
    auto reader = std::make_unique<SampleReader>(std::move(source), schema_, order_, name + Identity());
    if (ahead == 0) return reader;
    return std::make_unique<PrefetchReader>(std::move(reader), ahead);
  }

 private:
  bool eval() const { return split_ == DataSplit::kEval; }

  void ReadOrder() {
    SampleOrder order;
    map_.Visit("shuffle", [&](const YamlValue& value) -> Status {
      PORTOLAN_ASSIGN_OR_RETURN(YamlMap shuffle, value.Map());
      order.shuffle_window = shuffle.Integer("window", {1, kMaxWindow});
      order.seed = static_cast<uint64_t>(shuffle.Integer("seed", {0, 9e15}, 0));
      return shuffle.Finish();
    });
    order.epochs = map_.Integer("epochs", {1, 1e9}, 1);
    if (!eval()) order_ = order;
  }

  std::string Path(const YamlValue& value, const std::string& written) {
    if (written.empty()) map_.Fail(value.MakeError(ErrorCode::kInvalidValue, "is no file name"));
    identity_ += "|" + std::filesystem::path(written).filename().string();
    const std::filesystem::path folder = std::filesystem::path(value.file()).parent_path();
    return (folder / written).string();
  }

  std::string OptionalPath(const std::string& key) {
    const std::optional<YamlValue> value = map_.Find(key);
    if (!value) return "";
    const std::string written = map_.String(key);
    return written.empty() ? "" : Path(*value, written);
  }

  // The entries of the split's list of files. Both lists are read, so that both keys are known.
  std::vector<YamlValue> FileEntries() {
    const std::vector<YamlValue> train = map_.Elements("files");
    const std::vector<YamlValue> held_out = map_.Elements("eval_files");
    if (train.empty()) {
      map_.Fail(map_.value().MakeError(ErrorCode::kMissingField, "needs 'files', a list of one file or more"));
    }
    if (!eval()) return train;
    if (held_out.empty() && fraction_ <= 0) {
      map_.Fail(map_.value().MakeError(ErrorCode::kMissingField,
                                       "has no eval split: it needs 'eval_files' or 'eval_fraction'"));
    }
    return held_out.empty() ? train : held_out;
  }

  std::vector<std::string> Files() {
    std::vector<std::string> files;
    for (const YamlValue& entry : FileEntries()) {
      const Result<std::string> written = entry.String();
      if (!written) {
        map_.Fail(written.error());
      } else {
        files.push_back(Path(entry, *written));
      }
    }
    return files;
  }

  // What of `files` belongs to the split.
  Result<std::vector<FilePart>> TextParts(const std::vector<std::string>& files) const {
    PORTOLAN_ASSIGN_OR_RETURN(SplitParts parts, SplitTextFiles(files, fraction_));
    return std::move(eval() && fraction_ > 0 ? parts.eval : parts.train);
  }

  void ReadFormat(Format format) {
    switch (format) {
      case Format::kCriteoTsv:
        return ReadCriteo();
      case Format::kCsv:
        return ReadCsv();
      case Format::kMovieTweetings:
        return ReadMovieTweetings();
      case Format::kNpy:
      case Format::kDlrmBinary:
      case Format::kHugeCtrRaw:
        return ReadFixed(format);
    }
  }

  void ReadPolicies(PolicyBook* policies, const std::vector<int>& labels) { policies->Read(&map_, labels); }

  void ReadCriteo() {
    CriteoOptions options;
    options.transform = ReadEnum(map_, "transform", kDenseTransforms, DenseTransform::kLog1p);
    options.ids = ReadEnum(map_, "ids", kIdRules, IdRule::kModulo);
    PolicyBook policies = CriteoPolicies();
    ReadPolicies(&policies, {1});
    open_ = [this, options, policies, files = Files()]() mutable -> Result<std::unique_ptr<SampleSource>> {
      PORTOLAN_ASSIGN_OR_RETURN(options.parts, TextParts(files));
      return OpenCriteoTsv(options, schema_, policies);
    };
  }

  void ReadCsv() {
    const std::vector<std::string> files = Files();
    CsvDescription description;
    if (map_.Has("description")) {
      const YamlValue written = *map_.Find("description");
      Result<YamlValue> document = YamlValue::Load(Path(written, map_.String("description")));
      Result<YamlMap> map = document ? document->Map() : tl::make_unexpected(document.error());
      if (!map) return map_.Fail(map.error());
      description = CsvDescription::Read(&*map, schema_);
      const Status read = map->Finish();
      if (!read) return map_.Fail(read.error());
    } else {
      description = CsvDescription::Read(&map_, schema_);
    }
    PolicyBook policies = CsvPolicies(description);
    std::vector<int> labels;
    int column = PolicyBook::kLine;
    for (const CsvColumn& described : description.columns) {
      if (described.kind == ColumnKind::kIgnored) continue;
      ++column;
      if (described.kind == ColumnKind::kLabel) labels.push_back(column);
    }
    ReadPolicies(&policies, labels);
    open_ = [this, description, policies, files]() -> Result<std::unique_ptr<SampleSource>> {
      PORTOLAN_ASSIGN_OR_RETURN(std::vector<FilePart> parts, TextParts(files));
      return OpenCsv(std::move(parts), description, schema_, policies);
    };
  }

  void ReadMovieTweetings() {
    MovieTweetingsOptions options;
    options.ratings = Files();
    options.movies = OptionalPath("movies");
    options.user_vocabulary = OptionalPath("user_vocabulary");
    options.item_vocabulary = OptionalPath("item_vocabulary");
    options.threshold = map_.Number("threshold", {}, options.threshold);
    for (const YamlValue& value : map_.Elements("dense")) {
      const Result<std::string> name = value.String();
      if (name) {
        options.dense.push_back(*name);
      } else {
        map_.Fail(name.error());
      }
    }
    options.ids = ReadEnum(map_, "ids", kIdRules, IdRule::kExact);
    options.eval_fraction = fraction_;
    options.split = eval() && fraction_ > 0 ? DataSplit::kEval : DataSplit::kTrain;
    PolicyBook policies = MovieTweetingsPolicies();
    ReadPolicies(&policies, {3});
    if (map_.Has("eval_files") && options.user_vocabulary.empty()) {
      map_.Fail(
          map_.Find("eval_files")
              ->MakeError(
                  ErrorCode::kInvalidValue,
                  "ids by first appearance would differ between the splits: give the vocabularies, or eval_fraction"));
    }
    open_ = [this, options, policies] { return OpenMovieTweetings(options, schema_, policies); };
  }

  void ReadFixed(Format format) {
    FixedOptions options;
    const bool dlrm = format == Format::kDlrmBinary;
    options.transform =
        ReadEnum(map_, "transform", kDenseTransforms, dlrm ? DenseTransform::kLog1p : DenseTransform::kNone);
    options.ids = ReadEnum(map_, "ids", kIdRules, dlrm ? IdRule::kModulo : IdRule::kExact);
    PolicyBook policies = FixedRowPolicies(schema_);
    ReadPolicies(&policies, {1});
    std::function<Result<FixedLayout>()> layout;
    if (format == Format::kNpy) {
      layout = [this, days = Days()] { return NpyLayout(days, schema_); };
    } else if (dlrm) {
      layout = [this, files = Files()] { return DlrmBinaryLayout(files, schema_); };
    } else {
      const ElementType label = ReadEnum(map_, "label_type", kLabelTypes, ElementType::kFloat32);
      layout = [this, files = Files(), label, hotness = Hotness()] {
        return HugeCtrRawLayout(files, schema_, label, hotness);
      };
    }
    open_ = [this, options, policies, layout]() -> Result<std::unique_ptr<SampleSource>> {
      PORTOLAN_ASSIGN_OR_RETURN(FixedLayout train, layout());
      if (fraction_ > 0) {
        FixedLayout rest = SplitLayout(&train, fraction_);
        if (eval()) train = std::move(rest);
      }
      return OpenFixedRows(std::move(train), options, schema_, policies);
    };
  }

  std::vector<NpyDay> Days() {
    std::vector<NpyDay> days;
    for (const YamlValue& entry : FileEntries()) {
      Result<YamlMap> map = entry.Map();
      if (!map) {
        map_.Fail(map.error());
        break;
      }
      NpyDay day;
      day.labels = map->String("labels");
      day.dense = schema_.dense_width > 0 ? map->String("dense") : map->String("dense", "");
      day.sparse = map->String("sparse");
      const Status read = map->Finish();
      if (!read) {
        map_.Fail(read.error());
        break;
      }
      for (std::string* path : {&day.labels, &day.dense, &day.sparse}) {
        if (!path->empty()) *path = Path(entry, *path);
      }
      days.push_back(day);
    }
    return days;
  }

  // Ids a sample of each feature: the list `hotness`, else the model's lookups.
  std::vector<int64_t> Hotness() {
    constexpr double kMaxHotness = 1 << 20;
    std::vector<int64_t> hotness;
    for (const YamlValue& value : map_.Elements("hotness")) {
      const Result<int64_t> width = value.Integer({0, kMaxHotness});
      if (!width) {
        map_.Fail(width.error());
        return {};
      }
      hotness.push_back(*width);
    }
    if (map_.Has("hotness") && hotness.size() != schema_.features.size()) {
      map_.Fail(map_.Find("hotness")->MakeError(
          ErrorCode::kInvalidValue,
          fmt::format("has {} numbers, the model {} features", hotness.size(), schema_.features.size())));
    }
    if (map_.Has("hotness")) return hotness;
    for (const BatchSchema::Feature& feature : schema_.features) {
      if (!(feature.lookups >= 0 && feature.lookups <= kMaxHotness) || feature.lookups != std::floor(feature.lookups)) {
        map_.Fail(
            map_.value().MakeError(ErrorCode::kMissingField,
                                   fmt::format("needs 'hotness': feature '{}' has {} lookups a sample, no whole number",
                                               feature.name, feature.lookups)));
        break;
      }
      hotness.push_back(static_cast<int64_t>(feature.lookups));
    }
    return hotness;
  }

  // Everything that decides which samples come in which order, as written: the section without what may change on a
  // resume, and the files by name, wherever they lie now.
  std::string Identity() const {
    return fmt::format("{}|{}|{}", identity_, Flat(map_.value()), eval() ? "eval" : "train");
  }

  YamlMap map_;
  const BatchSchema& schema_;
  DataSplit split_;
  double fraction_ = 0;
  SampleOrder order_;
  std::string identity_;
  std::function<Result<std::unique_ptr<SampleSource>>()> open_;
};

}  // namespace

Result<std::unique_ptr<Reader>> OpenReader(const YamlMap& data, const BatchSchema& schema, DataSplit split) {
  for (const BatchSchema::Feature& feature : schema.features) {
    if (feature.rows < 1) {
      return MakeError(ErrorCode::kInvalidValue,
                       fmt::format("feature '{}' has {} rows; must be at least 1", feature.name, feature.rows));
    }
  }
  return Section(data, schema, split).Open();
}

Result<bool> HasEvalSplit(const YamlMap& data) {
  YamlMap map(data.value());
  const bool has = !map.Elements("eval_files").empty() || map.Number("eval_fraction", {0, 0.999}, 0) > 0;
  if (!map.ok()) return tl::make_unexpected(map.Finish().error());
  return has;
}

}  // namespace portolan
