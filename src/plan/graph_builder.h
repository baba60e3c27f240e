#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "cost/attention.h"
#include "cost/collective.h"
#include "cost/embedding.h"
#include "cost/gemm.h"
#include "cost/memory_bound.h"
#include "plan/collective_scopes.h"
#include "plan/shard_cost.h"
#include "plan/step_graph.h"

namespace portolan {

// The format in which a device multiplies when asked for `wanted`: itself, or, where it is narrower than the
// activations and the device has no such path, fp8 or the activations' format.
DType NativeGemmFormat(DType wanted, DType fallback, const Accelerator& chip);

// Products priced already under one recipe on one cluster: a placement search builds the same dense layers thousands of
// times. The key holds what differs between products of one recipe.
using GemmMemo = std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, GemmLayout, GemmEpilogue, DType>, Estimate>;

// Dense parameters whose products read a format narrower than their fp32 weights, and what all weights take in the
// formats that products read.
double NarrowParameters(const Model& model, const Recipe& recipe);
Bytes GemmWeightBytes(const Model& model, const Recipe& recipe);

// Appends priced tasks; shared by the lowering of dense blocks, sequence blocks and embeddings. Not part of the API.
class GraphBuilder {
 public:
  // `memo`: of this recipe and cluster, or null.
  GraphBuilder(const Model& m, const Recipe& r, const Cluster& c, GemmMemo* memo = nullptr)
      : model(m),
        recipe(r),
        cluster(c),
        chip(c.accelerator),
        local_batch(static_cast<double>(r.GlobalBatch(c.devices)) / c.devices),
        gemm(r.gemm),
        memo_(memo) {}

  const Model& model;
  const Recipe& recipe;
  const Cluster& cluster;
  const Accelerator& chip;
  const double local_batch;  // samples of one device
  DType gemm;                // asked for in the products of the block that is being lowered
  StepGraph graph;

  // Each returns the new task's index. `after` empty: the previous task of the same chain is up to the caller.
  int Add(std::string name, Category category, Stream stream, const Estimate& estimate, std::vector<int> after);
  int Gemm(const std::string& name, double m, double n, double k, GemmLayout layout, GemmEpilogue epilogue,
           std::vector<int> after, double batch = 1);
  // The same product for `count` sets of weights: one batched product, or a loop, as the recipe says.
  int OwnWeightGemm(const std::string& name, double m, double n, double k, GemmLayout layout, GemmEpilogue epilogue,
                    std::vector<int> after, double count);
  // A pointwise kernel that moves `read` and `written` bytes.
  int Pointwise(const std::string& name, double read, double written, std::vector<int> after);

  double ActivationBytes() const { return SizeOf(recipe.activation).value; }
  double NormBytes() const { return SizeOf(recipe.normalization).value; }

 private:
  Estimate PriceGemm(const GemmShape& shape) const;

  GemmMemo* memo_;
};

// Forward and backward of one block. Forward returns the index of its last task and adds what it keeps for backward to
// *saved_bytes; backward starts after `after`. `needs_input_gradient`: the block's inputs lead to parameters.
enum class InputGradient { kNeeded, kNotNeeded };
int LowerForward(GraphBuilder& builder, const Block& block, std::vector<int> after, double* saved_bytes);
int LowerBackward(GraphBuilder& builder, const Block& block, std::vector<int> after, InputGradient input_gradient);

int LowerTransformerForward(GraphBuilder& builder, const Block& block, const TransformerBlock& body,
                            std::vector<int> after, double* saved_bytes);
int LowerTransformerBackward(GraphBuilder& builder, const Block& block, const TransformerBlock& body,
                             std::vector<int> after);
int LowerHstuForward(GraphBuilder& builder, const Block& block, const HstuBlock& body, std::vector<int> after,
                     double* saved_bytes);
int LowerHstuBackward(GraphBuilder& builder, const Block& block, const HstuBlock& body, std::vector<int> after);

// Embedding side of a step: index exchange, lookups, exchange of rows; and backward. Volumes and times are those of the
// rank with the most to do.
struct EmbeddingWork {
  double index_exchange_bytes = 0;
  Estimate forward;
  Estimate index_sort;  // of the backward pass: needs only the indices
  Estimate backward;    // without the sort when it runs beside the dense layers
  double forward_exchange_bytes = 0;
  double backward_exchange_bytes = 0;
  double node_reduce_elements = 0;     // pooled sums first reduced inside the node, then exchanged between nodes
  double owner_unpooled_elements = 0;  // rows that the busiest owner sends as they are
  double dense_gradient_elements = 0;  // of replicated tables, all-reduced
  double local_output_elements = 0;    // pooled or unpooled elements of the local batch
  double local_unique_elements = 0;    // with dedup: distinct rows x dim of the local batch
  double kernels = 1;                  // lookup launches of the busiest rank
  double host_row_bytes = 0;  // rows and state that the busiest device's cache misses, one way over its host link
  Estimate host_find;         // of those rows: the indices of host tables sorted once more
  double input_bytes = 0;     // indices, dense features and labels copied from the host
  // With replicas: rows and state of the sharded tables on the fullest device.
  double sync_row_bytes = 0, sync_state_bytes = 0;
};
EmbeddingWork MeasureEmbeddings(const GraphBuilder& builder, const Placement& placement, RankBalance balance);
// The same with the shards that `pricer`, of one sharding group, has priced already.
EmbeddingWork MeasureEmbeddings(ShardPricer& pricer, const Placement& placement, RankBalance balance);
// BuildStepGraph with embedding work that is known.
StepGraph BuildStepGraph(const Model& model, const Recipe& recipe, const CollectiveScopes& scopes,
                         const EmbeddingWork& work, StepPart part = StepPart::kWhole, GemmMemo* memo = nullptr);

}  // namespace portolan
