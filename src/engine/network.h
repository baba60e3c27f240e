#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/batch.h"
#include "engine/layers.h"
#include "kernels/embedding/embedding.h"
#include "kernels/optimizer/optimizer.h"
#include "model/model.h"
#include "recipe/recipe.h"

namespace portolan {

// How a network computes: what of a recipe matters on one CPU.
struct NetworkOptions {
  int64_t batch = 0;          // samples of a step
  int64_t micro_batches = 1;  // gradient accumulation: the dense layers see batch / micro_batches samples at a time
  kernels::GemmFormat gemm = kernels::GemmFormat::kFp32;
  kernels::RowFormat row = kernels::RowFormat::kFp32;
  kernels::RowOptimizer row_optimizer = kernels::RowOptimizer::kRowwiseAdagrad;
  kernels::DenseUpdateKind dense_optimizer = kernels::DenseUpdateKind::kAdam;
  // What frameworks do otherwise, each switched by the recipe (docs/train.md): eager layers and dense optimizer, one
  // embedding kernel a table, rows updated by separate passes over sparse gradients.
  Fusion fusion = Fusion::kFull;
  TableKernels table_kernels = TableKernels::kBatched;
  EmbeddingUpdate embedding_update = EmbeddingUpdate::kFused;
};
// Errors name the recipe's field and what this engine takes. `notes` receives what is computed otherwise than written.
Result<NetworkOptions> OptionsFromRecipe(const Model& model, const Recipe& recipe, std::vector<std::string>* notes);

// Part of the arena that is alive from `first` to `last` (time = layer forward, 2 n - 1 - layer backward).
struct ArenaBuffer {
  int64_t width = 0;  // numbers a sample
  // kBatch: holds the whole batch (what touches embeddings), otherwise one micro-batch.
  enum class Extent { kMicroBatch, kBatch } extent = Extent::kMicroBatch;
  int first = 0, last = 0;
  int64_t offset = 0;  // in numbers; set by LayOutArena
};
// Gives every buffer an offset such that buffers alive at one time do not overlap; returns the numbers needed. Greedy,
// largest first, lowest free place. At least the largest sum alive at one time; within 1.5x of it in arena tests.
int64_t LayOutArena(const std::vector<int64_t>& sizes, std::vector<ArenaBuffer>* buffers);

// A value of the graph: columns of a buffer.
struct NetworkValue {
  int64_t width = 0;
  int buffer = -1, gradient = -1;  // -1: the batch's dense numbers; no gradient
  int64_t column = 0;
  int64_t dense_column = 0;  // buffer = -1
  int producer = -1;         // layer; -1: input or embeddings
  int consumers = 0;
  int64_t tokens = 1;
};
struct NetworkLayer {
  std::unique_ptr<Layer> layer;
  std::vector<int> inputs;
  int output = 0;
  std::vector<int> scratch;  // buffers
  std::vector<int> added;    // per input: buffer of a gradient that is added afterwards, or -1
};

struct NetworkPlan {
  NetworkOptions options;
  std::vector<NetworkValue> values;
  std::vector<NetworkLayer> layers;
  std::vector<ArenaBuffer> buffers;
  std::vector<Table> tables;
  struct FeaturePlace {
    int table = 0;
    int value = 0;
    int64_t column = 0;  // inside the value
  };
  std::vector<FeaturePlace> features;  // in the order of the model
  std::vector<Parameter> parameters;
  int64_t dense_width = 0;
  int64_t dense_parameters = 0;
  int64_t arena_floats = 0;
  double lookups = 0;  // mean a sample

  int64_t MicroBatch() const { return (options.batch + options.micro_batches - 1) / options.micro_batches; }
  // Bytes by part, and their sum: what Network will allocate, but for the lookups of batches longer than the mean.
  std::vector<std::pair<std::string, double>> MemoryParts() const;
  double MemoryBytes() const;
  BatchSchema Schema(const Model& model) const;
};

// Lowers a model to layers. Refuses by name the blocks that this engine does not have yet.
Result<NetworkPlan> PlanNetwork(const Model& model, const NetworkOptions& options);

// Places in the seed's space, so that no two uses of one seed share bits.
constexpr uint64_t kSeedOfParameters = uint64_t{1} << 60;
constexpr uint64_t kSeedOfRows = uint64_t{2} << 60;

// Whether a run may take what is fastest at its start (kAsFast), or must have the same bits as every other run of the
// same job on one type of device (kBitEqual). The CPU's runs are always bit-equal.
enum class Repeats { kAsFast, kBitEqual };

// Learning rates and scaling of one update.
struct UpdateSettings {
  float dense_rate = 0;
  float row_rate = 0;
  float momentum = 0.9f;
  float epsilon = 1e-8f;
  float beta1 = 0.9f, beta2 = 0.999f;
  double clip_norm = 0;  // 0: no clipping
  int64_t step = 1;
  uint64_t seed = 0;
};

struct StepResult {
  double loss = 0;           // mean over the batch
  double gradient_norm = 0;  // of all parameters, before clipping; 0 where it is not computed
};

// Time of one phase of a step, for traces.
struct PhaseTime {
  const char* name;
  double begin_s, end_s;
};

// Rows of tables in host memory and of their cache on the device.
struct HostCacheCounts {
  int64_t rows = 0, slots = 0;  // of the tables, and that the caches hold
  // Rows of batches, each once a batch: found in the cache, loaded into it, and those that found no place in it.
  int64_t found = 0, loaded = 0, bypassed = 0;
  int64_t written_back = 0;  // rows that left the cache
};

// Seconds that the last step spent in one layer, micro-batches together; gradients added afterwards are the layer's.
struct LayerTime {
  double forward_s = 0, backward_s = 0;
};

// At least `bytes`, to be freed by std::free. Throws std::bad_alloc.
void* AllocateOnHugePages(int64_t bytes);

// A model in training on some device: what the training loop, checkpoints and reports need of it. Not thread-safe.
class TrainableNetwork {
 public:
  virtual ~TrainableNetwork() = default;

  // One forward and backward pass and one update. `logits` [batch.size] receives the predictions before the update.
  // `beside` (may be empty) is called once, while the device computes where it is another one than the caller's.
  virtual StepResult TrainStep(const Batch& batch, const UpdateSettings& settings, float* logits,
                               const std::function<void()>& beside) = 0;
  // Forward only; returns the mean loss.
  virtual double Evaluate(const Batch& batch, float* logits) = 0;
  // Whether steps are faster where Expect is told the batch of the next one before TrainStep is called.
  virtual bool LooksAhead() const { return false; }
  virtual void Expect(const Batch& /*next*/) {}
  virtual HostCacheCounts host_cache() { return {}; }
  virtual const NetworkPlan& plan() const = 0;
  // What a checkpoint holds, as host memory with names. It is valid, and changes of it reach the network, until
  // FinishStates, which says whether it was changed.
  struct State {
    std::string name;
    std::string dtype;  // safetensors names: F32, F16, BF16, U8
    std::vector<int64_t> shape;
    void* data = nullptr;
    int64_t bytes = 0;
    enum class Kind { kParameter, kOptimizer } kind = Kind::kParameter;
  };
  virtual std::vector<State> States() = 0;
  enum class StateUse { kRead, kChanged };
  virtual void FinishStates(StateUse /*use*/) {}
  virtual const std::vector<PhaseTime>& phases() const = 0;
};

// Memory on huge pages where the system has them: 4 KiB pages miss the TLB, and with it the caches once more.
template <typename T>
struct HugePageAllocator {
  using value_type = T;
  HugePageAllocator() = default;
  template <typename Other>
  HugePageAllocator(const HugePageAllocator<Other>&) {}  // NOLINT(google-explicit-constructor)
  T* allocate(size_t count) { return static_cast<T*>(AllocateOnHugePages(static_cast<int64_t>(count * sizeof(T)))); }
  void deallocate(T* memory, size_t) { std::free(memory); }
  bool operator==(const HugePageAllocator&) const { return true; }
};
using HugePageFloats = std::vector<float, HugePageAllocator<float>>;

// The same on the CPU. The kernels use OpenMP.
class Network : public TrainableNetwork {
 public:
  // Allocates and initialises: the same seed gives the same parameters.
  Network(NetworkPlan plan, uint64_t seed);
  ~Network() override;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  StepResult TrainStep(const Batch& batch, const UpdateSettings& settings, float* logits,
                       const std::function<void()>& beside) override;
  double Evaluate(const Batch& batch, float* logits) override;
  const NetworkPlan& plan() const override { return plan_; }
  std::vector<State> States() override;
  const std::vector<PhaseTime>& phases() const override { return phases_; }
  // In the order of plan().layers.
  const std::vector<LayerTime>& layer_times() const { return layer_times_; }

 private:
  void Initialise(uint64_t seed);
  void BindBatch(const Batch& batch);
  void ForwardLayers(const Batch& batch, int64_t first, int64_t rows);
  void BackwardLayers(const Batch& batch, int64_t first, int64_t rows, LayerIo::Gradients mode);
  void Update(const UpdateSettings& settings, double squared_norm);
  void UpdateDense(const kernels::DenseUpdate& update);
  void ForwardRows();
  void UpdateRows(const kernels::RowUpdate& update);
  // Calls visit(bags of one table), ids and offsets counted from its own first lookup.
  template <typename Visit>
  void ForEachTable(Visit visit);
  LayerIo Io(const Batch& batch, size_t layer, int64_t first, int64_t rows, LayerIo::Gradients mode);
  Tensor At(const Batch& batch, int value, int64_t first) const;
  Tensor GradientAt(int value, int64_t first) const;
  float* BufferAt(int buffer, int64_t first) const;
  void Mark(const char* name, double begin_s);

  NetworkPlan plan_;
  HugePageFloats weights_, gradients_, state_;
  float* arena_ = nullptr;
  std::vector<void*> rows_;
  std::vector<float*> row_states_;
  std::vector<kernels::EmbeddingTable> tables_;
  std::vector<kernels::EmbeddingFeature> outputs_, output_gradients_;
  kernels::EmbeddingBags bags_;
  void* workspace_ = nullptr;
  int64_t workspace_bytes_ = 0;
  std::vector<PhaseTime> phases_;
  std::vector<LayerTime> layer_times_;
  std::vector<float> optimizer_scratch_;  // eager dense optimizer
};

}  // namespace portolan
