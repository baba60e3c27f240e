#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/gpu_intrinsics.h"

// The frame of the kernels that visit every element of a [rows, width] tensor once, some of which also need sums over
// the columns (a bias gradient): a work-item stays in its column, so that what belongs to the column is read once.
namespace portolan::kernels::PORTOLAN_BACKEND {

constexpr int64_t kRowsPerBlock = 128;  // fixed: the order of the sums must depend on the shape only
constexpr int kColumnLanes = 64;        // work-items side by side; a block has four rows of them

inline int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline bool IsAligned16(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

// Body: kName; kSums, the number of column sums (0: none); Visit<kWidth>(row, column, sums) handles kWidth columns from
// `column` and adds to sums[0..kSums).
template <typename Body, int kWidth>
struct VisitColumns {
  static constexpr const char* kName = Body::kName;
  static constexpr int kThreads = 256;
  static constexpr int kRowsAtOnce = kThreads / kColumnLanes;
  static constexpr int kSums = Body::kSums;
  struct Shared {
    SharedArray<float, (kSums > 0 ? kSums : 1) * kThreads * kWidth> sums;
  };
  Body body;
  int64_t rows;
  int64_t width;
  float* partial;  // [row blocks, kSums, width]; null when there is nothing to sum

  PORTOLAN_DEVICE void operator()(Shared& shared) const {
    const int64_t tiles = (width + kColumnLanes * kWidth - 1) / (kColumnLanes * kWidth);
    const int64_t row_block = BlockIndex() / tiles;
    const int lane = ThreadIndex() % kColumnLanes;
    const int row_in_step = ThreadIndex() / kColumnLanes;
    const int64_t column = (BlockIndex() % tiles * kColumnLanes + lane) * kWidth;
    const int64_t first_row = row_block * kRowsPerBlock;
    const int64_t end_row = first_row + kRowsPerBlock < rows ? first_row + kRowsPerBlock : rows;

    device::Vec<float, kWidth> sums[kSums > 0 ? kSums : 1] = {};
    if (column < width) {
      for (int64_t row = first_row + row_in_step; row < end_row; row += kRowsAtOnce) {
        body.template Visit<kWidth>(row, column, sums);
      }
    }
    if constexpr (kSums > 0) {
      if (partial == nullptr) return;  // the same for all
      for (int s = 0; s < kSums; ++s)
        shared.sums.template StoreVec<kWidth>((s * kThreads + ThreadIndex()) * kWidth, sums[s]);
      SyncBlock();
      if (row_in_step != 0 || column >= width) return;
      for (int s = 0; s < kSums; ++s) {
        for (int i = 0; i < kWidth; ++i) {
          float total = 0;
          for (int step = 0; step < kRowsAtOnce; ++step) {
            float term = shared.sums[(s * kThreads + step * kColumnLanes + lane) * kWidth + i];
            total += term;
          }
          partial[(row_block * kSums + s) * width + column + i] = total;
        }
      }
    }
  }
};

// out[s][column] = the sum of `partial` over the row blocks, in order.
template <typename Body>
struct AddColumnSums {
  static constexpr const char* kName = "add_column_sums";
  static constexpr int kThreads = 256;
  using Shared = NoShared;
  const float* partial;  // [row_blocks, kSums, width]
  int64_t row_blocks;
  int64_t width;
  float* out[Body::kSums > 0 ? Body::kSums : 1];

  PORTOLAN_DEVICE void operator()(Shared&) const {
    const int64_t i = BlockIndex() * kThreads + ThreadIndex();
    if (i >= Body::kSums * width) return;
    float total = 0;
    for (int64_t block = 0; block < row_blocks; ++block) total += partial[block * Body::kSums * width + i];
    out[i / width][i % width] = total;
  }
};

// The sum of values [count] that lie on the device, added in order; waits for the stream.
inline double SumOnHost(device::Stream stream, const double* values, int64_t count) {
  std::vector<double> on_host(static_cast<std::size_t>(count));
  CopyToHost(stream, values, count, on_host.data());
  double sum = 0;
  for (const double value : on_host) sum += value;
  return sum;
}

enum class Alignment { kAny, k16Bytes };  // of every row of every tensor of a call

// Visits a tensor without column sums.
template <typename Body>
void Visit(device::Stream stream, Alignment alignment, int64_t rows, int64_t width, const Body& body) {
  const int64_t row_blocks = CeilDivide(rows, kRowsPerBlock);
  if (alignment == Alignment::k16Bytes) {
    Launch(stream, row_blocks * CeilDivide(width, kColumnLanes * 4), VisitColumns<Body, 4>{body, rows, width, nullptr});
  } else {
    Launch(stream, row_blocks * CeilDivide(width, kColumnLanes), VisitColumns<Body, 1>{body, rows, width, nullptr});
  }
}

// The same, and the column sums to out[s] [width], s < kSums.
template <typename Body>
void VisitAndSum(device::Stream stream, Alignment alignment, int64_t rows, int64_t width, const Body& body,
                 float* const (&out)[Body::kSums]) {
  const int64_t row_blocks = CeilDivide(rows, kRowsPerBlock);
  Scratch<float> partial(stream, row_blocks * Body::kSums * width);
  if (alignment == Alignment::k16Bytes) {
    Launch(stream, row_blocks * CeilDivide(width, kColumnLanes * 4),
           VisitColumns<Body, 4>{body, rows, width, partial.data()});
  } else {
    Launch(stream, row_blocks * CeilDivide(width, kColumnLanes),
           VisitColumns<Body, 1>{body, rows, width, partial.data()});
  }
  AddColumnSums<Body> add{partial.data(), row_blocks, width, {}};
  for (int s = 0; s < Body::kSums; ++s) add.out[s] = out[s];
  Launch(stream, CeilDivide(Body::kSums * width, add.kThreads), add);
}

}  // namespace portolan::kernels::PORTOLAN_BACKEND
