#include "kernels/embedding/cuda_update.h"

namespace portolan::kernels::cuda {

template <>
void EmbeddingUpdate<float>(const EmbeddingLookups& lookups, const SortedLookups& sorted, const RowUpdate& update,
                            const StepControl* control, device::Stream stream) {
  UpdateRows<float>(lookups, sorted, update, control, stream);
}

}  // namespace portolan::kernels::cuda
