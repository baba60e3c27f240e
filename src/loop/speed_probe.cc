#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "kernels/activation/activation.h"
#include "kernels/embedding/embedding.h"
#include "kernels/gemm/gemm.h"
#include "loop/calibration.h"
#include "loop/stopwatch.h"

namespace portolan {

// A product, a pass over a tensor, and an embedding table's forward and backward, each of a size that a small step has.
struct SpeedProbe::Kernels {
  Kernels() : values(3 * kNumbers, 0.5f), rows(kRows * kDim, 0.5f) {
    // A mean of each row's numbers: values neither grow nor vanish from call to call.
    std::fill_n(values.begin() + kNumbers, kNumbers, 1.0f / 128);
    std::mt19937_64 random(1);
    for (int64_t i = 0; i < kLookups; ++i) ids.push_back(static_cast<int64_t>(random() % kRows));
    for (int64_t i = 0; i <= kLookups; ++i) offsets.push_back(i);
    table.rows = rows.data();
    table.row_count = kRows;
    table.dim = kDim;
    feature.output = values.data();
    feature.output_stride = kDim;
    bags.tables = &table;
    bags.features = &feature;
    bags.table_count = bags.feature_count = 1;
    bags.batch = kLookups;
    bags.offsets = offsets.data();
    bags.ids = ids.data();
    workspace.resize(static_cast<size_t>(kernels::EmbeddingBackwardWorkspaceBytes(bags, kLookups)) / 8 + 8);
  }

  // Each kernel finds its data as a step leaves it: written by another kernel, whose parts were dealt to the threads
  // otherwise. Where the cores do not share a cache at the moment, that is what slows a step down.
  ClassTimes Seconds() {
    float *a = values.data(), *b = a + kNumbers, *d = b + kNumbers;
    kernels::GemmProblem problem;
    problem.m = 1024;
    problem.n = problem.k = problem.lda = problem.ldb = problem.ldd = 128;
    kernels::RowUpdate update;
    update.learning_rate = 1e-9f;
    const auto product = [&] { kernels::cpu::Gemm(problem, a, b, d); };
    const auto pass = [&] { kernels::cpu::ActivationForward(kernels::ActivationKind::kRelu, 1024, 128, d, 128, a); };
    const auto lookup = [&] { kernels::cpu::EmbeddingForward(bags); };
    const auto update_rows = [&] { kernels::cpu::EmbeddingBackward(bags, update, workspace.data()); };
    ClassTimes times;
    const auto time = [&](KernelClass kernel_class, const std::function<void()>& run,
                          const std::function<void()>& before) {
      double seconds = 0;
      for (int sample = 0; sample < kSamples; ++sample) {
        const double once = watch.Median(run, before);
        seconds = sample == 0 ? once : std::min(seconds, once);
      }
      times[static_cast<size_t>(kernel_class)] = seconds;
    };
    time(KernelClass::kProduct, product, pass);
    time(KernelClass::kElementwise, pass, product);
    time(KernelClass::kLookup, lookup, update_rows);
    time(KernelClass::kUpdate, update_rows, lookup);
    return times;
  }

  static constexpr int kSamples = 2;  // of three calls each; the faster median counts
  // All of it fits the private caches: what the training around it has left in the others is not to matter.
  static constexpr int64_t kNumbers = 1024 * 128, kDim = 32, kRows = 1 << 11, kLookups = 4096;
  Stopwatch watch;
  std::vector<float> values, rows;
  std::vector<int64_t> ids, offsets;
  std::vector<double> workspace;
  kernels::EmbeddingTable table;
  kernels::EmbeddingFeature feature;
  kernels::EmbeddingBags bags;
};

SpeedProbe::SpeedProbe() : kernels_(std::make_unique<Kernels>()) {}
SpeedProbe::~SpeedProbe() = default;
ClassTimes SpeedProbe::Seconds() { return kernels_->Seconds(); }

ClassTimes SpeedProbe::Slowdown(const Calibration& calibration) {
  ClassTimes times = Seconds();
  for (size_t c = 0; c < kKernelClasses; ++c) times[c] /= calibration.probe_s[c];
  return times;
}

ClassTimes MedianOf(const std::vector<ClassTimes>& times) {
  ClassTimes medians{};
  for (size_t c = 0; c < kKernelClasses && !times.empty(); ++c) {
    std::vector<double> of_class;
    for (const ClassTimes& each : times) of_class.push_back(each[c]);
    std::nth_element(of_class.begin(), of_class.begin() + static_cast<int64_t>(times.size() / 2), of_class.end());
    medians[c] = of_class[times.size() / 2];
  }
  return medians;
}

const char* KernelClassName(size_t kernel_class) {
  constexpr const char* kNames[kKernelClasses] = {"products", "elementwise", "lookups", "updates"};
  return kNames[kernel_class];
}

KernelClass ClassOf(const std::string& grid) {
  const auto begins = [&](const char* with) { return grid.rfind(with, 0) == 0; };
  if (begins("embedding_forward")) return KernelClass::kLookup;
  if (begins("embedding_")) return KernelClass::kUpdate;
  if (begins("gemm.") || begins("dot_") || begins("pair_")) return KernelClass::kProduct;
  return KernelClass::kElementwise;
}

}  // namespace portolan
