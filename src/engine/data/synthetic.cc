#include "engine/data/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "base/yaml_enum.h"

namespace portolan {
namespace {

constexpr NamedValue<Reuse> kReuseNames[] = {
    {"model", Reuse::kModel}, {"meta_2021", Reuse::kMeta2021}, {"meta_2022", Reuse::kMeta2022}};

// Share of the lookups of a batch that go to rows looked up once, 2 times, 3-4, 5-8, ..., over 32,768 times
// (facebookresearch/dlrm_datasets@6f46ba7, embedding_bag/2021/fbgemm_t856_bs65536.pt and
// 2022/fbgemm_t788_bs131072_0.pt: "Ratio of index distribution at different column sizes").
constexpr int kReuseBins = 17;
constexpr std::array<double, kReuseBins> kMeta2021Lookups = {0.069, 0.044, 0.068, 0.101, 0.121, 0.104,
                                                             0.073, 0.058, 0.052, 0.050, 0.049, 0.048,
                                                             0.048, 0.043, 0.031, 0.023, 0.019};
constexpr std::array<double, kReuseBins> kMeta2022Lookups = {0.027, 0.023, 0.040, 0.068, 0.105, 0.120,
                                                             0.099, 0.070, 0.059, 0.054, 0.040, 0.072,
                                                             0.064, 0.047, 0.021, 0.017, 0.076};

// splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
uint64_t NextBits(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t state = a ^ (b * 0xd6e8feb86659fd93ull + 0x2545f4914f6cdd1dull);
  return NextBits(&state);
}
double Unit(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }
// Sum of four uniforms, scaled to variance 1: near enough to normal, and a function without tables.
double Bell(uint64_t bits) {
  const double sum = static_cast<double>(bits & 0xffff) + static_cast<double>((bits >> 16) & 0xffff) +
                     static_cast<double>((bits >> 32) & 0xffff) + static_cast<double>(bits >> 48);
  return (sum / 65536 - 2) * std::sqrt(3.0);
}

constexpr uint64_t kTeacherSpace = 0x7ea0000000000000ull;

double SecretWeight(uint64_t seed, uint64_t feature, uint64_t row) {
  return Bell(Mix(seed ^ kTeacherSpace ^ (feature << 44), row));
}
double SecretVector(uint64_t seed, uint64_t feature, uint64_t row, uint64_t axis) {
  return Bell(Mix(seed ^ (kTeacherSpace + (axis + 1) * 0x0100000000000000ull) ^ (feature << 44), row));
}

}  // namespace

Result<SyntheticOptions> ReadSyntheticOptions(const YamlValue& data) {
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, data.Map());
  SyntheticOptions options;
  map.OneOf("type", {"synthetic"});
  options.seed = static_cast<uint64_t>(map.Integer("seed", {0, 9e15}, 1));
  options.reuse = ReadEnum(map, "reuse", kReuseNames, Reuse::kModel);
  options.samples = map.Integer("samples", {0, 1e15}, 0);
  options.base_rate = map.Number("base_rate", {0.001, 0.999}, 0.25);
  options.signal = map.Number("signal", {0, 100}, 1.5);
  PORTOLAN_RETURN_IF_ERROR(map.Finish());
  return options;
}

SyntheticReader::SyntheticReader(const BatchSchema& schema, const SyntheticOptions& options, DataSplit split,
                                 int64_t samples)
    : schema_(schema), options_(options), split_(split), samples_(samples) {
  for (size_t f = 0; f < schema.features.size(); ++f) {
    const BatchSchema::Feature& feature = schema.features[f];
    FeatureStream stream{feature.rows, feature.lookups, feature.zipf_exponent, 1, 0, {}};
    // Near the golden section of the rows, and coprime with them.
    stream.multiplier = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(feature.rows) * 0.6180339887));
    while (std::gcd(stream.multiplier, feature.rows) != 1) ++stream.multiplier;
    stream.shift = static_cast<int64_t>(Mix(options.seed, f) % static_cast<uint64_t>(feature.rows));
    if (options.reuse != Reuse::kModel) {
      const auto& lookups = options.reuse == Reuse::kMeta2021 ? kMeta2021Lookups : kMeta2022Lookups;
      // Rows of a bin ~ lookups / uses, uses = 1, then the middle of (2^(i-1), 2^i]. Hottest bin first.
      std::array<double, kReuseBins> rows{};
      for (int i = 0; i < kReuseBins; ++i) rows[i] = lookups[i] / (i == 0 ? 1.0 : 0.75 * std::pow(2.0, i));
      const double all_rows = std::accumulate(rows.begin(), rows.end(), 0.0);
      const double all_lookups = std::accumulate(lookups.begin(), lookups.end(), 0.0);
      int64_t first = 0;
      double cumulative = 0;
      for (int i = kReuseBins - 1; i >= 0 && first < feature.rows; --i) {
        const double share = rows[i] / all_rows * static_cast<double>(feature.rows);
        int64_t count = std::clamp<int64_t>(std::llround(share), 1, feature.rows - first);
        if (i == 0) count = feature.rows - first;
        cumulative += lookups[i] / all_lookups;
        stream.bins.push_back({cumulative, first, count});
        first += count;
      }
    }
    streams_.push_back(std::move(stream));
  }
  // The scale that gives the logit its deviation, measured on samples of a split of its own.
  constexpr int64_t kProbe = 512;
  double sum = 0, squares = 0;
  for (int64_t n = 0; n < kProbe; ++n) {
    const double logit = TeacherLogit(-1 - n);
    sum += logit;
    squares += logit * logit;
  }
  const double variance = squares / kProbe - sum / kProbe * (sum / kProbe);
  scale_ = variance > 0 ? options.signal / std::sqrt(variance) : 0;
}

SyntheticReader::~SyntheticReader() = default;

int64_t SyntheticReader::DrawRow(const FeatureStream& stream, uint64_t* state) const {
  const auto rows = static_cast<double>(stream.rows);
  int64_t rank = 0;
  if (!stream.bins.empty()) {
    const double share = Unit(NextBits(state)) * stream.bins.back().cumulative;
    const auto bin = std::lower_bound(stream.bins.begin(), stream.bins.end() - 1, share,
                                      [](const Bin& b, double s) { return b.cumulative < s; });
    rank = bin->first + static_cast<int64_t>(Unit(NextBits(state)) * static_cast<double>(bin->count));
  } else {
    const double u = Unit(NextBits(state));
    // The inverse of the continuous law P(x) ~ x^-s on [1, rows + 1).
    if (stream.exponent == 0) {
      rank = static_cast<int64_t>(u * rows);
    } else if (std::abs(stream.exponent - 1) < 1e-6) {
      rank = static_cast<int64_t>(std::exp(u * std::log(rows + 1))) - 1;
    } else {
      const double power = 1 - stream.exponent;
      rank = static_cast<int64_t>(std::pow(1 + u * (std::pow(rows + 1, power) - 1), 1 / power)) - 1;
    }
  }
  rank = std::clamp<int64_t>(rank, 0, stream.rows - 1);
  const auto product = static_cast<__uint128_t>(rank) * static_cast<__uint128_t>(stream.multiplier);
  return static_cast<int64_t>((product + static_cast<__uint128_t>(stream.shift)) %
                              static_cast<__uint128_t>(stream.rows));
}

double SyntheticReader::Draw(int64_t sample, std::vector<std::vector<int64_t>>* bags, float* dense,
                             float* label) const {
  uint64_t state = Mix(options_.seed * 0x9e3779b97f4a7c15ull + SplitKey(), static_cast<uint64_t>(sample));
  double logit = 0;
  for (int64_t d = 0; d < schema_.dense_width; ++d) {
    const double value = Bell(NextBits(&state));
    if (dense != nullptr) dense[d] = static_cast<float>(value);
    logit += value * SecretWeight(options_.seed, 0xfff, static_cast<uint64_t>(d));
  }
  double previous[2] = {0, 0};
  std::vector<int64_t> bag;
  for (size_t f = 0; f < streams_.size(); ++f) {
    const FeatureStream& stream = streams_[f];
    const double whole = std::floor(stream.lookups);
    const double rest = stream.lookups - whole;
    auto count = static_cast<int64_t>(whole);
    if (rest > 0 && Unit(NextBits(&state)) < rest) ++count;
    bag.clear();
    double weight = 0, vector[2] = {0, 0};
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = DrawRow(stream, &state);
      bag.push_back(row);
      weight += SecretWeight(options_.seed, f, static_cast<uint64_t>(row));
      for (uint64_t axis = 0; axis < 2; ++axis) {
        vector[axis] += SecretVector(options_.seed, f, static_cast<uint64_t>(row), axis);
      }
    }
    if (count > 0) {
      const double norm = std::sqrt(static_cast<double>(count));  // keeps the deviation of long bags
      logit += weight / norm;
      for (double& axis : vector) axis /= norm;
    }
    if (f > 0) logit += 0.5 * (vector[0] * previous[0] + vector[1] * previous[1]);
    previous[0] = vector[0];
    previous[1] = vector[1];
    if (bags != nullptr) (*bags)[f].insert((*bags)[f].end(), bag.begin(), bag.end());
    if (bags != nullptr) (*bags)[f].push_back(-1);  // end of the bag
  }
  const double offset = std::log(options_.base_rate / (1 - options_.base_rate));
  logit = scale_ * logit + offset;
  if (label != nullptr) *label = Unit(NextBits(&state)) < 1 / (1 + std::exp(-logit)) ? 1.0f : 0.0f;
  return logit;
}

double SyntheticReader::TeacherLogit(int64_t sample) const { return Draw(sample, nullptr, nullptr, nullptr); }

Result<ReadOutcome> SyntheticReader::Next(int64_t size, Batch* batch) {
  *batch = {};
  const int64_t count = samples_ > 0 ? std::min(size, samples_ - next_) : size;
  if (count <= 0) return ReadOutcome::kEnd;
  batch->size = count;
  batch->dense.resize(static_cast<size_t>(count * schema_.dense_width));
  batch->labels.resize(static_cast<size_t>(count));
  std::vector<std::vector<int64_t>> bags(streams_.size());
  for (int64_t b = 0; b < count; ++b) {
    Draw(next_ + b, &bags, batch->dense.data() + b * schema_.dense_width, &batch->labels[b]);
  }
  batch->offsets = {0};
  batch->offsets.reserve(streams_.size() * static_cast<size_t>(count) + 1);
  for (const std::vector<int64_t>& feature : bags) {
    for (const int64_t id : feature) {
      if (id >= 0) {
        batch->ids.push_back(id);
      } else {
        batch->offsets.push_back(static_cast<int64_t>(batch->ids.size()));
      }
    }
  }
  next_ += count;
  return ReadOutcome::kBatch;
}

std::string SyntheticReader::Position() const { return std::to_string(next_); }

Status SyntheticReader::Restore(const std::string& position) {
  long long next = 0;
  if (!ParseInt64(position, &next) || next < 0) {
    return MakeError(ErrorCode::kInvalidValue, "'" + position.substr(0, 40) + "' is not a position of synthetic data");
  }
  next_ = next;
  return {};
}

}  // namespace portolan
