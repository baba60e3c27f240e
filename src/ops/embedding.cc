#include "ops/embedding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "base/check.h"

namespace portolan {
namespace {

constexpr double kRadixBits = 8;  // of one sort pass: the digit of Onesweep (arXiv 2206.01784) and CUB
constexpr double kMaxInt32 = 2147483648.0;

// State of one row and arithmetic of one update: values and flops per column and per row, as the formulas beside them.
struct Update {
  double state_per_column, state_per_row;
  double flops_per_column, flops_per_row;
  double transcendentals_per_column, transcendentals_per_row;
};

Update UpdateOf(EmbeddingOptimizer optimizer) {
  switch (optimizer) {
    case EmbeddingOptimizer::kNone:
      return {0, 0, 0, 0, 0, 0};
    case EmbeddingOptimizer::kSgd:  // w -= lr g
      return {0, 0, 2, 0, 0, 0};
    case EmbeddingOptimizer::kAdagrad:  // s += g g; w -= lr g / (sqrt(s) + eps): 2 + 1 + 1 + 2
      return {1, 0, 6, 0, 2, 0};
    case EmbeddingOptimizer::kRowwiseAdagrad:  // s += sum(g g) / dim; c = lr / (sqrt(s) + eps); w -= c g
      return {0, 1, 4, 4, 0, 2};
    case EmbeddingOptimizer::kAdam:  // m = b1 m + (1-b1) g; v = b2 v + (1-b2) g g; w -= lr m / (sqrt(v) + eps)
      return {2, 0, 11, 0, 2, 0};
    case EmbeddingOptimizer::kRowwiseAdam:  // m as Adam: 3; sum(g g): 2; w -= c m: 2; a row: mean 1, v 3, eps 1, lr 1
      return {1, 1, 7, 6, 0, 2};
  }
  PORTOLAN_CHECK(false, "embedding optimizer without a row");
}

void CheckShape(const EmbeddingShape& shape) {
  PORTOLAN_CHECK(shape.lookups >= 0 && shape.bags >= 0 && shape.unique_rows >= 0 && shape.dim >= 0,
                 "negative embedding size");
}

// Bytes of the sort part, by direction; see EmbeddingBackwardTraffic.
struct SortBytes {
  int passes = 0;
  Bytes read, written;
};

SortBytes SortBytesOf(const EmbeddingShape& shape) {
  const double n = shape.lookups;
  const double unique = shape.unique_rows;
  const Bytes key = SizeOf(shape.index);
  const Bytes value = SizeOf(n >= kMaxInt32 ? DType::kInt64 : DType::kInt32);
  SortBytes sort;
  if (n == 0) return sort;
  sort.passes = EmbeddingSortPasses(shape.table_rows);
  const Bytes pairs = (key + value) * n;
  const Bytes runs = (key + value) * unique;
  const Bytes linearise_read = key * n;
  const Bytes histogram_read = key * n;
  const Bytes run_length_read = key * n;
  const Bytes update_read = runs + value * n;
  sort.read = linearise_read + histogram_read + pairs * sort.passes + run_length_read + update_read;
  sort.written = pairs + pairs * sort.passes + runs;
  return sort;
}

Bytes RowBytes(const EmbeddingShape& shape) {
  return SizeOf(shape.row) * (shape.unique_rows * static_cast<double>(shape.dim));
}

// Integral of x^-exponent from a to b, without cancellation near exponent = 1.
double PowerIntegral(double a, double b, double exponent) {
  const double log_ratio = std::log(b / a);
  const double power = 1.0 - exponent;
  if (std::abs(power * log_ratio) < 1e-12) return std::pow(a, power) * log_ratio;
  return std::pow(a, power) * std::expm1(power * log_ratio) / power;
}

// 1 - (1 - p)^n, stable for small p.
double HitProbability(double p, double n) { return -std::expm1(n * std::log1p(-std::min(p, 1.0))); }

// Rows that are summed one by one; from there on row i stands for the interval [i - 1/2, i + 1/2] (midpoint rule, whose
// error falls with 1 / i^2).
constexpr double kExactRows = 64;
// Widest panel of the quadrature in ln(i) x max(1, exponent): the integrand turns from saturated to linear within a few
// units of it.
constexpr double kPanelWidth = 1.5;
// Gauss-Legendre, 5 points on [-1, 1] (Abramowitz and Stegun table 25.4).
constexpr std::array<double, 5> kNodes = {-0.906179845938664, -0.538469310105683, 0.0, 0.538469310105683,
                                          0.906179845938664};
constexpr std::array<double, 5> kWeights = {0.236926885056189, 0.478628670499366, 0.568888888888889, 0.478628670499366,
                                            0.236926885056189};

double SumUniqueZipf(double lookups, double rows, double exponent) {
  const double exact = std::min(std::floor(rows), kExactRows);
  double normaliser = 0;
  std::array<double, static_cast<size_t>(kExactRows)> weights;  // of the rows summed one by one
  const size_t head = static_cast<size_t>(exact);
  for (size_t i = 0; i < head; ++i) {
    weights[i] = std::pow(static_cast<double>(i + 1), -exponent);
    normaliser += weights[i];
  }
  const double begin = exact + 0.5;
  const double end = rows + 0.5;
  const bool has_tail = end > begin;
  if (has_tail) normaliser += PowerIntegral(begin, end, exponent);

  double unique = 0;
  for (size_t i = 0; i < head; ++i) unique += HitProbability(weights[i] / normaliser, lookups);
  if (!has_tail) return unique;
  const double log_begin = std::log(begin);
  const double log_normaliser = std::log(normaliser);
  const double width = std::log(end) - log_begin;
  const double panels = std::ceil(width * std::max(1.0, exponent) / kPanelWidth);
  const double half = width / panels / 2.0;
  for (double panel = 0; panel < panels; ++panel) {
    const double centre = log_begin + (2.0 * panel + 1.0) * half;
    for (size_t j = 0; j < kNodes.size(); ++j) {
      const double log_row = centre + half * kNodes[j];
      const double p = std::exp(-exponent * log_row - log_normaliser);
      unique += half * kWeights[j] * HitProbability(p, lookups) * std::exp(log_row);
    }
  }
  return unique;
}

// SumUniqueZipf, and what it answered before: tables of one size, and the many recipes that a plan prices for one
// model, ask the same again.
double ExpectedUniqueZipf(double lookups, double rows, double exponent) {
  struct Answer {
    double lookups = -1, rows = -1, exponent = -1, unique = 0;
  };
  constexpr size_t kRemembered = 4096;
  thread_local std::vector<Answer> answers(kRemembered);
  const std::hash<double> hash;
  Answer& answer = answers[(hash(lookups) * 31 + hash(rows) * 7 + hash(exponent)) % kRemembered];
  if (answer.lookups != lookups || answer.rows != rows || answer.exponent != exponent) {
    answer = {lookups, rows, exponent, SumUniqueZipf(lookups, rows, exponent)};
  }
  return answer.unique;
}

}  // namespace

Work EmbeddingForwardWork(const EmbeddingShape& shape) {
  CheckShape(shape);
  const double dim = static_cast<double>(shape.dim);
  Work work;
  if (shape.lookups > shape.bags) work.vector_flops = Flops(shape.lookups * dim);
  work.read = SizeOf(shape.index) * shape.lookups + SizeOf(shape.row) * (shape.lookups * dim);
  work.written = SizeOf(shape.output) * (shape.bags * dim);
  work.parallelism = shape.bags * dim;
  return work;
}

int EmbeddingSortPasses(double table_rows) {
  if (table_rows <= 1) return 1;
  const double key_bits = std::ceil(std::log2(table_rows));
  return static_cast<int>(std::max(1.0, std::ceil(key_bits / kRadixBits)));
}

EmbeddingBackwardTraffic EmbeddingBackwardBytes(const EmbeddingShape& shape, EmbeddingOptimizer optimizer) {
  CheckShape(shape);
  PORTOLAN_CHECK(shape.unique_rows <= shape.lookups * (1.0 + 1e-9), "more unique rows than lookups");
  PORTOLAN_CHECK(shape.lookups == 0 || shape.unique_rows > 0, "lookups without unique rows");
  const SortBytes sort = SortBytesOf(shape);
  const double dim = static_cast<double>(shape.dim);
  EmbeddingBackwardTraffic traffic;
  traffic.sort_passes = sort.passes;
  traffic.sort = sort.read + sort.written;
  traffic.gradient = SizeOf(shape.output) * (shape.bags * dim);
  traffic.gradient_gather = SizeOf(shape.output) * (shape.lookups * dim);
  traffic.rows = RowBytes(shape) * (optimizer == EmbeddingOptimizer::kNone ? 1.0 : 2.0);
  traffic.state = EmbeddingStateBytesPerRow(optimizer, shape.dim, shape.state) * (2.0 * shape.unique_rows);
  return traffic;
}

Work EmbeddingBackwardWork(const EmbeddingShape& shape, EmbeddingOptimizer optimizer) {
  const EmbeddingBackwardTraffic traffic = EmbeddingBackwardBytes(shape, optimizer);
  const SortBytes sort = SortBytesOf(shape);
  const Update update = UpdateOf(optimizer);
  const double dim = static_cast<double>(shape.dim);
  const double columns = shape.unique_rows * dim;
  const Bytes rows_written = RowBytes(shape);
  Work work;
  work.vector_flops =
      Flops(shape.lookups * dim + update.flops_per_column * columns + update.flops_per_row * shape.unique_rows);
  work.transcendentals =
      update.transcendentals_per_column * columns + update.transcendentals_per_row * shape.unique_rows;
  work.read = sort.read + traffic.gradient + (traffic.rows - rows_written) + traffic.state / 2.0;
  work.written = sort.written + rows_written + traffic.state / 2.0;
  work.parallelism = columns;
  return work;
}

Bytes EmbeddingStateBytesPerRow(EmbeddingOptimizer optimizer, int64_t dim, DType state) {
  const Update update = UpdateOf(optimizer);
  return SizeOf(state) * (update.state_per_column * static_cast<double>(dim) + update.state_per_row);
}

double ExpectedUniqueRows(double lookups, double rows, double zipf_exponent) {
  PORTOLAN_CHECK(lookups >= 0 && rows >= 0 && zipf_exponent >= 0, "negative lookups, rows or exponent");
  if (lookups == 0 || rows == 0) return 0;
  rows = std::max(rows, 1.0);
  const double unique = zipf_exponent == 0 ? rows * HitProbability(1.0 / rows, lookups)
                                           : ExpectedUniqueZipf(lookups, rows, zipf_exponent);
  return std::min({unique, lookups, rows});
}

}  // namespace portolan
