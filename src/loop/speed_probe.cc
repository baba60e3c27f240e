#include <cmath>
#include <iterator>
#include <random>

#include "kernels/activation/activation.h"
#include "kernels/embedding/embedding.h"
#include "kernels/gemm/gemm.h"
#include "loop/calibration.h"
#include "loop/stopwatch.h"

namespace portolan {

// A product, a pass over a tensor, and an embedding table's forward and backward, each of a size that a small step has.
struct SpeedProbe::Kernels {
  Kernels() : values(3 * kNumbers, 0.5f), rows(kRows * kDim, 0.5f) {
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

  double Seconds() {
    float *a = values.data(), *b = a + kNumbers, *d = b + kNumbers;
    kernels::GemmProblem problem;
    problem.m = 1024;
    problem.n = problem.k = problem.lda = problem.ldb = problem.ldd = 128;
    kernels::RowUpdate update;
    const double times[] = {
        watch.Median([&] { kernels::cpu::Gemm(problem, a, b, d); }),
        watch.Median([&] { kernels::cpu::ActivationForward(kernels::ActivationKind::kRelu, 1024, 128, a, 128, b); }),
        watch.Median([&] { kernels::cpu::EmbeddingForward(bags); }),
        watch.Median([&] { kernels::cpu::EmbeddingBackward(bags, update, workspace.data()); }),
    };
    double logarithm = 0;
    for (const double seconds : times) logarithm += std::log(seconds) / static_cast<double>(std::size(times));
    return std::exp(logarithm);
  }

  static constexpr int64_t kNumbers = 1024 * 256, kDim = 32, kRows = 1 << 17, kLookups = 8192;
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
double SpeedProbe::Seconds() { return kernels_->Seconds(); }

}  // namespace portolan
