#include "loop/measure_embeddings.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "hw/host.h"
#include "kernels/embedding/embedding.h"

namespace portolan {
namespace {

// Lookups of one table: `distinct` random rows of `rows`, each `repeats` times, in random order.
std::vector<int64_t> DrawIds(int64_t lookups, int64_t repeats, int64_t rows, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> ids(static_cast<size_t>(lookups));
  const int64_t distinct = std::max<int64_t>(lookups / repeats, 1);
  for (int64_t i = 0; i < lookups; ++i) {
    ids[static_cast<size_t>(i)] = i < distinct ? static_cast<int64_t>(random() % static_cast<uint64_t>(rows))
                                               : ids[static_cast<size_t>(i % distinct)];
  }
  std::shuffle(ids.begin(), ids.end(), random);
  return ids;
}

// The same lookups in a table that needs one digit more.
void MeasureSort(const Pool& rows, float* gradients, Pool* workspace, Sweeper* sweeper) {
  constexpr int64_t kLookups = 65536;
  std::vector<int64_t> ids = DrawIds(kLookups, 1, 2048, 1), offsets(kLookups + 1);
  for (int64_t b = 0; b <= kLookups; ++b) offsets[static_cast<size_t>(b)] = b;
  const auto seconds = [&](int64_t row_count) {
    const kernels::EmbeddingTable table{rows.data(), nullptr, row_count, 4, kernels::RowFormat::kFp32};
    const kernels::EmbeddingFeature feature{0, kernels::BagPooling::kSum, gradients, 4};
    const kernels::EmbeddingBags bags{&table, 1, &feature, 1, kLookups, offsets.data(), ids.data(), nullptr};
    kernels::RowUpdate update;
    return sweeper->watch().Median([&] { kernels::cpu::EmbeddingBackward(bags, update, workspace->data()); });
  };
  const double one = seconds(2048), three = seconds(int64_t{1} << 33);
  sweeper->result().sort_pass_s = std::max((three - one) / 2 / static_cast<double>(kLookups), 1e-11);
}

// A feature's call of its own on a small batch: start, dealing, barrier.
void MeasureCall(const Pool& rows, float* pooled, Sweeper* sweeper) {
  constexpr int64_t kFew = 128;
  constexpr int32_t kDim = 16;
  const std::vector<int64_t> ids = DrawIds(kFew, 1, 1024, 1);
  std::vector<int64_t> offsets(kFew + 1);
  for (int64_t b = 0; b <= kFew; ++b) offsets[static_cast<size_t>(b)] = b;
  const kernels::EmbeddingTable table{rows.data(), nullptr, 1024, kDim, kernels::RowFormat::kFp32};
  const kernels::EmbeddingFeature feature{0, kernels::BagPooling::kSum, pooled, kDim};
  const kernels::EmbeddingBags bags{&table, 1, &feature, 1, kFew, offsets.data(), ids.data(), nullptr};
  Calibration& result = sweeper->result();
  const double seconds = sweeper->watch().Median([&] { kernels::cpu::EmbeddingForward(bags); });
  const double lookups = static_cast<double>(kFew) * result.grids["embedding_forward.fp32.near"].At({kDim, 1});
  result.lookup_call_s = std::max(seconds - lookups, result.fork_s);
}

constexpr int32_t kProbeDim = 64;  // rows of 256 B

// Seconds a lookup of random rows from a table of so many bytes, forward or with the update; nothing of it is kept in
// the first two levels.
double SecondsOfTable(const Pool& rows, double bytes, float* pooled, bool backward, Pool* workspace, Sweeper* sweeper) {
  std::vector<int64_t> ids, offsets(kCalibratedLookups + 1);
  for (int64_t b = 0; b <= kCalibratedLookups; ++b) offsets[static_cast<size_t>(b)] = b;
  const auto row_count = static_cast<int64_t>(bytes) / (4 * kProbeDim);
  const kernels::EmbeddingTable table{rows.data(), nullptr, row_count, kProbeDim, kernels::RowFormat::kFp32};
  const kernels::EmbeddingFeature feature{0, kernels::BagPooling::kSum, pooled, kProbeDim};
  kernels::EmbeddingBags bags{&table, 1, &feature, 1, kCalibratedLookups, offsets.data(), nullptr, nullptr};
  kernels::RowUpdate update;
  update.learning_rate = 1e-9f;
  uint64_t seed = 1;
  const auto prepare = [&] {
    ids = DrawIds(kCalibratedLookups, 1, row_count, ++seed);
    bags.ids = ids.data();
    if (backward) kernels::cpu::EmbeddingForward(bags);
  };
  const auto run = [&] {
    if (backward) return kernels::cpu::EmbeddingBackward(bags, update, workspace->data());
    kernels::cpu::EmbeddingForward(bags);
  };
  constexpr int kAgain = 3;  // the fastest counts
  double best = sweeper->watch().Median(run, prepare);
  for (int again = 1; again < kAgain; ++again) best = std::min(best, sweeper->watch().Median(run, prepare));
  return best / static_cast<double>(kCalibratedLookups);
}

// What rows cost more in tables beyond the cold ones, where address translations miss as well.
void MeasureFarTables(double memory, float* pooled, Pool* workspace, Sweeper* sweeper) {
  Calibration& result = sweeper->result();
  result.far_table_bytes = std::clamp(memory / 8, result.cold_table_bytes, 1e9);
  if (result.far_table_bytes < 2 * result.cold_table_bytes) return;
  const Pool rows(static_cast<int64_t>(result.far_table_bytes));
  const auto more = [&](bool backward) {
    const double cold = SecondsOfTable(rows, result.cold_table_bytes, pooled, backward, workspace, sweeper);
    return std::max(0.0, SecondsOfTable(rows, result.far_table_bytes, pooled, backward, workspace, sweeper) - cold);
  };
  result.far_lookup_s = more(false);
  result.far_update_s = more(true);
}

}  // namespace

void MeasureEmbeddings(Sweeper* sweeper, float* near_floats, int64_t near_count,
                       const std::function<void(double done)>& say) {
  Calibration& result = sweeper->result();
  Stopwatch& watch = sweeper->watch();
  namespace cpu = kernels::cpu;
  using kernels::RowFormat;
  using kernels::RowOptimizer;
  const HostMachine host = ReadHostMachine("");
  const auto cold_bytes = static_cast<int64_t>(std::min({8 * result.last_level_bytes, host.memory.value / 8, 1e9}));
  const Pool rows(cold_bytes), state(2 * cold_bytes);
  // Near: rows in a core's own cache. Warm: rows beyond the private caches, outputs and gradients near. Cold: rows of a
  // table larger than the caches. Spilled: warm rows, but outputs or gradients of samples among those of many features,
  // in memory.
  enum class Level { kNear, kWarm, kCold, kSpilled };
  const auto warm_bytes = static_cast<int64_t>(std::clamp(result.last_level_bytes / 4, 1e6, 16e6));
  const auto near_bytes = static_cast<int64_t>(std::clamp(host.private_l2.value / 4, 1e5, 1e6));
  result.near_table_bytes = static_cast<double>(near_bytes);
  result.warm_table_bytes = static_cast<double>(warm_bytes);
  result.cold_table_bytes = static_cast<double>(cold_bytes);
  const std::vector<double> dims = {4, 16, 32, 64, 128, 256};
  Pool workspace(int64_t{256} << 20);
  struct Point {
    RowFormat format;
    Level level;
    bool backward, fused;
    RowOptimizer optimizer;
    int64_t lookups = kCalibratedLookups;
  };
  const auto seconds_a_lookup = [&](const Point& p, int32_t dim, int64_t count) {
    const int64_t bytes = p.level == Level::kCold ? cold_bytes : p.level == Level::kNear ? near_bytes : warm_bytes;
    const int64_t state_bytes = 4 * kernels::RowStateFloats(p.optimizer, dim);
    const int64_t per_row = std::max<int64_t>(kernels::RowBytes(p.format, dim), state_bytes / 2);
    const kernels::EmbeddingTable table{rows.data(), state.floats(), bytes / per_row, dim, p.format};
    const int64_t per_bag = p.backward ? 1 : count, batch = p.lookups / per_bag;
    constexpr int64_t kNeighbours = 20;
    const bool spilled = p.level == Level::kSpilled;
    // Warm rows need little of the state's pool; its rest holds what is spilled.
    float* far = state.floats() + 4 * warm_bytes / 4;
    const int64_t stride = std::min<int64_t>((spilled ? kNeighbours : 4) * dim,
                                             (spilled ? cold_bytes / 4 : near_count) / batch / dim * dim);
    const kernels::EmbeddingFeature near{0, kernels::BagPooling::kSum, near_floats,
                                         std::min<int64_t>(4 * dim, near_count / batch)};
    kernels::EmbeddingFeature feature{0, kernels::BagPooling::kSum, spilled ? far : near_floats, stride};
    std::vector<int64_t> offsets(static_cast<size_t>(batch + 1));
    for (int64_t b = 0; b <= batch; ++b) offsets[static_cast<size_t>(b)] = b * per_bag;
    uint64_t seed = 1;
    int64_t column = 0;
    std::vector<int64_t> ids;
    kernels::EmbeddingBags bags{&table, 1, &feature, 1, batch, offsets.data(), nullptr, nullptr};
    kernels::RowUpdate update;
    update.optimizer = p.optimizer;
    update.learning_rate = 1e-9f;
    const auto prepare = [&] {
      ids = DrawIds(p.lookups, p.backward ? count : 1, table.row_count, ++seed);
      bags.ids = ids.data();
      // Another feature's place every time: the last one is in the cache.
      if (spilled) feature.output = far + (++column % (stride / dim)) * dim;
      // A step has read the rows before it updates them: they are in the cache, or long gone.
      if (!p.backward || p.level == Level::kCold) return;
      kernels::EmbeddingBags forward = bags;
      forward.features = &near;
      cpu::EmbeddingForward(forward);
    };
    const auto run = [&] {
      if (!p.backward) return cpu::EmbeddingForward(bags);
      if (p.fused) return cpu::EmbeddingBackward(bags, update, workspace.data());
      cpu::EmbeddingBackwardSeparate(bags, update, workspace.data());
    };
    // The start of the one loop of a lookup is priced apart: a call may be of many features.
    const double start = p.backward ? 0 : result.fork_s;
    return std::max(watch.Median(run, prepare) - start, 1e-8) / static_cast<double>(p.lookups);
  };
  const auto measure = [&](const std::string& name, const Point& p) {
    const std::vector<double> counts = p.backward ? std::vector<double>{1, 4, 32} : std::vector<double>{1, 8};
    sweeper->Sweep(
        name, {dims, counts},
        [&](const std::vector<double>& at) {
          return seconds_a_lookup(p, static_cast<int32_t>(at[0]), static_cast<int64_t>(at[1]));
        },
        Sweeper::Shape::kGrowingFirst);
  };
  measure("embedding_forward.fp32.near", {RowFormat::kFp32, Level::kNear, false, true, RowOptimizer::kSgd});
  measure("embedding_forward.fp32.spilled", {RowFormat::kFp32, Level::kSpilled, false, true, RowOptimizer::kSgd});
  measure("embedding_fused.sgd.spilled", {RowFormat::kFp32, Level::kSpilled, true, true, RowOptimizer::kSgd});
  for (const bool fused : {true, false}) {
    sweeper->Sweep(
        fused ? "embedding_fused.lookups" : "embedding_separate.lookups",
        {{1024, 4096, static_cast<double>(kCalibratedLookups), 65536, 262144}, {16, 64}, {2, 16}},
        [&](const std::vector<double>& at) {
          Point p{RowFormat::kFp32, Level::kWarm, true, fused, RowOptimizer::kRowwiseAdagrad};
          p.lookups = static_cast<int64_t>(at[0]);
          return seconds_a_lookup(p, static_cast<int32_t>(at[1]), static_cast<int64_t>(at[2]));
        },
        Sweeper::Shape::kAny);
  }
  const std::pair<const char*, RowFormat> formats[] = {
      {"fp32", RowFormat::kFp32}, {"fp16", RowFormat::kFp16}, {"bf16", RowFormat::kBf16}, {"int8", RowFormat::kInt8}};
  const std::pair<const char*, RowOptimizer> optimizers[] = {{"sgd", RowOptimizer::kSgd},
                                                             {"adagrad", RowOptimizer::kAdagrad},
                                                             {"rowwise_adagrad", RowOptimizer::kRowwiseAdagrad},
                                                             {"adam", RowOptimizer::kAdam},
                                                             {"rowwise_adam", RowOptimizer::kRowwiseAdam}};
  for (const bool cold : {false, true}) {
    const std::string level = cold ? ".cold" : ".warm";
    for (const auto& [name, format] : formats) {
      measure("embedding_forward." + std::string(name) + level,
              {format, cold ? Level::kCold : Level::kWarm, false, true, RowOptimizer::kSgd});
    }
    for (const bool fused : {true, false}) {
      const std::string kernel = fused ? "embedding_fused." : "embedding_separate.";
      for (const auto& [name, optimizer] : optimizers) {
        measure(kernel + name + level, {RowFormat::kFp32, cold ? Level::kCold : Level::kWarm, true, fused, optimizer});
      }
      for (const auto& [name, format] : formats) {
        if (format == RowFormat::kFp32) continue;
        measure(kernel + name + level, {format, cold ? Level::kCold : Level::kWarm, true, fused, RowOptimizer::kSgd});
      }
      say(cold ? (fused ? 0.7 : 0.9) : (fused ? 0.3 : 0.5));
    }
  }
  MeasureSort(rows, near_floats, &workspace, sweeper);
  MeasureCall(rows, near_floats, sweeper);
  MeasureFarTables(host.memory.value, near_floats, &workspace, sweeper);
}

}  // namespace portolan
