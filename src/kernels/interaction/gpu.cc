#include "kernels/gpu_kernels.h"
#include "kernels/interaction/interaction.h"
#include "kernels/visit_columns.h"

// One block a sample.
namespace portolan::kernels::PORTOLAN_BACKEND {
namespace {

// With up to kHeldFeatures vectors, what a block uses again lies in shared memory, and a work-item has at most
// kHeldPairs pairs; with more, everything is read from the caches.
constexpr int kHeldFeatures = 64;
constexpr int kBlock = 256;
constexpr int kHeldPairs = (kHeldFeatures * (kHeldFeatures - 1) / 2 + kBlock - 1) / kBlock;
constexpr int kTileColumns = 32;
constexpr int kTileStride = kTileColumns + 1;  // lanes with neighbouring vectors meet different banks

struct Pair {
  int64_t i;
  int64_t j;
};
// Place of the pair (i, j), i < j, in the strict upper triangle of `features` vectors.
PORTOLAN_DEVICE int64_t PlaceOf(int64_t i, int64_t j, int64_t features) {
  return i * (2 * features - i - 1) / 2 + j - i - 1;
}
// The pair at a place: row i starts at i (2 F - i - 1) / 2. Solved in fp32, then mended.
PORTOLAN_DEVICE Pair PairAt(int64_t place, int64_t features) {
  const auto b = static_cast<float>(2 * features - 1);
  const float root = b * b - 8.0f * static_cast<float>(place);
  auto i = static_cast<int64_t>(0.5f * (b - Sqrt(root > 0 ? root : 0.0f)));
  while (i > 0 && PlaceOf(i, i + 1, features) > place) --i;
  while (PlaceOf(i + 1, i + 2, features) <= place) ++i;
  return {i, place - PlaceOf(i, i + 1, features) + i + 1};
}

enum class Operands { kHeld, kStreamed };

template <Operands kOperands>
struct InteractionForward {
  static constexpr const char* kName = "dot_interaction_forward";
  static constexpr int kThreads = kBlock;
  static constexpr bool kHeld = kOperands == Operands::kHeld;
  struct Shared {
    SharedArray<float, kHeld ? kHeldFeatures * kTileStride : 1> tile;  // [features, kTileColumns]
  };
  DotInteractionShape shape;
  const float* x;  // [batch, F, D]
  float* out;      // [batch, out_width]

  PORTOLAN_DEVICE void operator()(Shared& shared) const {
    const float* sample = x + BlockIndex() * shape.x_stride;
    float* row = out + BlockIndex() * shape.out_stride;
    const int64_t features = shape.features, dim = shape.dim;
    const int64_t pairs = features * (features - 1) / 2;
    for (int64_t d = ThreadIndex(); d < dim; d += kThreads) row[d] = sample[d];
    for (int64_t n = dim + pairs + ThreadIndex(); n < shape.out_width; n += kThreads) row[n] = 0;
    if constexpr (kHeld) {
      Held(shared, sample, pairs, row + dim);
    } else {
      for (int64_t place = ThreadIndex(); place < pairs; place += kThreads) {
        const Pair pair = PairAt(place, features);
        float sum = 0;
        for (int64_t d = 0; d < dim; ++d) sum += sample[pair.i * dim + d] * sample[pair.j * dim + d];
        row[dim + place] = sum;
      }
    }
  }

  PORTOLAN_DEVICE void Held(Shared& shared, const float* sample, int64_t pairs, float* products) const {
    const int64_t features = shape.features, dim = shape.dim;
    float sums[kHeldPairs] = {};
    int left[kHeldPairs] = {}, right[kHeldPairs] = {};  // places of the pair's vectors in the tile
    for (int k = 0; k < kHeldPairs; ++k) {
      const int64_t place = ThreadIndex() + k * kThreads;
      if (place >= pairs) continue;
      const Pair pair = PairAt(place, features);
      left[k] = static_cast<int>(pair.i) * kTileStride;
      right[k] = static_cast<int>(pair.j) * kTileStride;
    }
    for (int64_t first = 0; first < dim; first += kTileColumns) {
      for (int64_t n = ThreadIndex(); n < features * kTileColumns; n += kThreads) {
        const int64_t d = first + n % kTileColumns;
        shared.tile[n / kTileColumns * kTileStride + n % kTileColumns] =
            d < dim ? sample[n / kTileColumns * dim + d] : 0.0f;
      }
      SyncBlock();
      for (int k = 0; k < kHeldPairs; ++k) {
        if (ThreadIndex() + k * kThreads >= pairs) continue;
        for (int d = 0; d < kTileColumns; ++d) {
          const float a = shared.tile[left[k] + d], b = shared.tile[right[k] + d];
          sums[k] += a * b;
        }
      }
      SyncBlock();
    }
    for (int k = 0; k < kHeldPairs; ++k) {
      const int64_t place = ThreadIndex() + k * kThreads;
      if (place < pairs) products[place] = sums[k];
    }
  }
};

template <Operands kOperands>
struct InteractionBackward {
  static constexpr const char* kName = "dot_interaction_backward";
  static constexpr int kThreads = kBlock;
  static constexpr bool kHeld = kOperands == Operands::kHeld;
  struct Shared {
    SharedArray<float, kHeld ? kHeldFeatures*(kHeldFeatures - 1) / 2 : 1> dout;  // [pairs]
  };
  DotInteractionShape shape;
  const float* x;     // [batch, F, D]
  const float* dout;  // [batch, out_width]
  float* dx;          // [batch, F, D]

  PORTOLAN_DEVICE void operator()(Shared& shared) const {
    const float* sample = x + BlockIndex() * shape.x_stride;
    const float* row = dout + BlockIndex() * shape.out_stride;
    float* gradient = dx + BlockIndex() * shape.x_stride;
    const int64_t features = shape.features, dim = shape.dim;
    if constexpr (kHeld) {
      const int64_t pairs = features * (features - 1) / 2;
      for (int64_t place = ThreadIndex(); place < pairs; place += kThreads) shared.dout[place] = row[dim + place];
      SyncBlock();
    }
    for (int64_t n = ThreadIndex(); n < features * dim; n += kThreads) {
      const int64_t i = n / dim, d = n % dim;
      float sum = i == 0 ? row[d] : 0.0f;
      for (int64_t j = 0; j < features; ++j) {
        if (j == i) continue;
        const int64_t place = i < j ? PlaceOf(i, j, features) : PlaceOf(j, i, features);
        float slope = 0;
        if constexpr (kHeld) {
          slope = shared.dout[place];
        } else {
          slope = row[dim + place];
        }
        sum += slope * sample[j * dim + d];
      }
      gradient[n] = sum;
    }
  }
};

}  // namespace

void DotInteractionForward(const DotInteractionShape& shape, const float* x, float* out, device::Stream stream) {
  if (shape.features <= kHeldFeatures) {
    Launch(stream, shape.batch, InteractionForward<Operands::kHeld>{shape, x, out});
  } else {
    Launch(stream, shape.batch, InteractionForward<Operands::kStreamed>{shape, x, out});
  }
}

void DotInteractionBackward(const DotInteractionShape& shape, const float* x, const float* dout, float* dx,
                            device::Stream stream) {
  if (shape.features <= kHeldFeatures) {
    Launch(stream, shape.batch, InteractionBackward<Operands::kHeld>{shape, x, dout, dx});
  } else {
    Launch(stream, shape.batch, InteractionBackward<Operands::kStreamed>{shape, x, dout, dx});
  }
}

}  // namespace portolan::kernels::PORTOLAN_BACKEND
