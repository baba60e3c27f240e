#include "plan/step_graph.h"

#include <algorithm>
#include <array>

#include "plan/collective_scopes.h"
#include "plan/graph_builder.h"

namespace portolan {
namespace {

constexpr std::array<const char*, kCategoryCount> kCategoryNames = {
    "gemm",      "attention",       "elementwise",      "embedding_forward", "embedding_backward",
    "optimizer", "sparse_exchange", "dense_collective", "host_copy"};

// PyTorch DDP's default bucket (torch.nn.parallel.DistributedDataParallel, bucket_cap_mb = 25).
constexpr double kGradientBucketBytes = 25.0 * 1024 * 1024;

// Passes of torch.optim's foreach AdamW over those of a fused one (counted in PyTorch 2.10, 2026-11-30).
constexpr double kUnfusedOptimizerPasses = 20.0 / 7.0;

class StepLowering {
 public:
  StepLowering(const Model& model, const Recipe& recipe, const CollectiveScopes& scopes, const EmbeddingWork& work,
               StepPart part, GemmMemo* memo)
      : b_(model, recipe, scopes.all(), memo), embeddings_(work), part_(part), scopes_(scopes) {}

  StepGraph Build() {
    FindEmbeddingDependence();
    Inputs();
    Forward();
    Loss();
    Backward();
    Finish();
    b_.graph.exchange_buffer_bytes = 2 * (embeddings_.forward_exchange_bytes + embeddings_.backward_exchange_bytes) +
                                     embeddings_.node_reduce_elements * SizeOf(b_.recipe.embedding_forward_comm).value +
                                     embeddings_.local_output_elements * SizeOf(b_.recipe.embedding_output).value +
                                     embeddings_.host_row_bytes;
    return std::move(b_.graph);
  }

 private:
  const Model& model() const { return b_.model; }
  const Recipe& recipe() const { return b_.recipe; }
  Task& TaskAt(int index) { return b_.graph.tasks[static_cast<size_t>(index)]; }
  bool HasEmbeddings() const { return embeddings_.forward.total.value > 0; }
  Stream EmbeddingStream() const {
    return recipe().concurrency == Concurrency::kMultiStream ? Stream::kEmbedding : Stream::kMain;
  }

  // Blocks that (transitively) read an embedding group run after the exchange; the others run beside it.
  void FindEmbeddingDependence() {
    const size_t count = model().blocks.size();
    needs_embeddings_.assign(count, false);
    consumers_.assign(count, {});
    for (size_t i = 0; i < count; ++i) {
      for (const Block::Input& input : model().blocks[i].inputs) {
        if (input.kind == Block::Input::Kind::kGroup) needs_embeddings_[i] = true;
        if (input.kind != Block::Input::Kind::kBlock) continue;
        if (needs_embeddings_[static_cast<size_t>(input.index)]) needs_embeddings_[i] = true;
        consumers_[static_cast<size_t>(input.index)].push_back(static_cast<int>(i));
      }
    }
  }

  int Collective(const std::string& name, Category category, CollectiveKind kind, double bytes, const Cluster& cluster,
                 std::vector<int> after) {
    CollectiveShape shape;
    shape.kind = kind;
    shape.bytes = Bytes(bytes);
    shape.devices = cluster.devices;
    return b_.Add(name, category, Stream::kCommunication, CollectiveEstimate(shape, cluster), std::move(after));
  }

  // An embedding kernel that stores its pooled sums into (or loads their gradients from) the memory of its node's other
  // devices takes as long as the slower of the two.
  Estimate WithDirectStores(Estimate kernel, DType element) const {
    if (recipe().node_exchange != NodeExchange::kDirectStores || embeddings_.node_reduce_elements <= 0) return kernel;
    CollectiveShape shape;
    shape.kind = CollectiveKind::kReduceScatter;
    shape.bytes = embeddings_.node_reduce_elements * SizeOf(element);
    shape.devices = scopes_.node().devices;
    shape.transport = CollectiveTransport::kDirectStores;
    const Estimate stores = CollectiveEstimate(shape, scopes_.node());
    const Seconds busy = kernel.total - kernel.launch;
    kernel.launch += stores.launch;
    kernel.communication = stores.communication;
    kernel.total = kernel.launch + std::max(busy, stores.communication);
    return kernel;
  }

  // Moves embedding outputs (or, backward, their gradients) between owners and samples.
  int Exchange(const std::string& name, double bytes, double reduced_bytes, std::vector<int> after) {
    if (reduced_bytes > 0) {
      if (recipe().node_exchange == NodeExchange::kLibrary) {
        after = {Collective(name + ".node", Category::kSparseExchange, CollectiveKind::kReduceScatter, reduced_bytes,
                            scopes_.node(), after)};
      }
      if (scopes_.group().nodes() > 1) {
        after = {Collective(name + ".nodes", Category::kSparseExchange, CollectiveKind::kAllToAll,
                            reduced_bytes / scopes_.node().devices, scopes_.across(), after)};
      }
    }
    if (bytes > 0) {
      after = {Collective(name, Category::kSparseExchange, CollectiveKind::kAllToAll, bytes, scopes_.group(), after)};
    }
    return after.empty() ? -1 : after.back();
  }

  // Rows that the caches lack: found by one more sort of the indices (FBGEMM deduplicates them before it probes its
  // cache; the probe itself is a read a distinct row, small beside the sort), brought over the host link while updated
  // ones go back the other way, and into the cache. With the next batch's indices exchanged ahead (Recipe::pipeline)
  // this step's copy is of the rows that the next step fills in (TorchRec PrefetchTrainPipelineSparseDist); else the
  // step waits for its own.
  int FetchHostRows(std::vector<int> indices) {
    const bool ahead = recipe().pipeline != Pipeline::kNone;
    const int find = b_.Add("host_rows_find", Category::kEmbeddingForward, EmbeddingStream(), embeddings_.host_find,
                            ahead ? std::vector<int>{} : indices);
    host_fetch_ = b_.Add("host_rows_fetch", Category::kHostCopy, Stream::kHostCopy,
                         HostCopyEstimate({Bytes(embeddings_.host_row_bytes)}, b_.chip), {find});
    Estimate fill;
    fill.launch = b_.chip.kernel_fixed;
    // Written into the cache, and what they displace read from it.
    fill.memory = Bytes(2 * embeddings_.host_row_bytes) / b_.chip.hbm_sustained;
    fill.total = fill.launch + fill.memory;
    if (!ahead) indices = {host_fetch_};
    host_fill_ = b_.Add("host_rows_fill", Category::kEmbeddingForward, EmbeddingStream(), fill, std::move(indices));
    return host_fill_;
  }

  void Inputs() {
    const int copy = b_.Add("input_copy", Category::kHostCopy, Stream::kHostCopy,
                            HostCopyEstimate({Bytes(embeddings_.input_bytes)}, b_.chip), {});
    ready_ = {copy};
    if (!HasEmbeddings()) return;
    std::vector<int> after = {copy};
    if (scopes_.group().devices > 1 && embeddings_.index_exchange_bytes > 0) {
      index_exchange_ = Collective("index_exchange", Category::kSparseExchange, CollectiveKind::kAllToAll,
                                   embeddings_.index_exchange_bytes, scopes_.group(), {copy});
      after = {index_exchange_};
    }
    if (embeddings_.host_row_bytes > 0) after = {FetchHostRows(after)};
    embedding_forward_ = b_.Add("embedding", Category::kEmbeddingForward, EmbeddingStream(),
                                WithDirectStores(embeddings_.forward, recipe().embedding_forward_comm), after);
    TaskAt(embedding_forward_).kernels = embeddings_.kernels;
    if (recipe().concurrency == Concurrency::kMultiStream) {
      index_sort_ = b_.Add("index_sort", Category::kEmbeddingBackward, Stream::kEmbedding, embeddings_.index_sort,
                           {embedding_forward_});
    }
    exchanged_ = {embedding_forward_};
    if (OwnerPermutes()) {
      const double payload = embeddings_.owner_unpooled_elements * SizeOf(recipe().embedding_output).value;
      exchanged_ = {b_.Pointwise("embedding_permute", payload, payload, exchanged_)};
    }
    if (b_.cluster.devices > 1) {
      const double element = SizeOf(recipe().embedding_forward_comm).value;
      exchanged_ = {Exchange("embedding_exchange", embeddings_.forward_exchange_bytes,
                             embeddings_.node_reduce_elements * element, exchanged_)};
    }
  }

  std::vector<int> InputsOf(const Block& block, const std::vector<int>& ends) const {
    std::vector<int> after;
    for (const Block::Input& input : block.inputs) {
      if (input.kind == Block::Input::Kind::kDense) after.push_back(ready_[0]);
      if (input.kind == Block::Input::Kind::kGroup) after.insert(after.end(), unpacked_.begin(), unpacked_.end());
      if (input.kind == Block::Input::Kind::kBlock) after.push_back(ends[static_cast<size_t>(input.index)]);
    }
    after.erase(std::remove(after.begin(), after.end(), -1), after.end());
    return after;
  }

  bool Recomputed(const Block& block) const {
    if (recipe().recompute == Recompute::kListed) {
      const auto& names = recipe().recompute_blocks;
      return std::find(names.begin(), names.end(), block.name) != names.end();
    }
    return recipe().recompute == Recompute::kAll;
  }

  void ForwardBlock(size_t i) {
    const Block& block = model().blocks[i];
    double saved = 0;
    forward_end_[i] = LowerForward(b_, block, InputsOf(block, forward_end_), &saved);
    b_.graph.peak_transient_bytes = std::max(b_.graph.peak_transient_bytes, saved / LayersOf(block));
    if (Recomputed(block)) saved = b_.local_batch * block.shape.elements() * b_.ActivationBytes();
    b_.graph.saved_bytes_per_block[i] = saved;
  }

  static double LayersOf(const Block& block) {
    if (const auto* transformer = std::get_if<TransformerBlock>(&block.body))
      return static_cast<double>(transformer->layers);
    if (const auto* hstu = std::get_if<HstuBlock>(&block.body)) return static_cast<double>(hstu->layers);
    return 1;
  }

  void Forward() {
    const size_t count = model().blocks.size();
    forward_end_.assign(count, -1);
    b_.graph.saved_bytes_per_block.assign(count, 0.0);
    if (const double parameters = NarrowParameters(model(), recipe());
        b_.recipe.fusion != Fusion::kFull && parameters > 0) {
      // Autocast: every weight is converted once a step.
      ready_[0] = b_.Pointwise("weight_cast", 4 * parameters, 2 * parameters, ready_);
    }
    for (size_t i = 0; i < count; ++i) {
      if (!needs_embeddings_[i]) ForwardBlock(i);
    }
    if (HasEmbeddings()) Unpack();
    for (size_t i = 0; i < count; ++i) {
      if (needs_embeddings_[i]) ForwardBlock(i);
    }
  }

  // Received rows to the layout that the first block reads; with dedup, one copy of its row to every lookup.
  void Unpack() {
    unpacked_ = exchanged_;
    if (b_.cluster.devices == 1 && recipe().dedup == IndexDedup::kNone) return;
    const double received =
        embeddings_.local_unique_elements > 0 ? embeddings_.local_unique_elements : embeddings_.local_output_elements;
    const double out = embeddings_.local_output_elements * SizeOf(recipe().embedding_output).value;
    unpacked_ = {
        b_.Pointwise("embedding_unpack", received * SizeOf(recipe().embedding_forward_comm).value, out, exchanged_)};
  }

  void Loss() {
    const TensorShape out = model().blocks.back().shape;
    const double bytes = b_.local_batch * out.elements() * 4;
    loss_ = b_.Pointwise("loss", 2 * bytes, bytes, {forward_end_.back()});
  }

  bool NeedsInputGradient(const Block& block) const {
    for (const Block::Input& input : block.inputs) {
      if (input.kind != Block::Input::Kind::kDense) return true;
    }
    return false;
  }

  void BackwardBlock(size_t i) {
    const Block& block = model().blocks[i];
    std::vector<int> after;
    for (const int consumer : consumers_[i]) after.push_back(backward_end_[static_cast<size_t>(consumer)]);
    after.erase(std::remove(after.begin(), after.end(), -1), after.end());
    if (after.empty()) after = {loss_};
    if (Recomputed(block)) {
      double ignored = 0;
      after = {LowerForward(b_, block, after, &ignored)};
    }
    backward_end_[i] =
        LowerBackward(b_, block, after, NeedsInputGradient(block) ? InputGradient::kNeeded : InputGradient::kNotNeeded);
    gradient_elements_ += BlockParameters(model(), block);
    const double element = SizeOf(recipe().dense_gradient_comm).value;
    if (recipe().gradient_overlap == GradientOverlap::kBackward &&
        gradient_elements_ * element > kGradientBucketBytes) {
      ReduceGradients(backward_end_[i]);
    }
  }

  void ReduceGradients(int after) {
    if (part_ == StepPart::kAccumulate || b_.cluster.devices == 1 || gradient_elements_ <= 0) return;
    const double bytes = gradient_elements_ * SizeOf(recipe().dense_gradient_comm).value;
    gradient_elements_ = 0;
    const bool sharded = recipe().dense_parallelism != DenseParallelism::kReplicated;
    reduced_.push_back(Collective("dense_gradient_" + std::to_string(reduced_.size()), Category::kDenseCollective,
                                  sharded ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce, bytes,
                                  b_.cluster, {after}));
  }

  void Backward() {
    const size_t count = model().blocks.size();
    backward_end_.assign(count, -1);
    for (size_t i = count; i-- > 0;) {
      if (needs_embeddings_[i]) BackwardBlock(i);
    }
    if (HasEmbeddings()) EmbeddingGradientExchange();
    for (size_t i = count; i-- > 0;) {
      if (!needs_embeddings_[i]) BackwardBlock(i);
    }
    if (HasEmbeddings()) EmbeddingBackward();
  }

  void EmbeddingGradientExchange() {
    std::vector<int> after;
    for (size_t i = 0; i < model().blocks.size(); ++i) {
      for (const Block::Input& input : model().blocks[i].inputs) {
        if (input.kind == Block::Input::Kind::kGroup) after.push_back(backward_end_[i]);
      }
    }
    after.erase(std::remove(after.begin(), after.end(), -1), after.end());
    if (b_.cluster.devices > 1) {
      const double element = SizeOf(recipe().embedding_backward_comm).value;
      const double gradient = embeddings_.local_output_elements * SizeOf(recipe().embedding_output).value;
      const double sent =
          embeddings_.local_unique_elements > 0 ? embeddings_.local_unique_elements : embeddings_.local_output_elements;
      after = {b_.Pointwise("embedding_pack", gradient, sent * element, after)};
      after = {Exchange("embedding_gradient_exchange", embeddings_.backward_exchange_bytes,
                        embeddings_.node_reduce_elements * element, after)};
    }
    if (OwnerPermutes()) {  // back into table order, and divided by the number of devices
      const double payload = embeddings_.owner_unpooled_elements * SizeOf(recipe().embedding_output).value;
      after = {b_.Pointwise("embedding_gradient_permute", 2 * payload, 2 * payload, after)};
    }
    gradient_ready_ = after;
  }

  // Unpooled rows leave the lookup in table order; TorchRec sorts them by destination (and back) in a kernel of its
  // own.
  bool OwnerPermutes() const {
    return b_.cluster.devices > 1 && recipe().fusion != Fusion::kFull && embeddings_.owner_unpooled_elements > 0;
  }

  void EmbeddingBackward() {
    Estimate estimate = WithDirectStores(embeddings_.backward, recipe().embedding_backward_comm);
    if (recipe().concurrency == Concurrency::kSingleStream) {
      estimate.memory += embeddings_.index_sort.memory;
      estimate.launch += embeddings_.index_sort.launch;
      estimate.total += embeddings_.index_sort.total;
    } else {
      gradient_ready_.push_back(index_sort_);
    }
    embedding_backward_ =
        b_.Add("embedding_update", Category::kEmbeddingBackward, EmbeddingStream(), estimate, gradient_ready_);
  }

  void Finish() {
    if (part_ == StepPart::kAccumulate) {
      LinkSteps(static_cast<int>(b_.graph.tasks.size()) - 1);
      return;
    }
    gradient_elements_ += embeddings_.dense_gradient_elements;
    ReduceGradients(static_cast<int>(b_.graph.tasks.size()) - 1);
    std::vector<int> after = reduced_;
    if (after.empty()) after = {static_cast<int>(b_.graph.tasks.size()) - 1};
    DenseOptimizerShape shape;
    shape.optimizer = recipe().dense_optimizer.value_or(model().dense_optimizer);
    shape.parameters = DenseParameters(model());
    const double gradient_bytes = shape.parameters * SizeOf(recipe().dense_gradient_comm).value;
    if (recipe().gradient_clip == GradientClip::kNorm) {
      after = {b_.Pointwise("gradient_clip", 2 * gradient_bytes, gradient_bytes, after)};
    }
    if (recipe().dense_parallelism != DenseParallelism::kReplicated) shape.parameters /= b_.cluster.devices;
    shape.gradient = recipe().dense_gradient_comm;
    shape.state = recipe().dense_state;
    shape.has_half_copy = recipe().fusion == Fusion::kFull && NarrowParameters(model(), recipe()) > 0;
    Estimate estimate = DenseOptimizerEstimate(shape, b_.chip);
    if (recipe().fusion != Fusion::kFull) {
      // One kernel an operation over lists of tensors: about 20 fp32 passes against the 7 of a fused Adam.
      estimate.memory *= kUnfusedOptimizerPasses;
      estimate.total = estimate.launch + std::max(estimate.memory, estimate.compute);
    }
    const int optimizer = b_.Add("dense_optimizer", Category::kOptimizer, Stream::kMain, estimate, after);
    int last = optimizer;
    if (recipe().dense_parallelism != DenseParallelism::kReplicated && b_.cluster.devices > 1) {
      const double passes = recipe().dense_parallelism == DenseParallelism::kFullySharded ? 2 : 1;
      last = Collective("dense_gather", Category::kDenseCollective, CollectiveKind::kAllGather,
                        passes * GemmWeightBytes(model(), recipe()).value, b_.cluster, {optimizer});
    }
    if (scopes_.copies().devices > 1 && embedding_backward_ >= 0) sync_ = SyncReplicas(last);
    LinkSteps(sync_ >= 0 ? sync_ : last);
  }

  // What the next step may start early: see Pipeline.
  void LinkSteps(int dense_done) {
    const auto after_previous = [this](int task, std::vector<int> previous) {
      if (task < 0) return;
      previous.erase(std::remove(previous.begin(), previous.end(), -1), previous.end());
      b_.graph.tasks[static_cast<size_t>(task)].after_previous = std::move(previous);
    };
    const std::vector<int> all = {dense_done, embedding_backward_};
    if (recipe().pipeline == Pipeline::kNone) after_previous(index_exchange_, all);
    after_previous(embedding_forward_,
                   recipe().pipeline == Pipeline::kEmbedding ? std::vector<int>{embedding_backward_, sync_} : all);
    for (size_t i = 0; i < b_.graph.tasks.size(); ++i) {
      if (b_.graph.tasks[i].stream == Stream::kMain && static_cast<int>(i) != embedding_forward_) {
        after_previous(static_cast<int>(i), {dense_done});
        break;
      }
    }
    if (host_fill_ >= 0 && recipe().pipeline != Pipeline::kNone) {
      TaskAt(host_fill_).after_previous.push_back(host_fetch_);
    }
    b_.graph.last_of_step = dense_done;
  }

  // The copies of every shard averaged: rows, then state (DMPCollection.sync waits for each, so that no kernel runs
  // beside). Every step has its share of a synchronisation: the mean step is the one without plus that share.
  int SyncReplicas(int dense_done) {
    CollectiveShape shape;
    shape.kind = CollectiveKind::kAllReduce;
    shape.devices = scopes_.copies().devices;
    Estimate estimate;
    for (const double bytes : {embeddings_.sync_row_bytes, embeddings_.sync_state_bytes}) {
      if (bytes <= 0) continue;
      shape.bytes = Bytes(bytes);
      const Estimate part = CollectiveEstimate(shape, scopes_.copies());
      const double share = 1.0 / static_cast<double>(recipe().replica_sync_steps);
      estimate.launch += share * part.launch;
      estimate.communication += share * part.communication;
      estimate.total += share * part.total;
    }
    return b_.Add("replica_sync", Category::kSparseExchange, Stream::kMain, estimate,
                  {dense_done, embedding_backward_});
  }

  GraphBuilder b_;
  EmbeddingWork embeddings_;
  StepPart part_;
  const CollectiveScopes& scopes_;
  std::vector<bool> needs_embeddings_;
  std::vector<std::vector<int>> consumers_;
  std::vector<int> ready_, exchanged_, unpacked_, gradient_ready_, reduced_, forward_end_, backward_end_;
  int index_exchange_ = -1, embedding_forward_ = -1, index_sort_ = -1, embedding_backward_ = -1, loss_ = -1;
  int host_fetch_ = -1, host_fill_ = -1, sync_ = -1;
  double gradient_elements_ = 0;
};

}  // namespace

const char* CategoryName(Category category) { return kCategoryNames[static_cast<size_t>(category)]; }

StepGraph BuildStepGraph(const Model& model, const Recipe& recipe, const Cluster& cluster, const Placement& placement,
                         RankBalance balance, StepPart part) {
  const CollectiveScopes scopes(recipe, cluster);
  const Recipe group = GroupRecipe(recipe);
  ShardPricer pricer(model, group, scopes.group());
  return BuildStepGraph(model, recipe, scopes, MeasureEmbeddings(pricer, placement, balance), part);
}

StepGraph BuildStepGraph(const Model& model, const Recipe& recipe, const CollectiveScopes& scopes,
                         const EmbeddingWork& work, StepPart part, GemmMemo* memo) {
  return StepLowering(model, recipe, scopes, work, part, memo).Build();
}

}  // namespace portolan
