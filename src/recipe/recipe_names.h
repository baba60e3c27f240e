#pragma once

#include "base/yaml_enum.h"
#include "recipe/recipe.h"

namespace portolan {

// The names that recipe files use, for reading and writing.
inline constexpr NamedValue<Sharding> kShardingNames[] = {
    {"auto", Sharding::kAuto},   {"data_parallel", Sharding::kDataParallel},
    {"table", Sharding::kTable}, {"column", Sharding::kColumn},
    {"row", Sharding::kRow},     {"table_row", Sharding::kTableRow}};
inline constexpr NamedValue<TableMemory> kTableMemoryNames[] = {
    {"auto", TableMemory::kAuto}, {"device", TableMemory::kDevice}, {"host", TableMemory::kHost}};
inline constexpr NamedValue<HostCachePolicy> kHostCacheNames[] = {{"lfu", HostCachePolicy::kLfu},
                                                                  {"lru", HostCachePolicy::kLru}};
inline constexpr NamedValue<ReplicaLayout> kReplicaLayoutNames[] = {{"strided", ReplicaLayout::kStrided},
                                                                    {"contiguous", ReplicaLayout::kContiguous}};
inline constexpr NamedValue<Balance> kBalanceNames[] = {{"greedy", Balance::kGreedy}, {"searched", Balance::kSearched}};
inline constexpr NamedValue<IndexDedup> kDedupNames[] = {{"none", IndexDedup::kNone},
                                                         {"before_exchange", IndexDedup::kBeforeExchange}};
inline constexpr NamedValue<Fusion> kFusionNames[] = {
    {"full", Fusion::kFull}, {"compiled", Fusion::kCompiled}, {"eager", Fusion::kEager}};
inline constexpr NamedValue<Launch> kLaunchNames[] = {
    {"graph", Launch::kGraph}, {"executor", Launch::kExecutor}, {"stream", Launch::kStream}};
inline constexpr NamedValue<Concurrency> kConcurrencyNames[] = {{"single_stream", Concurrency::kSingleStream},
                                                                {"multi_stream", Concurrency::kMultiStream}};
inline constexpr NamedValue<NodeExchange> kNodeExchangeNames[] = {{"library", NodeExchange::kLibrary},
                                                                  {"direct_stores", NodeExchange::kDirectStores}};
inline constexpr NamedValue<GradientClip> kGradientClipNames[] = {{"none", GradientClip::kNone},
                                                                  {"norm", GradientClip::kNorm}};
inline constexpr NamedValue<Pipeline> kPipelineNames[] = {
    {"none", Pipeline::kNone}, {"index_exchange", Pipeline::kIndexExchange}, {"embedding", Pipeline::kEmbedding}};
inline constexpr NamedValue<GradientOverlap> kGradientOverlapNames[] = {{"none", GradientOverlap::kNone},
                                                                        {"backward", GradientOverlap::kBackward}};
inline constexpr NamedValue<DenseParallelism> kDenseParallelismNames[] = {
    {"replicated", DenseParallelism::kReplicated},
    {"sharded_optimizer", DenseParallelism::kShardedOptimizer},
    {"fully_sharded", DenseParallelism::kFullySharded}};
inline constexpr NamedValue<AttentionImplementation> kAttentionNames[] = {
    {"vendor", AttentionImplementation::kVendorTuned},
    {"triton", AttentionImplementation::kTriton},
    {"framework", AttentionImplementation::kFramework}};
inline constexpr NamedValue<TableKernels> kTableKernelNames[] = {{"batched", TableKernels::kBatched},
                                                                 {"per_table", TableKernels::kPerTable}};
inline constexpr NamedValue<EmbeddingUpdate> kEmbeddingUpdateNames[] = {{"fused", EmbeddingUpdate::kFused},
                                                                        {"separate", EmbeddingUpdate::kSeparate}};
inline constexpr NamedValue<GroupedProducts> kGroupedProductNames[] = {{"batched", GroupedProducts::kBatched},
                                                                       {"loop", GroupedProducts::kLoop}};

}  // namespace portolan
