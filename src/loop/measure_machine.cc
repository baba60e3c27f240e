#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <random>
#include <vector>

#include "base/check.h"
#include "hw/host.h"
#include "kernels/activation/activation.h"
#include "kernels/cross/cross.h"
#include "kernels/gemm/gemm.h"
#include "kernels/interaction/interaction.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/loss/loss.h"
#include "kernels/optimizer/optimizer.h"
#include "loop/calibration.h"
#include "loop/measure_cache.h"
#include "loop/measure_embeddings.h"
#include "loop/sweeper.h"

namespace portolan {
namespace {

using kernels::ActivationKind;

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
    // Two passes, the faster of both counts: what else a machine does lasts for seconds and can only add to a time.
    constexpr int kPasses = 2;
    for (pass_ = 0; pass_ < kPasses; ++pass_) {
      const Calibration before = result_;
      Say("memory", 0);
      MeasureMemory();
      MeasureCache(&sweeper_);
      Say("elementwise kernels", 0.1);
      MeasureElementwise();
      Say("dot interaction", 0.3);
      MeasureInteraction();
      Say("matrix products", 0.4);
      MeasureProducts();
      Say("embedding rows", 0.7);
      MeasureEmbeddings(&sweeper_, b_.floats(), kMaxElements,
                        [&](double done) { Say("embedding rows", 0.7 + 0.3 * done); });
      if (pass_ > 0) KeepBetter(before);
    }
    sweeper_.Finish();
    for (const auto& [name, axes] : CalibratedGrids()) PORTOLAN_CHECK(result_.grids.count(name) > 0, "not measured");
    pass_ = kPasses - 1;
    Say("done", 1);
    Warn();
    return result_;
  }

 private:
  static constexpr int64_t kArrayFloats = kMaxElements + (int64_t{1} << 16);
  // Calls on small tensors go around in a window of so many numbers of each array, so that they find their data where a
  // training step leaves it: beyond the private caches.
  static constexpr int64_t kWindow = int64_t{1} << 20;

  void Say(const std::string& part, double done) const {
    if (progress_) progress_(part, 0.5 * (pass_ + done));
  }

  // Of the numbers beside the grids, those of the faster pass.
  void KeepBetter(const Calibration& before) {
    for (double Calibration::*seconds : {&Calibration::fork_s, &Calibration::lookup_call_s, &Calibration::sort_pass_s,
                                         &Calibration::far_lookup_s, &Calibration::far_update_s}) {
      result_.*seconds = std::min(result_.*seconds, before.*seconds);
    }
    for (double Calibration::*more :
         {&Calibration::kept_bytes, &Calibration::copy_bytes_per_s, &Calibration::copy_one_thread_bytes_per_s,
          &Calibration::cache_bytes_per_s, &Calibration::gemm_flops_per_s, &Calibration::gemm_bf16_flops_per_s,
          &Calibration::gemm_one_thread_flops_per_s}) {
      result_.*more = std::max(result_.*more, before.*more);
    }
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
      sweeper_.Sweep(name, axes, [&](const std::vector<double>& at) {
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
    sweeper_.Sweep("bce", {{64, 1024, 16384, 262144}}, [&](const std::vector<double>& at) {
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
    for (const auto& [kind_name, kind] : kinds) {
      kernels::DenseUpdate update;
      update.kind = kind;
      const auto sweep = [&](const std::string& name, const auto& step) {
        sweeper_.Sweep(name, axes, [&](const std::vector<double>& at) {
          return watch_.Median([&] { step(static_cast<int64_t>(at[0])); });
        });
      };
      sweep(std::string("dense_fused.") + kind_name, [&](int64_t n) {
        const int64_t o = Next(2 * n);  // state is up to two numbers a parameter
        cpu::DenseOptimizerStep(update, n, a_.floats() + o, b_.floats() + o, c_.floats() + o);
      });
      sweep(std::string("dense_separate.") + kind_name, [&](int64_t n) {
        const int64_t o = Next(2 * n);
        cpu::DenseOptimizerStepSeparate(update, n, a_.floats() + o, b_.floats() + o, c_.floats() + o,
                                        c_.floats() + o + n, b_.floats() + o + n);
      });
    }
    sweeper_.Sweep("squared_norm", axes, [&](const std::vector<double>& at) {
      return watch_.Median([&] { cpu::SquaredNorm(static_cast<int64_t>(at[0]), a_.floats()); });
    });
  }

  void MeasureInteraction() {
    namespace cpu = kernels::cpu;
    const std::vector<std::vector<double>> axes = {{64, 512, 4096}, {3, 9, 27}, {8, 32, 128}};
    const auto sweep = [&](const std::string& name,
                           const std::function<void(const kernels::DotInteractionShape&, int64_t)>& kernel) {
      sweeper_.Sweep(name, axes, [&](const std::vector<double>& at) {
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
    sweep("dot_forward", [&](const DotInteractionShape& s, int64_t o) { cpu::DotInteractionForward(s, x(o), y(o)); });
    sweep("dot_backward",
          [&](const DotInteractionShape& s, int64_t o) { cpu::DotInteractionBackward(s, x(o), y(o), z(o)); });
    sweep("pair_products", [&](const DotInteractionShape& s, int64_t o) {
      cpu::BatchedProduct(cpu::BatchedLayout::kRightTransposed, s.batch, s.features, s.features, s.dim, s.x_stride,
                          x(o), s.x_stride, x(o), s.features * s.features, c_.floats());
    });
    sweep("pair_gradients", [&](const DotInteractionShape& s, int64_t o) {
      cpu::BatchedProduct(cpu::BatchedLayout::kLeftTransposed, s.batch, s.features, s.dim, s.features,
                          s.features * s.features, c_.floats(), s.x_stride, x(o), s.x_stride, y(o));
    });
    sweep("pick_pairs", [&](const DotInteractionShape& s, int64_t o) { cpu::PickPairs(s, x(o), c_.floats(), y(o)); });
  }

  void MeasureProducts() {
    using kernels::Transpose;
    const std::vector<double> widths = {1, 8, 16, 32, 64, 128, 256, 512, 1024}, rows = {64, 256, 1024, 4096};
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
        sweeper_.Sweep(std::string("gemm.") + (fp32 ? "fp32." : "bf16.") + layout.name, axes,
                       [&](const std::vector<double>& at) {
                         kernels::GemmProblem p;
                         p.m = static_cast<int64_t>(at[0]);
                         p.n = static_cast<int64_t>(at[1]);
                         p.k = static_cast<int64_t>(at[2]);
                         // Larger ones: in proportion to fewer rows of the batch.
                         constexpr double kMaxFlops = 4e8;
                         constexpr int64_t kEnoughRows = 256;
                         const double flops = 2 * at[0] * at[1] * at[2];
                         int64_t& batch = gradient ? p.k : p.m;
                         const int64_t whole = batch;
                         const double rows_of_max = kMaxFlops / (flops / static_cast<double>(whole));
                         batch = std::min(whole, std::max(static_cast<int64_t>(rows_of_max), kEnoughRows));
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

  const std::function<void(const std::string&, double)>& progress_;
  Pool a_, b_, c_;
  int64_t place_ = 0;
  int pass_ = 0;
  Calibration result_;
  Sweeper sweeper_{&result_};
  Stopwatch& watch_ = sweeper_.watch();
};

}  // namespace

std::string MachineKey() {
  // To be raised with every change of the kernels that changes their times.
  constexpr int kKernelGeneration = 2;
  const HostMachine host = ReadHostMachine("");
  return (host.model.empty() ? "unknown processor" : host.model) + (host.type.empty() ? "" : " (" + host.type + ")") +
         ", " + std::to_string(omp_get_max_threads()) + " threads, kernels " + std::to_string(kKernelGeneration);
}

Calibration MeasureMachine(const std::function<void(const std::string&, double)>& progress) {
  return Machine(progress).Measure();
}

}  // namespace portolan
