#include "kernels/cuda_rows.h"

// The samples of engine/data/synthetic.cc, drawn on the device: the same generator, draw by draw, in double. Where log
// and pow differ from the host's in the last bit, a row at the border of its rank can be its neighbour.
namespace portolan::kernels::cuda {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;

__device__ uint64_t NextBits(uint64_t* state) {
  uint64_t z = (*state += kGolden);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
__device__ uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t state = a ^ (b * 0xd6e8feb86659fd93ull + 0x2545f4914f6cdd1dull);
  return NextBits(&state);
}
__device__ double Unit(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }
__device__ double Bell(uint64_t bits) {
  const double sum = static_cast<double>(bits & 0xffff) + static_cast<double>((bits >> 16) & 0xffff) +
                     static_cast<double>((bits >> 32) & 0xffff) + static_cast<double>(bits >> 48);
  return (sum / 65536 - 2) * sqrt(3.0);
}
constexpr uint64_t kTeacherSpace = 0x7ea0000000000000ull;
__device__ double SecretWeight(uint64_t seed, uint64_t feature, uint64_t row) {
  return Bell(Mix(seed ^ kTeacherSpace ^ (feature << 44), row));
}
__device__ double SecretVector(uint64_t seed, uint64_t feature, uint64_t row, uint64_t axis) {
  return Bell(Mix(seed ^ (kTeacherSpace + (axis + 1) * 0x0100000000000000ull) ^ (feature << 44), row));
}

__device__ int64_t DrawRow(const SyntheticWorld& world, const SyntheticFeature& feature, uint64_t* state) {
  const auto rows = static_cast<double>(feature.rows);
  int64_t rank = 0;
  if (feature.bins > 0) {
    const SyntheticBin* bins = world.bins + feature.first_bin;
    const double share = Unit(NextBits(state)) * bins[feature.bins - 1].cumulative;
    int32_t bin = 0;
    while (bin < feature.bins - 1 && bins[bin].cumulative < share) ++bin;
    rank = bins[bin].first + static_cast<int64_t>(Unit(NextBits(state)) * static_cast<double>(bins[bin].count));
  } else {
    const double u = Unit(NextBits(state));
    if (feature.exponent == 0) {
      rank = static_cast<int64_t>(u * rows);
    } else if (fabs(feature.exponent - 1) < 1e-6) {
      rank = static_cast<int64_t>(exp(u * log(rows + 1))) - 1;
    } else {
      const double power = 1 - feature.exponent;
      rank = static_cast<int64_t>(pow(1 + u * (pow(rows + 1, power) - 1), 1 / power)) - 1;
    }
  }
  rank = rank < 0 ? 0 : rank > feature.rows - 1 ? feature.rows - 1 : rank;
  if (feature.rows < (int64_t{1} << 31)) return (rank * feature.multiplier + feature.shift) % feature.rows;
  const auto product = static_cast<unsigned __int128>(rank) * static_cast<unsigned __int128>(feature.multiplier) +
                       static_cast<unsigned __int128>(feature.shift);
  return static_cast<int64_t>(product % static_cast<unsigned __int128>(feature.rows));
}

__global__ void __launch_bounds__(128)
    Draw(SyntheticWorld world, int64_t first_sample, int64_t size, float* dense, float* labels, int64_t* ids) {
  const int64_t b = blockIdx.x * int64_t{128} + threadIdx.x;
  if (b >= size) return;
  uint64_t state = Mix(world.seed * kGolden + world.split, static_cast<uint64_t>(first_sample + b));
  double logit = 0;
  for (int64_t d = 0; d < world.dense_width; ++d) {
    const double value = Bell(NextBits(&state));
    dense[b * world.dense_width + d] = static_cast<float>(value);
    logit += value * SecretWeight(world.seed, 0xfff, static_cast<uint64_t>(d));
  }
  double previous[2] = {0, 0};
  int64_t first_lookup = 0;  // of the feature
  for (int32_t f = 0; f < world.feature_count; ++f) {
    const SyntheticFeature feature = world.features[f];
    double weight = 0, vector[2] = {0, 0};
    for (int64_t i = 0; i < feature.lookups; ++i) {
      const int64_t row = DrawRow(world, feature, &state);
      ids[first_lookup + b * feature.lookups + i] = row;
      weight += SecretWeight(world.seed, static_cast<uint64_t>(f), static_cast<uint64_t>(row));
      for (uint64_t axis = 0; axis < 2; ++axis) {
        vector[axis] += SecretVector(world.seed, static_cast<uint64_t>(f), static_cast<uint64_t>(row), axis);
      }
    }
    if (feature.lookups > 0) {
      const double norm = sqrt(static_cast<double>(feature.lookups));
      logit += weight / norm;
      for (double& axis : vector) axis /= norm;
    }
    if (f > 0) logit += 0.5 * (vector[0] * previous[0] + vector[1] * previous[1]);
    previous[0] = vector[0];
    previous[1] = vector[1];
    first_lookup += feature.lookups * size;
  }
  logit = world.scale * logit + world.offset;
  labels[b] = Unit(NextBits(&state)) < 1 / (1 + exp(-logit)) ? 1.0f : 0.0f;
}

__global__ void __launch_bounds__(256) Offsets(SyntheticWorld world, int64_t size, int64_t* offsets) {
  const int32_t f = static_cast<int32_t>(blockIdx.y);
  int64_t first = 0;
  for (int32_t before = 0; before < f; ++before) first += world.features[before].lookups * size;
  const int64_t lookups = world.features[f].lookups;
  for (int64_t b = blockIdx.x * int64_t{256} + threadIdx.x; b < size; b += gridDim.x * int64_t{256}) {
    offsets[f * size + b] = first + b * lookups;
    if (f == world.feature_count - 1 && b == size - 1) offsets[(f + 1) * size] = first + size * lookups;
  }
}

}  // namespace

void MakeSynthetic(const SyntheticWorld& world, int64_t first_sample, int64_t size, float* dense, float* labels,
                   int64_t* ids, int64_t* offsets, device::Stream stream) {
  if (size <= 0) return;
  Draw<<<static_cast<unsigned>(DivideUp(size, 128)), 128, 0, Native(stream)>>>(world, first_sample, size, dense, labels,
                                                                               ids);
  CheckLaunch("synthetic samples");
  if (world.feature_count == 0) return;
  const dim3 grid(static_cast<unsigned>(DivideUp(size, 256)), static_cast<unsigned>(world.feature_count));
  Offsets<<<grid, 256, 0, Native(stream)>>>(world, size, offsets);
  CheckLaunch("synthetic offsets");
}

}  // namespace portolan::kernels::cuda
