#pragma once

#include "engine/network.h"
#include "kernels/embedding/embedding.h"
#include "kernels/optimizer/optimizer.h"

// What every device's network hands to the kernels and to checkpoints in the same way.
namespace portolan {

// One step of the dense parameters and of the embedding rows, gradients not scaled.
kernels::DenseUpdate DenseUpdateOf(const UpdateSettings& settings, kernels::DenseUpdateKind kind);
kernels::RowUpdate RowUpdateOf(const UpdateSettings& settings, kernels::RowOptimizer optimizer);

// Adds the rows of `table` and what `optimizer` keeps of them, both in host memory: [row_count] rows, [row_count,
// RowStateFloats] fp32 (not read where that is 0).
void AddTableStates(const std::string& name, const kernels::EmbeddingTable& table, kernels::RowOptimizer optimizer,
                    void* rows, void* row_state, std::vector<TrainableNetwork::State>* states);

}  // namespace portolan
