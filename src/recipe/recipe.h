#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/yaml.h"
#include "ops/attention.h"
#include "ops/embedding.h"
#include "ops/optimizer.h"
#include "units/dtype.h"
#include "units/quantity.h"

namespace portolan {

// How one table is laid over the devices.
enum class Sharding {
  kAuto,          // the planner's choice: replicate small tables, balance the rest, split what is too large or too hot
  kDataParallel,  // a copy on every device; gradients are all-reduced
  kTable,         // whole, on one device
  kColumn,        // columns over `shards` devices
  kRow,           // rows over all devices
  kTableRow,      // rows over the devices of one node
};

// How kAuto tables and all shards are dealt to devices.
enum class Balance {
  kGreedy,    // longest processing time first by lookups and outputs (HugeCTR's planner)
  kSearched,  // and then improved by local search on the estimated step
};

// Removing duplicate indices of a local batch before they are exchanged: rows instead of lookups then travel and are
// gathered once.
enum class IndexDedup { kNone, kBeforeExchange };

// How far pointwise work is fused.
enum class Fusion {
  kFull,      // by hand: into GEMM epilogues and single kernels (HugeCTR)
  kCompiled,  // a graph compiler: chains of pointwise ops and norms become one kernel each (torch.compile, Triton)
  kEager,     // every framework op is a kernel of its own
};
// Who starts the kernels.
enum class Launch {
  kGraph,     // a captured graph: nothing to enqueue
  kExecutor,  // a native executor of a compiled graph, one launch a kernel (TensorFlow, XLA)
  kStream,    // a framework's interpreter, one call an operation (PyTorch)
};
// Whether embedding kernels have a stream of their own beside the dense layers, and the index sort of the backward pass
// runs beside them.
enum class Concurrency { kSingleStream, kMultiStream };

// What of the next batch may run beside the current one.
enum class Pipeline {
  kNone,           // one batch after the other, communication waited for
  kIndexExchange,  // the index exchange of the next batch (TorchRec TrainPipelineSparseDist)
  kEmbedding,      // and its embedding forward as soon as the tables are updated (HugeCTR inter-iteration overlap)
};
// How pooled sums reach the devices of their own node.
enum class NodeExchange {
  kLibrary,       // a collective library
  kDirectStores,  // the lookup kernel writes into peer memory, the backward kernel reads from it (HugeCTR hierarchical)
};
enum class GradientOverlap { kNone, kBackward };  // dense all-reduce in buckets during backward
enum class DenseParallelism { kReplicated, kShardedOptimizer, kFullySharded };
enum class Recompute {
  kNone,
  kCheap,   // inside sequence layers: norms, gates and activations, and HSTU's input projection; not attention
  kAll,     // every block again, from its inputs
  kListed,  // the blocks named
};
enum class GradientClip { kNone, kNorm };  // kNorm: one pass for the norm, one to scale

// Which devices hold the copies of one shard where the tables are replicated in groups (Recipe::replicas).
enum class ReplicaLayout {
  kStrided,  // neighbours: copies are averaged inside a node, a group's exchange spans the nodes (TorchRec's default)
  kContiguous,  // a group is consecutive devices: its exchange stays near, copies are averaged between groups
};
// Which rows the cache of a host table keeps.
enum class HostCachePolicy {
  kLfu,  // the most frequently used ones
  kLru,  // the most recently used ones
};

enum class TableKernels { kBatched, kPerTable };  // one lookup kernel for all tables of a dimension, or one a table
// How rows get their gradients: in one pass with the optimizer, or as frameworks with sparse gradients do it: a tensor
// of gradients of all lookups, coalesced to one a row, then the optimizer's operations one by one. Priced on the CPU
// only.
enum class EmbeddingUpdate { kFused, kSeparate };
enum class GroupedProducts {
  kBatched,
  kLoop
};  // layers with weights of their own a field: one product, or one a field

// A revision of the model's structure by a rule of recipe/rules; `multiple` is its parameter where it has one.
struct StructureChange {
  std::string rule;
  int64_t multiple = 1;
};

// Where a table's home is.
enum class TableMemory {
  kAuto,    // by its size, Recipe::host_tables_min
  kDevice,  // HBM
  kHost,    // the node's memory, behind a cache in HBM
};

struct TableSharding {
  Sharding sharding = Sharding::kAuto;
  int shards = 1;  // kColumn
  TableMemory memory = TableMemory::kAuto;
};

// The software side of a training job: everything that changes speed and memory but not the model. Read from YAML;
// docs/recipes.md is the reference of the format.
struct Recipe {
  std::string id;
  std::string description;
  std::string source;

  int64_t global_batch = 0;  // 0 = local_batch x devices
  int64_t local_batch = 0;

  DType gemm = DType::kBf16;                   // input format of the matrix units
  std::map<std::string, DType> gemm_by_block;  // exceptions, by block name
  DType activation = DType::kBf16;             // tensors kept between layers
  DType normalization = DType::kFp32;          // output of norms and residual stream before the next GEMM's cast
  DType embedding_row = DType::kFp32;          // stored rows
  DType embedding_output = DType::kFp32;       // pooled rows and their gradients on the device
  DType index = DType::kInt64;

  Sharding sharding = Sharding::kAuto;
  Balance balance = Balance::kGreedy;
  Bytes data_parallel_max{8e6};                 // kAuto: tables of at most this size are replicated
  std::map<std::string, TableSharding> tables;  // by table name
  // Tables of at least so many bytes (rows and state) live in host memory; 0: none.
  Bytes host_tables_min{0};
  double host_cache_fraction =
      0.2;  // of a host table's rows, the hottest ones, are cached in HBM (as FBGEMM's default)
  HostCachePolicy host_cache = HostCachePolicy::kLfu;
  // 2D sharding: the devices form `replicas` groups, each of which holds every sharded table and serves its own
  // samples; the copies of a shard are averaged, rows and state, every replica_sync_steps steps. 1: one group, no
  // copies.
  int replicas = 1;
  ReplicaLayout replica_layout = ReplicaLayout::kStrided;
  int64_t replica_sync_steps = 1;
  // The rows with the most lookups, over all tables, that every device holds a copy of; the rest stays sharded.
  int64_t hot_rows = 0;
  IndexDedup dedup = IndexDedup::kNone;
  TableKernels table_kernels = TableKernels::kBatched;
  EmbeddingUpdate embedding_update = EmbeddingUpdate::kFused;
  std::optional<EmbeddingOptimizer> embedding_optimizer;  // otherwise the model's
  std::optional<DenseOptimizer> dense_optimizer;
  DType embedding_state = DType::kFp32;  // stored optimizer state of the tables
  DType dense_state = DType::kFp32;      // and of the dense layers

  DType embedding_forward_comm = DType::kFp32;
  DType embedding_backward_comm = DType::kFp32;
  DType dense_gradient_comm = DType::kFp32;

  DenseParallelism dense_parallelism = DenseParallelism::kReplicated;
  Fusion fusion = Fusion::kCompiled;
  Launch launch = Launch::kStream;
  Concurrency concurrency = Concurrency::kSingleStream;
  NodeExchange node_exchange = NodeExchange::kLibrary;
  Pipeline pipeline = Pipeline::kNone;
  GradientOverlap gradient_overlap = GradientOverlap::kBackward;
  AttentionImplementation attention = AttentionImplementation::kVendorTuned;
  GroupedProducts grouped_products = GroupedProducts::kBatched;
  int64_t accumulation_steps = 1;  // micro-batches of a step: gradients are summed, reduced and applied once
  GradientClip gradient_clip = GradientClip::kNone;
  Recompute recompute = Recompute::kNone;
  std::vector<std::string> recompute_blocks;  // kListed

  // Applied to the model in this order before anything else (ApplyStructure, recipe/rules/rule.h).
  std::vector<StructureChange> structure;

  Bytes reserve{4e9};  // context, library workspaces and allocator slack on each device

  int64_t GlobalBatch(int devices) const { return global_batch > 0 ? global_batch : local_batch * devices; }
  // Input format of the matrix units in the products of one block. The product that merge_shared_input makes of several
  // blocks has the format of the first of them.
  DType GemmOf(const std::string& block) const;
};

// Reads and checks a recipe file. Errors as LoadModel.
Result<Recipe> LoadRecipe(const std::string& path);
Result<Recipe> ReadRecipe(const YamlValue& value);
// The YAML of a recipe: ReadRecipe of it gives the same recipe.
std::string WriteRecipe(const Recipe& recipe);
// The recipe used when none is named: bf16, fp32 rows, kAuto sharding, compiled, local batch 1024.
Recipe DefaultRecipe();

const char* ShardingName(Sharding sharding);

}  // namespace portolan
