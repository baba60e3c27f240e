#include "kernels/embedding/cuda_update.h"

namespace portolan::kernels::cuda {

template <typename T>
RowSquares EmbeddingSquares(const EmbeddingLookups& lookups, const SortedLookups& sorted, const StepControl* control,
                            device::Stream stream) {
  RunAction<T>(lookups, sorted, TakeSquare{}, control, stream);
  const SortSpace space = LayOutSort(lookups.lookups, lookups.max_dim, sorted.workspace);
  return {space.squares, lookups.lookups > 0 ? space.square_count : 0};
}
template RowSquares EmbeddingSquares<float>(const EmbeddingLookups&, const SortedLookups&, const StepControl*,
                                            device::Stream);
template RowSquares EmbeddingSquares<Bf16>(const EmbeddingLookups&, const SortedLookups&, const StepControl*,
                                           device::Stream);

}  // namespace portolan::kernels::cuda
