#include <cmath>

#include "kernels/embedding/gpu_runs.h"
#include "kernels/embedding/gpu_update.h"
#include "kernels/gpu_kernels.h"
#include "kernels/visit_columns.h"

// Sort the lookups by row, find the run of each row, sum its gradients, update it once. A run of up to kHotRowBlock
// lookups is the work of one group of lanes; the sum of a longer one is split over blocks.
namespace portolan::kernels::PORTOLAN_BACKEND {
namespace {

constexpr int kUpdateThreads = 256;

// What to do with the gradient of a row: an optimizer step, or only its square.
template <RowOptimizer kOptimizer>
struct StepRow {
  static constexpr const char* kName = "embedding_backward";
  RowStep step;

  template <int kLanes>
  PORTOLAN_DEVICE void Take(int64_t, const RowPlace& place, const RowGradient& gradient) const {
    UpdateRow<kLanes, kOptimizer>(step, place, gradient);
  }
};
struct SquareRow {
  static constexpr const char* kName = "embedding_squared_norm";
  double* squares;  // [runs]

  template <int kLanes>
  PORTOLAN_DEVICE void Take(int64_t run, const RowPlace& place, const RowGradient& gradient) const {
    const int first = ThreadIndex() % kLanes * kLaneColumns;
    double sum = 0;
    for (int column = first; column < place.table.dim; column += kLanes * kLaneColumns) {
      const Quad values = gradient.Sum(column, place.table.dim);
      for (int i = 0; i < kLaneColumns; ++i) sum += static_cast<double>(values.value[i]) * values.value[i];
    }
    sum = WaveSum<kLanes>(sum);
    if (first == 0) squares[run] = sum;
  }
};

enum class RunSet : int32_t { kShort, kHot };

// A group of lanes takes a run. Short runs are summed here; of hot ones the sum is there already.
template <typename Action, int kLanes>
struct TakeRuns {
  static constexpr const char* kName = Action::kName;
  static constexpr int kThreads = kUpdateThreads;
  static constexpr int kGroups = kThreads / kLanes;
  using Shared = NoShared;
  Runs runs;
  Action action;
  RunSet set;

  PORTOLAN_DEVICE void operator()(Shared&) const {
    const RunSpace& space = runs.space;
    int64_t run = BlockIndex() * kGroups + ThreadIndex() / kLanes;
    if (run >= (set == RunSet::kShort ? *space.run_count : *space.hot_count)) return;
    const float* sum = nullptr;
    if (set == RunSet::kHot) {
      const HotBlock hot = space.hot_blocks[run];
      if (hot.block != 0) return;  // once a run
      sum = space.hot_sums + run * runs.max_dim;
      run = hot.run;
    }
    const int64_t begin = space.starts[run], end = space.starts[run + 1];
    if (sum == nullptr && end - begin > kHotRowBlock) return;
    action.template Take<kLanes>(run, RowOfRun(runs, run), RowGradient{&runs, begin, end, sum});
  }
};

// Sums the runs longer than kHotRowBlock lookups, a block of work-items each kHotRowBlock of them; whichever block of a
// run is done last adds the sums of all, in order, to the first of them.
template <int kLanes>
struct SumHotRuns {
  static constexpr const char* kName = "embedding_sum_hot_runs";
  static constexpr int kThreads = kUpdateThreads;
  static constexpr int kGroups = kThreads / kLanes;
  static constexpr int kStep = kLanes * kLaneColumns;  // columns of a group at once
  struct Shared {
    SharedArray<float, kThreads * kLaneColumns> parts;  // [kGroups, kStep]
    SharedArray<int, 1> is_last;
  };
  Runs runs;

  PORTOLAN_DEVICE void operator()(Shared& shared) const {
    const RunSpace& space = runs.space;
    if (BlockIndex() >= *space.hot_count) return;
    const HotBlock hot = space.hot_blocks[BlockIndex()];
    const int dim = RowOfRun(runs, hot.run).table.dim;
    const int group = ThreadIndex() / kLanes, lane = ThreadIndex() % kLanes;

    // Each group sums its share of the block's lookups, then the shares are added in order.
    const int64_t begin = space.starts[hot.run] + hot.block * kHotRowBlock;
    const int64_t run_end = space.starts[hot.run + 1];
    const int64_t end = begin + kHotRowBlock < run_end ? begin + kHotRowBlock : run_end;
    constexpr int64_t kShare = kHotRowBlock / kGroups;
    const int64_t own_begin = begin + group * kShare < end ? begin + group * kShare : end;
    const int64_t own_end = own_begin + kShare < end ? own_begin + kShare : end;
    float* run_sums = space.hot_sums + hot.first_slot * static_cast<int64_t>(runs.max_dim);
    float* sums = run_sums + hot.block * static_cast<int64_t>(runs.max_dim);
    for (int first = 0; first < dim; first += kStep) {
      const int column = first + lane * kLaneColumns;
      const Quad own = RowGradient{&runs, own_begin, own_end, nullptr}.Sum(column, dim);
      device::Vec<float, kLaneColumns> vec;
      for (int i = 0; i < kLaneColumns; ++i) vec.value[i] = own.value[i];
      shared.parts.template StoreVec<kLaneColumns>(ThreadIndex() * kLaneColumns, vec);
      SyncBlock();
      for (int n = ThreadIndex(); n < kStep && first + n < dim; n += kThreads) {
        float total = 0;
        for (int g = 0; g < kGroups; ++g) {
          const float part = shared.parts[g * kStep + n];
          total += part;
        }
        sums[first + n] = total;
      }
      SyncBlock();
    }
    // Whoever counts last sees what all blocks of the run have written.
    const auto blocks = static_cast<uint32_t>((run_end - space.starts[hot.run] + kHotRowBlock - 1) / kHotRowBlock);
    DeviceFence();
    SyncBlock();
    if (ThreadIndex() == 0) {
      shared.is_last[0] = AtomicAdd(space.hot_done + hot.first_slot, uint32_t{1}) == blocks - 1 ? 1 : 0;
    }
    SyncBlock();
    const int is_last = shared.is_last[0];
    if (is_last == 0) return;
    DeviceFence();
    for (int n = ThreadIndex(); n < dim; n += kThreads) {
      float total = run_sums[n];
      for (int64_t block = 1; block < blocks; ++block) total += run_sums[block * runs.max_dim + n];
      run_sums[n] = total;
    }
  }
};

// partial[block] = the sum of up to kPerBlock squares.
struct AddSquares {
  static constexpr const char* kName = "embedding_add_squares";
  static constexpr int kThreads = 256;
  static constexpr int64_t kPerBlock = 4096;
  struct Shared {
    BlockSumScratch<double, kThreads> scratch;
  };
  const double* squares;  // [*count]
  const uint32_t* count;
  double* partial;  // [blocks]

  PORTOLAN_DEVICE void operator()(Shared& shared) const {
    const int64_t first = BlockIndex() * kPerBlock;
    const int64_t end = first + kPerBlock < *count ? first + kPerBlock : *count;
    double sum = 0;
    for (int64_t i = first + ThreadIndex(); i < end; i += kThreads) sum += squares[i];
    sum = BlockSum(sum, shared.scratch);
    if (ThreadIndex() == 0) partial[BlockIndex()] = sum;
  }
};

template <int kLanes, typename Action>
void ForEachRun(const SortedRuns& sorted, const Action& action, device::Stream stream) {
  // Runs are no more than lookups; how many there are, only the device knows, and blocks without a run end at once.
  Launch(stream, CeilDivide(sorted.layout.lookups, kUpdateThreads / kLanes),
         TakeRuns<Action, kLanes>{sorted.runs, action, RunSet::kShort});
  if (sorted.layout.lookups <= kHotRowBlock) return;
  Launch(stream, sorted.layout.hot_capacity, SumHotRuns<kLanes>{sorted.runs});
  Launch(stream, CeilDivide(sorted.layout.hot_capacity, kUpdateThreads / kLanes),
         TakeRuns<Action, kLanes>{sorted.runs, action, RunSet::kHot});
}

// Groups of 8 lanes, which take 32 columns at once, or of 32, which take 128.
template <typename Action>
void ForEachRow(const SortedRuns& sorted, const Action& action, device::Stream stream) {
  if (sorted.layout.max_dim <= 8 * kLaneColumns) return ForEachRun<8>(sorted, action, stream);
  return ForEachRun<32>(sorted, action, stream);
}

}  // namespace

void EmbeddingBackward(const EmbeddingBags& bags, const RowUpdate& update, void* workspace, device::Stream stream) {
  const SortedRuns sorted = SortLookups(bags, workspace, stream);
  if (sorted.layout.lookups == 0) return;
  const auto t = static_cast<double>(update.step);
  const auto correction1 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(update.beta1), t)));
  const auto correction2 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(update.beta2), t)));
  const RowStep step = {update, correction1, correction2};
  switch (update.optimizer) {
    case RowOptimizer::kSgd:
      return ForEachRow(sorted, StepRow<RowOptimizer::kSgd>{step}, stream);
    case RowOptimizer::kAdagrad:
      return ForEachRow(sorted, StepRow<RowOptimizer::kAdagrad>{step}, stream);
    case RowOptimizer::kRowwiseAdagrad:
      return ForEachRow(sorted, StepRow<RowOptimizer::kRowwiseAdagrad>{step}, stream);
    case RowOptimizer::kAdam:
      return ForEachRow(sorted, StepRow<RowOptimizer::kAdam>{step}, stream);
    case RowOptimizer::kRowwiseAdam:
      return ForEachRow(sorted, StepRow<RowOptimizer::kRowwiseAdam>{step}, stream);
  }
}

double EmbeddingGradientSquaredNorm(const EmbeddingBags& bags, void* workspace, device::Stream stream) {
  const SortedRuns sorted = SortLookups(bags, workspace, stream);
  if (sorted.layout.lookups == 0) return 0;
  auto* squares = reinterpret_cast<double*>(sorted.runs.space.swap);  // the sort is over
  ForEachRow(sorted, SquareRow{squares}, stream);
  const int64_t blocks = CeilDivide(sorted.layout.lookups, AddSquares::kPerBlock);
  Scratch<double> partial(stream, blocks);
  Launch(stream, blocks, AddSquares{squares, sorted.runs.space.run_count, partial.data()});
  return SumOnHost(stream, partial.data(), blocks);
}

}  // namespace portolan::kernels::PORTOLAN_BACKEND
