#pragma once

#include <cstdint>

#include "device/stream.h"
#include "kernels/activation/activation.h"
#include "kernels/embedding/embedding.h"
#include "kernels/interaction/interaction.h"
#include "kernels/optimizer/optimizer.h"

// The kernels of the CUDA engine. What they compute is said in the header of each op; here activations and their
// gradients may be bf16, and rows may have gaps. All pointers are to device memory, all launches queue on the stream
// and return at once, nothing waits for the device. Parameters and their gradients are fp32. Sums run in an order that
// the shapes alone decide. T is float or Bf16.
namespace portolan::kernels::cuda {

struct Bf16 {
  uint16_t bits;
};

// [rows, width] numbers, `stride` from one row to the next. Rows whose address and stride are multiples of 16 bytes are
// read 16 bytes at a time.
template <typename T>
struct Rows {
  T* data = nullptr;
  int64_t stride = 0;
};

// Memory for the partial sums of column sums: floats for `sums` sums over up to `rows` rows of `width`.
int64_t ColumnSumFloats(int64_t rows, int64_t width, int64_t sums);

// y = x, converted.
template <typename From, typename To>
void Convert(int64_t rows, int64_t width, Rows<const From> x, Rows<To> y, device::Stream stream);
// y += x (kAdd) or y = x.
enum class Assign { kOverwrite, kAdd };
template <typename T>
void CopyOrAdd(int64_t rows, int64_t width, Rows<const T> x, Rows<T> y, Assign assign, device::Stream stream);
template <typename T>
void FillColumns(int64_t rows, int64_t width, float value, Rows<T> y, device::Stream stream);

// y = activation(x + bias); bias null: none. x is left as it is. x and y may be one tensor.
template <typename T>
void ActivationForward(ActivationKind kind, int64_t rows, int64_t width, Rows<const T> x, const float* bias, Rows<T> y,
                       device::Stream stream);
// dx = dy activation'(x + bias) and dbias [width] = its column sums. y is read for kRelu and kSigmoid, x and bias for
// kSilu and kGelu. dx and dy may be one tensor.
template <typename T>
void ActivationBackward(ActivationKind kind, int64_t rows, int64_t width, Rows<const T> x, const float* bias,
                        Rows<const T> y, Rows<const T> dy, Rows<T> dx, float* dbias, float* partial,
                        device::Stream stream);

// y = x0 (u + bias) + x.
template <typename T>
void CrossForward(int64_t rows, int64_t width, Rows<const T> x0, Rows<const T> u, const float* bias, Rows<const T> x,
                  Rows<T> y, device::Stream stream);
// du = dy x0; dbias = its column sums; dx0 = (kAdd: dx0 +) dy (u + bias) (kWithResidual: + dy, which is the gradient of
// x where x is x0).
enum class CrossResidual { kNone, kWithResidual };
template <typename T>
void CrossBackward(int64_t rows, int64_t width, Rows<const T> x0, Rows<const T> u, const float* bias, Rows<const T> dy,
                   Rows<T> du, Rows<T> dx0, Assign assign, CrossResidual residual, float* dbias, float* partial,
                   device::Stream stream);

template <typename T>
void DotInteractionForward(const DotInteractionShape& shape, const T* x, T* out, device::Stream stream);
template <typename T>
void DotInteractionBackward(const DotInteractionShape& shape, const T* x, const T* dout, T* dx, device::Stream stream);

// `tokens` vectors of `width` in each row. mean and rstd are taken from x again in the backward pass.
template <typename T>
void LayerNormForward(int64_t rows, int64_t tokens, int64_t width, Rows<const T> x, const float* gamma,
                      const float* beta, Rows<T> y, device::Stream stream);
template <typename T>
void LayerNormBackward(int64_t rows, int64_t tokens, int64_t width, Rows<const T> x, const float* gamma,
                       Rows<const T> dy, Rows<T> dx, float* dgamma, float* dbeta, float* partial,
                       device::Stream stream);

// Numbers in the memory for partial sums over a whole tensor.
constexpr int64_t kNormPartials = 1024;

// The last linear layer, of one output: logits[r] = sum x[r] w + bias[0].
template <typename T>
void LogitForward(int64_t rows, int64_t width, Rows<const T> x, const float* w, const float* bias, float* logits,
                  device::Stream stream);
// dx = dlogits w (data null: not wanted); dw [width], dbias [1] overwritten. `sums`: kNormPartials doubles.
template <typename T>
void LogitBackward(int64_t rows, int64_t width, Rows<const T> x, const float* w, const float* dlogits, Rows<T> dx,
                   float* dw, float* dbias, float* partial, double* sums, device::Stream stream);

// What the update of a step reads, decided on the device so that nothing waits for the host.
struct StepControl {
  double loss = 0;           // sum of the weighted losses
  double squared_norm = 0;   // of all gradients; with clipping only
  float gradient_scale = 1;  // of clipping
  int32_t apply = 0;         // 0: loss or norm was not finite, in this step or one before it: nothing is updated
};
// loss of binary cross-entropy; dlogits = gradient_scale weight (sigmoid - label). dlogits, weights may be null.
// `partial`: kNormPartials doubles.
void LossAndGradient(int64_t rows, const float* logits, const float* labels, const float* weights, float gradient_scale,
                     float* dlogits, double* partial, StepControl* control, device::Stream stream);
// control->squared_norm = sum of squares of dense gradients and of `row_squares` [row_count] (null: none), then
// gradient_scale = clip_norm / norm where the norm is larger; not finite: apply = 0. `partial`: kNormPartials doubles.
void ClipScale(int64_t count, const float* gradients, const double* row_squares, int64_t row_count, double clip_norm,
               double* partial, StepControl* control, device::Stream stream);

// One optimizer step over [count] parameters, and their bf16 copy (null: none). Reads control.
void DenseUpdateStep(const DenseUpdate& update, int64_t count, const float* gradient, float* weights, float* state,
                     Bf16* copy, const StepControl* control, device::Stream stream);

// Initial values: as the CPU engine's, element by element up to the last bits of log and cos.
void InitialNormal(uint32_t key, double deviation, int64_t rows, int64_t width, int64_t stride, float* values,
                   device::Stream stream);
// row_stride_bytes: from one row to the next.
void InitialRows(uint64_t seed, uint64_t table_index, const EmbeddingTable& table, int64_t row_stride_bytes,
                 device::Stream stream);

// Where the rows of a table are that lies in host memory (embedding/cuda_cache.h). record_bytes 0: it does not.
struct CachedTable {
  char* records = nullptr;  // of its cache, on the device
  char* host = nullptr;     // [rows] records, as the device reaches them; a multiple of record_bytes from `records`
  char* host_records = nullptr;  // the same memory as the host reaches it
  uint32_t* slots = nullptr;     // [rows], on the device: the record of the cache that holds a row, or kNoSlot
  int64_t record_bytes = 0;      // a row, then its state
  int64_t state_offset = 0;      // of the state in a record, in bytes
  int64_t row_bytes = 0;
  int32_t state_floats = 0;
  int32_t cache = 0;
};

// Embeddings. Pooling is the sum. `tables` and `features` lie on the device, output_stride counts numbers of T.
struct EmbeddingLookups {
  const EmbeddingTable* tables = nullptr;      // [table_count]
  const EmbeddingFeature* features = nullptr;  // [feature_count]; output is a T*
  int32_t table_count = 0, feature_count = 0;
  int32_t max_dim = 0;
  int64_t batch = 0;
  int64_t lookups = 0;
  int64_t row_count = 0;               // over all tables
  const int64_t* first_row = nullptr;  // [table_count]: place of each table's first row among all
  const int64_t* offsets = nullptr;    // [feature_count * batch + 1]
  const int64_t* ids = nullptr;        // [lookups]
  const float* weights = nullptr;      // [lookups] or null
  // [table_count], or null: no table lies in host memory. Of those that do, `rows` of the table is
  // CachedTable::records, and the forward pass takes the places that PlaceLookups makes of ids.
  const CachedTable* cached = nullptr;
  // Every table is read by one feature, rows are fp32, dims multiples of 4, and rows, state, outputs and gradients lie
  // so that four numbers can be read at once: the kernels need not ask.
  bool plain_rows = false;
};
template <typename T>
void EmbeddingForward(const EmbeddingLookups& lookups, device::Stream stream);

// Sorted lookups: by row, in the order of the batch inside a row.
struct SortedLookups {
  uint32_t* rows = nullptr;    // [lookups]: first_row of the table + row, ascending
  uint32_t* places = nullptr;  // [lookups]: bag, or lookup where lookups have weights
  void* workspace = nullptr;
};
// Bytes of workspace for sorting and the backward pass.
int64_t EmbeddingWorkspaceBytes(int64_t lookups, int32_t max_dim);
// Reads ids and offsets only: may run beside the forward pass. Rows below 2^31 over all tables (the caller checks).
SortedLookups SortByRow(const EmbeddingLookups& lookups, void* workspace, int64_t workspace_bytes,
                        device::Stream stream);
// As kernels/embedding/embedding.h says, with control. `features` point to the gradients, of T.
template <typename T>
void EmbeddingUpdate(const EmbeddingLookups& lookups, const SortedLookups& sorted, const RowUpdate& update,
                     const StepControl* control, device::Stream stream);
// Sums of the squares of the rows' gradients, [count] of them, in the workspace: for clipping, before the update.
struct RowSquares {
  const double* values = nullptr;
  int64_t count = 0;
};
template <typename T>
RowSquares EmbeddingSquares(const EmbeddingLookups& lookups, const SortedLookups& sorted, const StepControl* control,
                            device::Stream stream);

// Synthetic samples made on the device: engine/data/synthetic.h says what they are.
struct SyntheticFeature {
  int64_t rows = 0;
  int64_t lookups = 0;  // a bag
  double exponent = 0;
  int64_t multiplier = 1, shift = 0;
  int32_t first_bin = 0, bins = 0;  // of the bins of all features; 0: Zipf
};
struct SyntheticBin {
  double cumulative = 0;
  int64_t first = 0, count = 0;
};
struct SyntheticWorld {
  const SyntheticFeature* features = nullptr;  // [feature_count], on the device
  const SyntheticBin* bins = nullptr;
  int32_t feature_count = 0;
  int64_t dense_width = 0;
  uint64_t seed = 0, split = 0;
  double scale = 1, offset = 0;
};
// Samples first_sample ... of the world: dense [size, dense_width], labels [size], ids and offsets of a batch.
void MakeSynthetic(const SyntheticWorld& world, int64_t first_sample, int64_t size, float* dense, float* labels,
                   int64_t* ids, int64_t* offsets, device::Stream stream);

}  // namespace portolan::kernels::cuda
