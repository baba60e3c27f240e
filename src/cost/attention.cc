#include "cost/attention.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace portolan {
namespace {

// Queries and keys of one step. FlashAttention-2/3, CK and Triton use 64..192 each, FlashAttention-4 256 x 128; 128 is
// the common one and the constants below are fitted with it.
constexpr double kTile = 128.0;
// Head dimensions are padded to a multiple of the matrix instructions' depth.
constexpr int64_t kDimMultiple = 16;

// The shape of one direction's kernel. Fitted on 2026-11-30 with scipy.optimize.least_squares on log(predicted /
// measured) over the kernel times of public benchmarks in attention_test.cc (70 forward, 34 backward; none is a
// training step) and the facts given there; docs/cost-attention.md lists the errors.
//   B200   FlashAttention-4: AMD-AGI/Primus-DLRM@161a59e doc/perf_analysis.md "Standalone"; flash-attention PR #2605
//   MI355X CK FlashAttention-2: same document; AITER: ROCm/aiter PRs #815 and #4205, ROCm/FlyDSL PR #629
//   H100   FlashAttention-3: arXiv 2407.08608 figures 5 and 6; tritonbench PR #1267
//   A100   FlashAttention-2: arXiv 2307.08691 abstract (73 % of peak forward, 63 % backward)
struct KernelConstants {
  double matrix_utilisation;  // of the rate that the best large GEMM sustains
  double overlap;             // share of the shorter pipeline hidden behind the longer: 0 = serial, 1 = perfect
  double softmax_lane_ops;    // vector instructions a score: scale, mask, maximum, sum, conversion, rescale
  double silu_lane_ops;       // the same without row maximum, sum and rescale
  double block_seconds;       // prologue and epilogue of one block of 128 rows
  double qk_products;         // matrix products of depth or width qk_dim
  double v_products;          // and v_dim
  double kernels;
};
constexpr KernelConstants kForward{1.0, 0.480, 8.0, 6.0, 3.03e-6, 1.0, 1.0, 1.0};
// The silu figure of the backward keeps the forward's ratio (assumed: no public kernel time of a backward HSTU with its
// shape was found).
constexpr KernelConstants kBackward{1.0, 0.0, 20.0, 15.0, 7.26e-6, 3.0, 2.0, 3.0};

// Results of special functions a score: exp; SiLU is x / (1 + exp(-x)), exp and reciprocal.
constexpr double kSoftmaxTranscendentals = 1.0;
constexpr double kSiluTranscendentals = 2.0;

// A compute unit with 64-wide waves issues to four SIMDs of 16 lanes; its data-sheet fp32 rate above 64 lanes x 2 comes
// from packed or dual issue of multiply-adds, which maxima, exponentials and conversions do not use (MI300X: 256 flops
// a clock and unit published, 128 without packing; AMD CDNA3 ISA guide). Its special functions run on the same SIMDs,
// so that their time adds to the vector time; units with 32-wide warps have a separate special-function unit.
constexpr double kWave64LanesPerUnit = 64.0;
// Special-function rate where a device states none: one lane in eight.
constexpr double kLanesPerTranscendental = 8.0;

// Time of a Triton kernel over the vendor's: geometric mean of FlashAttention-3 over Triton on H100 (arXiv 2407.08608
// figure 5: 1.2 at head 64, 1.6 at 128), AITER over Triton on MI300X (1.18 to 1.62, midiareshadi.github.io
// attn-dsl-bench), TLX over Triton HSTU on MI350X (facebookexperimental/triton PR #1647: 1.94) and FlashAttention-4
// over Triton on B200 (PyTorch PR #188644 against flash-attention PR #2605: 2.6); read 2026-11-30.
constexpr double kTritonSlowdown = 1.6;
// HSTU's Triton kernels are further behind. Forward: TLX over Triton on MI350X, 110.9 / 57.2 us (facebookexperimental/
// triton PR #1647). Backward: NVIDIA/recsys-examples exchanged Triton for CUTLASS on H100 and went from 115.8 to 302.6
// TFLOP/s in all, which leaves Triton about 80 TFLOP/s for forward and backward together (CUTLASS: 561 and 336), 5.4x
// in backward if forward is 1.94x; 3.2 is the geometric mean of the two. Read 2026-11-30; spread 1.9 to 5.4.
constexpr double kTritonHstuForwardSlowdown = 1.94;
constexpr double kTritonHstuBackwardSlowdown = 3.2;

// Unfused attention, passes over the score matrix. H100 "standard attention" of arXiv 2407.08608 figure 5: 20 bytes a
// score with a causal mask, 10 without; read 2026-11-30.
constexpr double kPointwiseBytes = 8.0;            // one fp32 read and write
constexpr double kUnfusedMatrixUtilisation = 0.7;  // batched products with one side of 64 or 128

// rowsum(O dO) reads O and dO, the fp32 query gradient is cleared, and read and written once more in the 16-bit type.
constexpr double kQueryGradientFp32Bytes = 8.0;

struct Tiling {
  double blocks = 0;   // of one sequence and head
  double steps = 0;    // 128 x 128 steps of all its blocks
  double longest = 0;  // steps of its longest block
};

Tiling DenseTiling(const AttentionShape& shape) {
  Tiling tiling;
  tiling.blocks = std::ceil(shape.query_length / kTile);
  const double all_keys = std::ceil(shape.key_length / kTile);
  if (shape.mask == AttentionMask::kNone) {
    tiling.steps = tiling.blocks * all_keys;
    tiling.longest = all_keys;
    return tiling;
  }
  for (double block = 0; block < tiling.blocks; ++block) {
    const double last_query = std::min((block + 1) * kTile, shape.query_length);
    const double keys = std::max(last_query + shape.key_length - shape.query_length, 0.0);
    tiling.steps += std::ceil(keys / kTile);
  }
  tiling.longest = all_keys;
  return tiling;
}

// Lengths l with mean and mean square; a length takes l / tile + 1/2 tiles on the average, so that a pair of lengths
// takes the mean of (l / tile + 1/2)^2. The longest sequence of a uniform distribution with this mean square is
// mean x (1 + sqrt(3 (ratio - 1))).
Tiling JaggedTiling(const AttentionShape& shape) {
  const double q = shape.query_length / kTile;
  const double k = shape.key_length / kTile;
  const double r = shape.mean_square_ratio;
  Tiling tiling;
  tiling.blocks = q + 0.5;
  if (shape.mask == AttentionMask::kNone) {
    tiling.steps = r * q * k + 0.5 * (q + k) + 0.25;
  } else {
    const double square = std::min(q, k);
    const double before = std::max(k - q, 0.0);
    const double tiles_squared = r * square * square + square + 0.25;
    tiling.steps = (square + 0.5) * before + (tiles_squared + square + 0.5) / 2.0;
  }
  tiling.longest = std::ceil(k * (1.0 + std::sqrt(3.0 * std::max(r - 1.0, 0.0))));
  return tiling;
}

Tiling TilingOf(const AttentionShape& shape) {
  return shape.mean_square_ratio > 1.0 ? JaggedTiling(shape) : DenseTiling(shape);
}

double Padded(int64_t dim) { return static_cast<double>((dim + kDimMultiple - 1) / kDimMultiple * kDimMultiple); }

Flops MatrixFlops(const AttentionShape& shape, const KernelConstants& constants, double scores) {
  return Flops(2.0 * scores *
               (constants.qk_products * Padded(shape.qk_dim) + constants.v_products * Padded(shape.v_dim)));
}

FlopsPerSecond MatrixRate(const Accelerator& accelerator, DType dtype) {
  for (const DType candidate : {dtype, dtype == DType::kFp16 ? DType::kBf16 : dtype}) {
    if (accelerator.sustained_matrix[candidate].value > 0) return accelerator.sustained_matrix[candidate];
    if (accelerator.peak_matrix[candidate].value > 0) return accelerator.peak_matrix[candidate];
  }
  return accelerator.peak_vector_fp32;
}

bool SharesVectorPipe(const Accelerator& accelerator) { return accelerator.wave_size == 64; }

// Lane operations a second that any vector instruction reaches.
double LaneRate(const Accelerator& accelerator) {
  const double rate = accelerator.peak_vector_fp32.value / 2.0;
  const double units_hz = accelerator.compute_units * accelerator.clock_boost.value;
  if (!SharesVectorPipe(accelerator) || units_hz <= 0) return rate;
  return std::min(rate, units_hz * kWave64LanesPerUnit);
}

bool IsSilu(const AttentionShape& shape) { return shape.kind == AttentionKind::kHstuSilu; }

// Time in which the compute units finish all blocks.
Seconds FusedCompute(const AttentionShape& shape, const Accelerator& accelerator, const KernelConstants& constants) {
  const Tiling tiling = TilingOf(shape);
  const double units = accelerator.compute_units;
  const double scores = kTile * kTile;  // of one step
  const double lane_rate = LaneRate(accelerator);
  const double special_rate =
      accelerator.transcendental_per_s > 0 ? accelerator.transcendental_per_s : lane_rate / kLanesPerTranscendental;
  const double matrix_rate = MatrixRate(accelerator, shape.dtype).value * constants.matrix_utilisation;
  const double matrix = MatrixFlops(shape, constants, scores).value * units / matrix_rate;
  const double special =
      scores * units * (IsSilu(shape) ? kSiluTranscendentals : kSoftmaxTranscendentals) / special_rate;
  const double vector =
      scores * units * (IsSilu(shape) ? constants.silu_lane_ops : constants.softmax_lane_ops) / lane_rate;
  const double softmax = SharesVectorPipe(accelerator) ? special + vector : std::max(special, vector);
  const double step = std::max(matrix, softmax) + (1.0 - constants.overlap) * std::min(matrix, softmax);
  const double rows = shape.sequences * static_cast<double>(shape.heads);
  const double all = rows * (tiling.blocks * constants.block_seconds + tiling.steps * step);
  const double longest = tiling.longest * step + constants.block_seconds;
  return Seconds(std::max(all / units, longest));
}

double ScoreMatrix(const AttentionShape& shape) {
  return shape.sequences * static_cast<double>(shape.heads) * shape.query_length * shape.key_length *
         shape.mean_square_ratio;
}

// Passes over the score matrix of the unfused implementation.
struct UnfusedPasses {
  double product_accesses;  // reads and writes by the products, in the tensor's type
  double pointwise;         // read and write in fp32; half a pass for a read alone
};
// Softmax is one kernel, SiLU and the division by the length are two, the mask is one; the backward also reads the
// stored result.
UnfusedPasses ForwardPasses(const AttentionShape& shape) {
  const double mask = shape.mask == AttentionMask::kCausal ? 1.0 : 0.0;
  return {2.0, mask + (IsSilu(shape) ? 2.0 : 1.0)};
}
UnfusedPasses BackwardPasses(const AttentionShape& shape) {
  const UnfusedPasses forward = ForwardPasses(shape);
  return {2.0 * forward.product_accesses, forward.pointwise + 0.5};
}

Estimate Unfused(const AttentionShape& shape, const Accelerator& accelerator, const KernelConstants& constants,
                 const UnfusedPasses& passes, const Work& work) {
  const double scores = ScoreMatrix(shape);
  const Seconds products =
      MatrixFlops(shape, constants, scores) / (MatrixRate(accelerator, shape.dtype) * kUnfusedMatrixUtilisation);
  const Bytes product_bytes = work.read + work.written + SizeOf(shape.dtype) * (scores * passes.product_accesses);
  const Seconds product_memory = product_bytes / accelerator.hbm_sustained;
  const Seconds pointwise = Bytes(scores * passes.pointwise * kPointwiseBytes) / accelerator.hbm_sustained;
  Estimate estimate;
  estimate.compute = products;
  estimate.memory = product_memory + pointwise;
  estimate.launch = accelerator.kernel_fixed * (passes.product_accesses + std::ceil(passes.pointwise));
  estimate.total = estimate.launch + std::max(products, product_memory) + pointwise;
  return estimate;
}

bool IsEmpty(const AttentionShape& shape) {
  return shape.sequences <= 0 || shape.query_length <= 0 || shape.key_length <= 0 || shape.heads <= 0;
}

void CheckAccelerator(const Accelerator& accelerator) {
  PORTOLAN_CHECK(
      accelerator.compute_units > 0 && accelerator.peak_vector_fp32.value > 0 && accelerator.hbm_sustained.value > 0,
      "an accelerator without units, vector rate or memory rate");
}

double Slowdown(const AttentionShape& shape, AttentionImplementation implementation, double triton_hstu) {
  if (implementation != AttentionImplementation::kTriton) return 1.0;
  return shape.kind == AttentionKind::kHstuSilu ? triton_hstu : kTritonSlowdown;
}

}  // namespace

Estimate AttentionForwardEstimate(const AttentionShape& shape, const Accelerator& accelerator,
                                  AttentionImplementation implementation) {
  CheckAccelerator(accelerator);
  if (IsEmpty(shape)) return {};
  const Work work = AttentionForwardWork(shape);
  if (implementation == AttentionImplementation::kFramework)
    return Unfused(shape, accelerator, kForward, ForwardPasses(shape), work);
  Estimate estimate;
  estimate.compute =
      FusedCompute(shape, accelerator, kForward) * Slowdown(shape, implementation, kTritonHstuForwardSlowdown);
  estimate.memory = (work.read + work.written) / accelerator.hbm_sustained;
  estimate.launch = accelerator.kernel_fixed * kForward.kernels;
  estimate.total = estimate.launch + std::max(estimate.compute, estimate.memory);
  return estimate;
}

Estimate AttentionBackwardEstimate(const AttentionShape& shape, const Accelerator& accelerator,
                                   AttentionImplementation implementation) {
  CheckAccelerator(accelerator);
  if (IsEmpty(shape)) return {};
  const Work work = AttentionBackwardWork(shape);
  if (implementation == AttentionImplementation::kFramework) {
    return Unfused(shape, accelerator, kBackward, BackwardPasses(shape), work);
  }
  const double query_rows = shape.sequences * static_cast<double>(shape.heads) * shape.query_length;
  const Bytes output = SizeOf(shape.dtype) * (query_rows * static_cast<double>(shape.v_dim));
  const Bytes query = SizeOf(shape.dtype) * (query_rows * static_cast<double>(shape.qk_dim));
  const Bytes query_fp32 = Bytes(query_rows * static_cast<double>(shape.qk_dim) * kQueryGradientFp32Bytes);
  const Seconds main_memory = (work.read + work.written) / accelerator.hbm_sustained;
  const Seconds streaming = (output * 2.0 + query + query_fp32) / accelerator.hbm_sustained;
  Estimate estimate;
  estimate.compute =
      FusedCompute(shape, accelerator, kBackward) * Slowdown(shape, implementation, kTritonHstuBackwardSlowdown);
  estimate.memory = main_memory + streaming;
  estimate.launch = accelerator.kernel_fixed * kBackward.kernels;
  estimate.total = estimate.launch + std::max(estimate.compute, main_memory) + streaming;
  return estimate;
}

}  // namespace portolan
