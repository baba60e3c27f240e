#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <random>

#include "base/check.h"
#include "hw/host.h"
#include "kernels/activation/activation.h"
#include "kernels/cross/cross.h"
#include "kernels/embedding/embedding.h"
#include "kernels/gemm/gemm.h"
#include "kernels/interaction/interaction.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/loss/loss.h"
#include "kernels/optimizer/optimizer.h"
#include "loop/calibration.h"
#include "loop/stopwatch.h"

namespace portolan {
namespace {

using kernels::ActivationKind;

// Memory on huge pages, as the engine's own (network.cc).
class Pool {
 public:
  explicit Pool(int64_t bytes) : bytes_(bytes) {
    constexpr int64_t kHugePage = int64_t{2} << 20;
    const int64_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    memory_ = std::aligned_alloc(static_cast<size_t>(kHugePage), static_cast<size_t>(rounded));
    PORTOLAN_CHECK(memory_ != nullptr, "no memory to measure with");
    madvise(memory_, static_cast<size_t>(rounded), MADV_HUGEPAGE);
    std::memset(memory_, 0, static_cast<size_t>(rounded));
  }
  ~Pool() { std::free(memory_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  float* floats() const { return static_cast<float*>(memory_); }
  char* data() const { return static_cast<char*>(memory_); }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_;
  void* memory_;
};

constexpr int64_t kMaxElements = int64_t{1} << 22;

class Machine {
 public:
  explicit Machine(const std::function<void(const std::string&, double)>& progress)
      : progress_(progress), a_(4 * kArrayFloats), b_(4 * kArrayFloats), c_(4 * kArrayFloats) {
    for (Pool* pool : {&a_, &b_, &c_}) {
      for (int64_t i = 0; i < kArrayFloats; ++i) pool->floats()[i] = static_cast<float>(i % 61) * 0.01f + 0.1f;
    }
  }

  Calibration Measure() {
    const HostMachine host = ReadHostMachine("");
    result_.machine = MachineKey();
    result_.threads = omp_get_max_threads();
    result_.last_level_bytes = std::max(host.last_level_cache.value, 1e6);
    char date[16];
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    std::strftime(date, sizeof date, "%Y-%m-%d", &utc);
    result_.date = date;
    Say("memory", 0);
    MeasureMemory();
    Say("elementwise kernels", 0.1);
    MeasureElementwise();
    Say("dot interaction", 0.3);
    MeasureInteraction();
    Say("matrix products", 0.4);
    MeasureProducts();
    Say("embedding rows", 0.7);
    MeasureEmbeddings();
    result_.spread = watch_.Spread();
    ScaleToFastest();
    for (const auto& [name, axes] : CalibratedGrids()) PORTOLAN_CHECK(result_.grids.count(name) > 0, "not measured");
    Say("done", 1);
    Warn();
    return std::move(result_);
  }

 private:
  static constexpr int64_t kArrayFloats = kMaxElements + (int64_t{1} << 16);
  // Calls on small tensors go around in a window of so many numbers of each array, so that they find their data where a
  // training step leaves it: beyond the private caches.
  static constexpr int64_t kWindow = int64_t{1} << 20;

  // Calls visit(extents) for every point of a grid in order and keeps what it returns, in units of what the probe takes
  // at the time.
  template <typename Visit>
  MeasuredGrid Sweep(std::vector<std::vector<double>> axes, Visit visit) {
    MeasuredGrid grid;
    grid.axes = std::move(axes);
    std::vector<size_t> index(grid.axes.size());
    for (bool more = true; more;) {
      std::vector<double> at;
      for (size_t a = 0; a < index.size(); ++a) at.push_back(grid.axes[a][index[a]]);
      grid.seconds.push_back(visit(at) / SpeedNow());
      more = false;
      for (size_t a = index.size(); a-- > 0 && !more;) {
        more = ++index[a] < grid.axes[a].size();
        if (!more) index[a] = 0;
      }
    }
    return grid;
  }

  // The probe's time, at most kProbeEvery old.
  double SpeedNow() {
    constexpr double kProbeEvery = 25e-3;
    if (speeds_.empty() || omp_get_wtime() - probed_at_ > kProbeEvery) {
      speeds_.push_back(probe_.Seconds());
      probed_at_ = omp_get_wtime();
    }
    return speeds_.back();
  }

  // The tenth part of the probes that was fastest says what the machine can do.
  void ScaleToFastest() {
    std::sort(speeds_.begin(), speeds_.end());
    result_.probe_s = speeds_[speeds_.size() / 10];
    for (auto& [name, grid] : result_.grids) {
      for (double& seconds : grid.seconds) seconds *= result_.probe_s;
    }
    constexpr double kNotable = 1.25;
    const double slow = speeds_[speeds_.size() * 9 / 10] / result_.probe_s;
    if (slow > kNotable) {
      result_.warnings.push_back("this machine's speed changed by a factor of " + std::to_string(slow).substr(0, 4) +
                                 " while it was measured: other load, a neighbour of a virtual machine, a power cap or "
                                 "a thermal limit; times are those of its fastest tenth");
    }
  }

  void Say(const std::string& part, double done) const {
    if (progress_) progress_(part, done);
  }

  void Warn() {
    constexpr double kSpreadTolerance = 0.25;
    if (result_.spread > kSpreadTolerance) {
      result_.warnings.push_back("repetitions differ widely: is other work running on this machine?");
    }
    std::ifstream load("/proc/loadavg");
    double one_minute = 0;
    if (load >> one_minute && one_minute > result_.threads + 1.5) {
      result_.warnings.push_back("the load of the last minute was above the number of threads: other work is running");
    }
    std::ifstream current("/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq"),
        most("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    double capped = 0, highest = 0;
    if (current >> capped && most >> highest && capped < 0.99 * highest) {
      result_.warnings.push_back("the clock is capped below the processor's highest (cpufreq scaling_max_freq)");
    }
  }

  double CopyRate(int64_t bytes) {
    constexpr int64_t kChunk = int64_t{1} << 16;
    char *from = a_.data(), *to = b_.data();
    const double seconds = watch_.Median([&] {
#pragma omp parallel for schedule(static)
      for (int64_t at = 0; at < bytes; at += kChunk) std::memcpy(to + at, from + at, kChunk);
    });
    return 2 * static_cast<double>(bytes) / seconds;
  }

  void MeasureMemory() {
    result_.fork_s = watch_.Median([] {
#pragma omp parallel for schedule(static)
      for (int i = 0; i < 2; ++i) {
        volatile int sink = i;
        static_cast<void>(sink);
      }
    });
    const Pool from(int64_t{256} << 20), to(int64_t{256} << 20);
    const auto copy = [&] {
      constexpr int64_t kChunk = int64_t{1} << 20;
      return 2 * static_cast<double>(from.bytes()) / watch_.Median([&] {
#pragma omp parallel for schedule(static)
        for (int64_t at = 0; at < from.bytes(); at += kChunk) {
          std::memcpy(to.data() + at, from.data() + at, kChunk);
        }
      });
    };
    result_.copy_bytes_per_s = copy();
    omp_set_num_threads(1);
    result_.copy_one_thread_bytes_per_s = copy();
    omp_set_num_threads(result_.threads);
    const auto quarter = static_cast<int64_t>(result_.last_level_bytes / 8) / (1 << 16) * (1 << 16);
    result_.cache_bytes_per_s = CopyRate(std::clamp<int64_t>(quarter, 1 << 16, 4 * kMaxElements));
  }

  // A place of `elements` in all arrays, moving on from call to call.
  int64_t Next(int64_t elements) {
    const int64_t places = std::max<int64_t>(kWindow / std::max<int64_t>(elements, 64), 1);
    place_ = (place_ + 1) % places;
    return place_ * std::max<int64_t>(elements, 64);
  }

  void MeasureElementwise() {
    namespace cpu = kernels::cpu;
    const std::vector<std::vector<double>> axes = {{1024, 8192, 65536, 524288, static_cast<double>(kMaxElements)},
                                                   {1, 8, 32, 128, 512}};
    std::vector<float> sums(512), bias(512, 0.1f);
    using Kernel = std::function<void(int64_t rows, int64_t width, float* x, float* y, float* z)>;
    const auto measure = [&](const std::string& name, const Kernel& kernel) {
      result_.grids[name] = Sweep(axes, [&](const std::vector<double>& at) {
        const auto width = static_cast<int64_t>(at[1]);
        const int64_t rows = static_cast<int64_t>(at[0]) / width;
        return watch_.Median([&] {
          const int64_t offset = Next(rows * width);
          kernel(rows, width, a_.floats() + offset, b_.floats() + offset, c_.floats() + offset);
        });
      });
    };
    const std::pair<const char*, ActivationKind> kinds[] = {{"", ActivationKind::kNone},
                                                            {"relu_", ActivationKind::kRelu},
                                                            {"sigmoid_", ActivationKind::kSigmoid},
                                                            {"silu_", ActivationKind::kSilu},
                                                            {"gelu_", ActivationKind::kGelu}};
    for (const auto& [name, kind] : kinds) {
      const ActivationKind k = kind;
      const bool keeps = k == ActivationKind::kSilu || k == ActivationKind::kGelu;
      measure(std::string("bias_") + name + "forward", [&, k, keeps](int64_t r, int64_t w, float* x, float* y, float*) {
        cpu::BiasActivationForward(k, r, w, w, x, bias.data(), w, keeps ? y : x);
      });
      measure(std::string("bias_") + name + "backward", [&, k](int64_t r, int64_t w, float* x, float* y, float* z) {
        cpu::BiasActivationBackward(k, r, w, w, x, w, y, w, z, w, z, sums.data());
      });
      if (k == ActivationKind::kNone) continue;
      measure(std::string(name) + "forward",
              [&, k](int64_t r, int64_t w, float* x, float* y, float*) { cpu::ActivationForward(k, r, w, x, w, y); });
      measure(std::string(name) + "backward", [&, k](int64_t r, int64_t w, float* x, float* y, float* z) {
        cpu::ActivationBackward(k, r, w, x, w, x, w, y, z);
      });
    }
    measure("broadcast",
            [&](int64_t r, int64_t w, float* x, float*, float*) { cpu::BroadcastBias(r, w, bias.data(), w, x); });
    measure("column_sums",
            [&](int64_t r, int64_t w, float* x, float*, float*) { cpu::ColumnSums(r, w, w, x, sums.data()); });
    measure("multiply", [&](int64_t r, int64_t w, float* x, float* y, float* z) { cpu::Multiply(r * w, x, y, z); });
    measure("accumulate", [&](int64_t r, int64_t w, float* x, float* y, float*) {
      std::fill_n(y, 1, 0.0f);
      cpu::Accumulate(r * w, x, y);
    });
    measure("copy_rows", [&](int64_t r, int64_t w, float* x, float* y, float*) {
#pragma omp parallel for schedule(static)
      for (int64_t i = 0; i < r; ++i) std::copy_n(x + i * w, w, y + i * w);
    });
    measure("cross_forward", [&](int64_t r, int64_t w, float* x, float* y, float* z) {
      cpu::CrossForward(r, w, x, y, bias.data(), x, z);
    });
    measure("cross_backward", [&](int64_t r, int64_t w, float* x, float* y, float* z) {
      cpu::CrossBackward(r, w, x, x, bias.data(), x, y, sums.data(), z);
    });
    std::vector<float> mean(static_cast<size_t>(kMaxElements)), rstd(mean.size(), 1.0f), beta(512);
    measure("norm_forward", [&](int64_t r, int64_t w, float* x, float* y, float*) {
      cpu::LayerNormForward(r, w, x, bias.data(), beta.data(), y, mean.data(), rstd.data());
    });
    measure("norm_backward", [&](int64_t r, int64_t w, float* x, float* y, float* z) {
      cpu::LayerNormBackward(r, w, x, bias.data(), mean.data(), rstd.data(), y, z, sums.data(), beta.data());
    });
    result_.grids["bce"] = Sweep({{64, 1024, 16384, 262144}}, [&](const std::vector<double>& at) {
      return watch_.Median([&] {
        cpu::BceWithLogits(static_cast<int64_t>(at[0]), a_.floats(), 1, b_.floats(), nullptr, 1.0f, c_.floats());
      });
    });
    MeasureOptimizers();
  }

  void MeasureOptimizers() {
    namespace cpu = kernels::cpu;
    using kernels::DenseUpdateKind;
    const std::pair<const char*, DenseUpdateKind> kinds[] = {{"sgd", DenseUpdateKind::kSgd},
                                                             {"momentum", DenseUpdateKind::kMomentum},
                                                             {"adagrad", DenseUpdateKind::kAdagrad},
                                                             {"adam", DenseUpdateKind::kAdam}};
    const std::vector<std::vector<double>> axes = {{64, 1024, 8192, 65536, 524288, 2097152}};
    for (const auto& [name, kind] : kinds) {
      kernels::DenseUpdate update;
      update.kind = kind;
      const auto sweep = [&](const auto& step) {
        return Sweep(axes, [&](const std::vector<double>& at) {
          return watch_.Median([&] { step(static_cast<int64_t>(at[0])); });
        });
      };
      result_.grids[std::string("dense_fused.") + name] =
          sweep([&](int64_t n) { cpu::DenseOptimizerStep(update, n, a_.floats(), b_.floats(), c_.floats()); });
      result_.grids[std::string("dense_separate.") + name] = sweep([&](int64_t n) {
        const int64_t o = Next(2 * n);
        cpu::DenseOptimizerStepSeparate(update, n, a_.floats() + o, b_.floats() + o, c_.floats() + o,
                                        c_.floats() + o + n, b_.floats() + o + n);
      });
    }
    result_.grids["squared_norm"] = Sweep(axes, [&](const std::vector<double>& at) {
      return watch_.Median([&] { cpu::SquaredNorm(static_cast<int64_t>(at[0]), a_.floats()); });
    });
  }

  void MeasureInteraction() {
    namespace cpu = kernels::cpu;
    const std::vector<std::vector<double>> axes = {{64, 512, 4096}, {3, 9, 27}, {8, 32, 128}};
    const auto sweep = [&](const std::function<void(const kernels::DotInteractionShape&, int64_t)>& kernel) {
      return Sweep(axes, [&](const std::vector<double>& at) {
        kernels::DotInteractionShape shape;
        shape.batch = static_cast<int64_t>(at[0]);
        shape.features = static_cast<int64_t>(at[1]);
        shape.dim = static_cast<int64_t>(at[2]);
        shape.x_stride = shape.features * shape.dim;
        shape.out_stride = shape.out_width = kernels::DotInteractionWidth(shape.features, shape.dim);
        // Beyond the arrays: in proportion to a smaller batch.
        const int64_t fits = std::max<int64_t>(
            kMaxElements / std::max({shape.x_stride, shape.out_stride, shape.features * shape.features}), 1);
        const double share = static_cast<double>(shape.batch) / static_cast<double>(std::min(shape.batch, fits));
        shape.batch = std::min(shape.batch, fits);
        const int64_t largest = shape.batch * std::max(shape.x_stride, shape.out_stride);
        return share * watch_.Median([&] { kernel(shape, Next(largest)); });
      });
    };
    using kernels::DotInteractionShape;
    const auto x = [&](int64_t offset) { return a_.floats() + offset; };
    const auto y = [&](int64_t offset) { return b_.floats() + offset; };
    const auto z = [&](int64_t offset) { return c_.floats() + offset; };
    result_.grids["dot_forward"] =
        sweep([&](const DotInteractionShape& s, int64_t o) { cpu::DotInteractionForward(s, x(o), y(o)); });
    result_.grids["dot_backward"] =
        sweep([&](const DotInteractionShape& s, int64_t o) { cpu::DotInteractionBackward(s, x(o), y(o), z(o)); });
    result_.grids["pair_products"] = sweep([&](const DotInteractionShape& s, int64_t o) {
      cpu::BatchedProduct(cpu::BatchedLayout::kRightTransposed, s.batch, s.features, s.features, s.dim, s.x_stride,
                          x(o), s.x_stride, x(o), s.features * s.features, c_.floats());
    });
    result_.grids["pair_gradients"] = sweep([&](const DotInteractionShape& s, int64_t o) {
      cpu::BatchedProduct(cpu::BatchedLayout::kLeftTransposed, s.batch, s.features, s.dim, s.features,
                          s.features * s.features, c_.floats(), s.x_stride, x(o), s.x_stride, y(o));
    });
    result_.grids["pick_pairs"] =
        sweep([&](const DotInteractionShape& s, int64_t o) { cpu::PickPairs(s, x(o), c_.floats(), y(o)); });
  }

  void MeasureProducts() {
    using kernels::Transpose;
    const std::vector<double> widths = {1, 8, 16, 32, 64, 128, 256, 512, 1024}, rows = {64, 512, 4096};
    struct Layout {
      const char* name;
      Transpose a, b;
    };
    const Layout layouts[] = {{"nt", Transpose::kNo, Transpose::kYes},
                              {"nn", Transpose::kNo, Transpose::kNo},
                              {"tn", Transpose::kYes, Transpose::kNo}};
    double done = 0.4;
    for (const auto format : {kernels::GemmFormat::kFp32, kernels::GemmFormat::kBf16}) {
      const bool fp32 = format == kernels::GemmFormat::kFp32;
      double best = 0;
      for (const Layout& layout : layouts) {
        const bool gradient = layout.a == Transpose::kYes;
        std::vector<std::vector<double>> axes = {rows, widths, widths};
        if (gradient) axes = {widths, widths, rows};
        result_.grids[std::string("gemm.") + (fp32 ? "fp32." : "bf16.") + layout.name] =
            Sweep(axes, [&](const std::vector<double>& at) {
              kernels::GemmProblem p;
              p.m = static_cast<int64_t>(at[0]);
              p.n = static_cast<int64_t>(at[1]);
              p.k = static_cast<int64_t>(at[2]);
              // Larger ones: in proportion to fewer rows of the batch.
              constexpr double kMaxFlops = 3e8;
              const double flops = 2 * at[0] * at[1] * at[2];
              int64_t& batch = gradient ? p.k : p.m;
              const int64_t whole = batch;
              if (flops > kMaxFlops) batch = std::max<int64_t>(batch / 8, 64);
              p.a_transposed = layout.a;
              p.b_transposed = layout.b;
              p.lda = gradient ? p.m : p.k;
              p.ldb = layout.b == Transpose::kYes ? p.k : p.n;
              p.ldd = p.n;
              p.format = format;
              const double seconds = watch_.Median([&] {
                const int64_t offset = Next(std::max({p.m * p.k, p.k * p.n, p.m * p.n}));
                kernels::cpu::Gemm(p, a_.floats() + offset, b_.floats() + offset, c_.floats() + offset);
              });
              const double scale = static_cast<double>(whole) / static_cast<double>(batch);
              best = std::max(best, flops / scale / seconds);
              return seconds * scale;
            });
        done += 0.05;
        Say("matrix products", done);
      }
      (fp32 ? result_.gemm_flops_per_s : result_.gemm_bf16_flops_per_s) = best;
    }
    omp_set_num_threads(1);
    kernels::GemmProblem p;
    p.m = p.n = p.k = p.lda = p.ldb = p.ldd = 512;
    result_.gemm_one_thread_flops_per_s =
        2.0 * 512 * 512 * 512 / watch_.Median([&] { kernels::cpu::Gemm(p, a_.floats(), b_.floats(), c_.floats()); });
    omp_set_num_threads(result_.threads);
  }

  // Lookups of one table: `distinct` random rows of `rows`, each `repeats` times, in random order.
  static std::vector<int64_t> DrawIds(int64_t lookups, int64_t repeats, int64_t rows, uint64_t seed) {
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

  void MeasureEmbeddings() {
    namespace cpu = kernels::cpu;
    using kernels::RowFormat;
    using kernels::RowOptimizer;
    const HostMachine host = ReadHostMachine("");
    const auto cold_bytes = static_cast<int64_t>(std::min({8 * result_.last_level_bytes, host.memory.value / 8, 1e9}));
    const Pool rows(cold_bytes), state(2 * cold_bytes);
    // Warm: rows beyond the private caches, outputs and gradients near. Cold: rows of a table larger than the caches.
    // Spilled: warm rows, but outputs or gradients of samples among those of many features, in memory.
    enum class Level { kWarm, kCold, kSpilled };
    const auto warm_bytes = static_cast<int64_t>(std::clamp(result_.last_level_bytes / 4, 1e6, 16e6));
    result_.warm_table_bytes = static_cast<double>(warm_bytes);
    result_.cold_table_bytes = static_cast<double>(cold_bytes);
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
      const int64_t bytes = p.level == Level::kCold ? cold_bytes : warm_bytes;
      const int64_t state_bytes = 4 * kernels::RowStateFloats(p.optimizer, dim);
      const int64_t per_row = std::max<int64_t>(kernels::RowBytes(p.format, dim), state_bytes / 2);
      const kernels::EmbeddingTable table{rows.data(), state.floats(), bytes / per_row, dim, p.format};
      const int64_t per_bag = p.backward ? 1 : count, batch = p.lookups / per_bag;
      constexpr int64_t kNeighbours = 20;
      const bool spilled = p.level == Level::kSpilled;
      // Warm rows need little of the state's pool; its rest holds what is spilled.
      float* far = state.floats() + 4 * warm_bytes / 4;
      const int64_t stride = std::min<int64_t>((spilled ? kNeighbours : 4) * dim,
                                               (spilled ? cold_bytes / 4 : kMaxElements) / batch / dim * dim);
      const kernels::EmbeddingFeature near{0, kernels::BagPooling::kSum, b_.floats(),
                                           std::min<int64_t>(4 * dim, kMaxElements / batch)};
      kernels::EmbeddingFeature feature{0, kernels::BagPooling::kSum, spilled ? far : b_.floats(), stride};
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
        if (!p.backward) return;
        kernels::EmbeddingBags forward = bags;  // a step has read the rows before it updates them
        forward.features = &near;
        cpu::EmbeddingForward(forward);
      };
      const auto run = [&] {
        if (!p.backward) return cpu::EmbeddingForward(bags);
        if (p.fused) return cpu::EmbeddingBackward(bags, update, workspace.data());
        cpu::EmbeddingBackwardSeparate(bags, update, workspace.data());
      };
      // The start of the one loop of a lookup is priced apart: a call may be of many features.
      const double start = p.backward ? 0 : result_.fork_s;
      return std::max(watch_.Median(run, prepare) - start, 1e-8) / static_cast<double>(p.lookups);
    };
    const auto measure = [&](const Point& p) {
      const std::vector<double> counts = p.backward ? std::vector<double>{1, 4, 32} : std::vector<double>{1, 8};
      return Sweep({dims, counts}, [&](const std::vector<double>& at) {
        return seconds_a_lookup(p, static_cast<int32_t>(at[0]), static_cast<int64_t>(at[1]));
      });
    };
    result_.grids["embedding_forward.fp32.spilled"] =
        measure({RowFormat::kFp32, Level::kSpilled, false, true, RowOptimizer::kSgd});
    result_.grids["embedding_fused.sgd.spilled"] =
        measure({RowFormat::kFp32, Level::kSpilled, true, true, RowOptimizer::kSgd});
    for (const bool fused : {true, false}) {
      result_.grids[fused ? "embedding_fused.lookups" : "embedding_separate.lookups"] =
          Sweep({{1024, 4096, static_cast<double>(kCalibratedLookups), 65536, 262144}, {16, 64}},
                [&](const std::vector<double>& at) {
                  Point p{RowFormat::kFp32, Level::kWarm, true, fused, RowOptimizer::kRowwiseAdagrad};
                  p.lookups = static_cast<int64_t>(at[0]);
                  return seconds_a_lookup(p, static_cast<int32_t>(at[1]), 2);
                });
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
        result_.grids["embedding_forward." + std::string(name) + level] =
            measure({format, cold ? Level::kCold : Level::kWarm, false, true, RowOptimizer::kSgd});
      }
      for (const bool fused : {true, false}) {
        const std::string kernel = fused ? "embedding_fused." : "embedding_separate.";
        for (const auto& [name, optimizer] : optimizers) {
          result_.grids[kernel + name + level] =
              measure({RowFormat::kFp32, cold ? Level::kCold : Level::kWarm, true, fused, optimizer});
        }
        for (const auto& [name, format] : formats) {
          if (format == RowFormat::kFp32) continue;
          result_.grids[kernel + name + level] =
              measure({format, cold ? Level::kCold : Level::kWarm, true, fused, RowOptimizer::kSgd});
        }
        Say("embedding rows", cold ? (fused ? 0.9 : 0.95) : (fused ? 0.8 : 0.85));
      }
    }
    MeasureSort(rows, &workspace);
  }

  // The same lookups in a table that needs one digit more.
  void MeasureSort(const Pool& rows, Pool* workspace) {
    constexpr int64_t kLookups = 65536;
    std::vector<int64_t> ids = DrawIds(kLookups, 1, 2048, 1), offsets(kLookups + 1);
    for (int64_t b = 0; b <= kLookups; ++b) offsets[static_cast<size_t>(b)] = b;
    const auto seconds = [&](int64_t row_count) {
      const kernels::EmbeddingTable table{rows.data(), nullptr, row_count, 4, kernels::RowFormat::kFp32};
      const kernels::EmbeddingFeature feature{0, kernels::BagPooling::kSum, b_.floats(), 4};
      const kernels::EmbeddingBags bags{&table, 1, &feature, 1, kLookups, offsets.data(), ids.data(), nullptr};
      kernels::RowUpdate update;
      return watch_.Median([&] { kernels::cpu::EmbeddingBackward(bags, update, workspace->data()); });
    };
    const double one = seconds(2048), three = seconds(int64_t{1} << 33);
    result_.sort_pass_s = std::max((three - one) / 2 / static_cast<double>(kLookups), 1e-11);
  }

  const std::function<void(const std::string&, double)>& progress_;
  Stopwatch watch_;
  SpeedProbe probe_;
  std::vector<double> speeds_;
  double probed_at_ = 0;
  Pool a_, b_, c_;
  int64_t place_ = 0;
  Calibration result_;
};

}  // namespace

std::string MachineKey() {
  // To be raised with every change of the kernels that changes their times.
  constexpr int kKernelGeneration = 1;
  const HostMachine host = ReadHostMachine("");
  return (host.model.empty() ? "unknown processor" : host.model) + (host.type.empty() ? "" : " (" + host.type + ")") +
         ", " + std::to_string(omp_get_max_threads()) + " threads, kernels " + std::to_string(kKernelGeneration);
}

Calibration MeasureMachine(const std::function<void(const std::string&, double)>& progress) {
  return Machine(progress).Measure();
}

}  // namespace portolan
