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

  // The mean of a kernel that finds its data where it left it and one that finds it as another kernel left it, whose
  // parts were dealt to the threads otherwise: of two threads, half of what one reads the other has written. Where the
  // cores do not share a cache at the moment, that is what slows a step down.
  ClassTimes Seconds() {
    float *a = values.data(), *b = a + kNumbers, *d = b + kNumbers;
    kernels::GemmProblem problem;
    problem.m = kRowsOfTensor;
    problem.n = problem.k = problem.lda = problem.ldb = problem.ldd = 128;
    kernels::RowUpdate update;
    update.learning_rate = 1e-9f;
    const auto product = [&] { kernels::cpu::Gemm(problem, a, b, d); };
    const auto pass = [&] {
      kernels::cpu::ActivationForward(kernels::ActivationKind::kRelu, kRowsOfTensor, 128, d, 128, a);
    };
    const auto lookup = [&] { kernels::cpu::EmbeddingForward(bags); };
    const auto update_rows = [&] { kernels::cpu::EmbeddingBackward(bags, update, workspace.data()); };
    ClassTimes times;
    const auto time = [&](KernelClass kernel_class, const std::function<void()>& run,
                          const std::function<void()>& before) {
      times[static_cast<size_t>(kernel_class)] = 0.5 * (watch.Median(run) + watch.Median(run, before));
    };
    time(KernelClass::kProduct, product, pass);
    time(KernelClass::kElementwise, pass, product);
    time(KernelClass::kLookup, lookup, update_rows);
    time(KernelClass::kUpdate, update_rows, lookup);
    return times;
  }

  // Tensors of 1 MB: more than the private caches hold of them, as in a step.
  static constexpr int64_t kRowsOfTensor = 2048, kNumbers = kRowsOfTensor * 128;
  static constexpr int64_t kDim = 32, kRows = 1 << 12, kLookups = 8192;
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
