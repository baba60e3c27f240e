#include "engine/kernel_updates.h"

namespace portolan {
namespace {

const char* SafetensorsName(kernels::RowFormat format) {
  switch (format) {
    case kernels::RowFormat::kFp32:
      return "F32";
    case kernels::RowFormat::kFp16:
      return "F16";
    case kernels::RowFormat::kBf16:
      return "BF16";
    case kernels::RowFormat::kInt8:
      return "U8";
  }
  return "";
}

}  // namespace

kernels::DenseUpdate DenseUpdateOf(const UpdateSettings& settings, kernels::DenseUpdateKind kind) {
  kernels::DenseUpdate update;
  update.kind = kind;
  update.learning_rate = settings.dense_rate;
  update.momentum = settings.momentum;
  update.epsilon = settings.epsilon;
  update.beta1 = settings.beta1;
  update.beta2 = settings.beta2;
  update.step = settings.step;
  return update;
}

kernels::RowUpdate RowUpdateOf(const UpdateSettings& settings, kernels::RowOptimizer optimizer) {
  kernels::RowUpdate update;
  update.optimizer = optimizer;
  update.learning_rate = settings.row_rate;
  update.epsilon = settings.epsilon;
  update.beta1 = settings.beta1;
  update.beta2 = settings.beta2;
  update.step = settings.step;
  update.seed = settings.seed + static_cast<uint64_t>(settings.step) * 0x9e3779b97f4a7c15ull;
  return update;
}

void AddTableStates(const std::string& name, const kernels::EmbeddingTable& table, kernels::RowOptimizer optimizer,
                    void* rows, void* row_state, std::vector<TrainableNetwork::State>* states) {
  using Kind = TrainableNetwork::State::Kind;
  const int64_t row_bytes = kernels::RowBytes(table.format, table.dim);
  states->push_back({"table." + name,
                     SafetensorsName(table.format),
                     {table.row_count, table.format == kernels::RowFormat::kInt8 ? row_bytes : table.dim},
                     rows,
                     table.row_count * row_bytes,
                     Kind::kParameter});
  const int64_t floats = kernels::RowStateFloats(optimizer, table.dim);
  if (floats == 0) return;
  states->push_back({"optimizer.table." + name,
                     "F32",
                     {table.row_count, floats},
                     row_state,
                     4 * table.row_count * floats,
                     Kind::kOptimizer});
}

}  // namespace portolan
