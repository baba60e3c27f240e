#pragma once

#include <string>
#include <vector>

#include "cost/estimate.h"
#include "hw/catalogue.h"
#include "model/model.h"
#include "plan/placement.h"
#include "recipe/recipe.h"

namespace portolan {

// What a task of a training step is charged to.
enum class Category {
  kGemm,
  kAttention,
  kElementwise,  // pointwise, norms, concatenations, dot interaction
  kEmbeddingForward,
  kEmbeddingBackward,
  kOptimizer,
  kSparseExchange,   // indices, embedding rows and their gradients
  kDenseCollective,  // gradients of the dense parameters
  kHostCopy,
};
constexpr int kCategoryCount = static_cast<int>(Category::kHostCopy) + 1;
const char* CategoryName(Category category);  // "gemm", "sparse_exchange", ...

// In-order queues of one device. All collectives share one queue: they share the links.
enum class Stream { kMain, kEmbedding, kCommunication, kHostCopy };
constexpr int kStreamCount = static_cast<int>(Stream::kHostCopy) + 1;

// One kernel (or `kernels` of them), collective or copy.
struct Task {
  std::string name;
  Category category = Category::kGemm;
  Stream stream = Stream::kMain;
  Estimate estimate;
  double kernels = 1;
  Flops matrix_flops;               // of matrix products
  Bytes moved;                      // by a pointwise kernel: read and written
  std::vector<int> after;           // tasks of this step that must have ended
  std::vector<int> after_previous;  // tasks of the step before
};

// One training step of one device (the one with the most to do), in issue order.
struct StepGraph {
  std::vector<Task> tasks;
  int last_of_step = -1;  // the next step's first kernels wait for it unless the recipe pipelines them

  // Bytes that live from forward to backward, per block, after recomputation.
  std::vector<double> saved_bytes_per_block;
  double peak_transient_bytes = 0;  // largest working tensors of one block beside the saved ones
  double exchange_buffer_bytes = 0;
};

// Whose embedding work a step waits for.
enum class RankBalance {
  kSlowest,  // the rank with the most to do
  kMean,     // an ideal balance of the same shards: a lower bound over all ways to deal them
};
// Which micro-batch of an accumulated step.
enum class StepPart {
  kWhole,       // with the reduction of the dense gradients and the dense optimizer
  kAccumulate,  // without
};

// Lowers a model under a recipe to priced tasks. Sizes are per device with local batch = global batch / devices.
StepGraph BuildStepGraph(const Model& model, const Recipe& recipe, const Cluster& cluster, const Placement& placement,
                         RankBalance balance = RankBalance::kSlowest, StepPart part = StepPart::kWhole);

}  // namespace portolan
