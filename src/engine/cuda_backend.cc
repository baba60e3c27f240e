#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/cuda_network_state.h"

// What the engine's other files see of CUDA, but for the readers.
namespace portolan {
namespace {

using kernels::cuda::ProductMath;

tl::unexpected<Error> Refuse(const std::string& field, const std::string& message) {
  return tl::make_unexpected(Error{ErrorCode::kUnsupported, message, {}, 0, field});
}

ProductMath NativeMath(CudaMath math) {
  switch (math) {
    case CudaMath::kFp32:
      return ProductMath::kFp32;
    case CudaMath::kTf32:
      return ProductMath::kTf32;
    case CudaMath::kBf16:
      return ProductMath::kBf16;
  }
  return ProductMath::kFp32;
}

// What the kernels take for granted.
Status CheckPlan(const NetworkPlan& plan) {
  const auto* head = std::get_if<LinearSpec>(&plan.layers.back().layer->spec);
  if (head == nullptr || head->activation != kernels::ActivationKind::kNone) {
    return Refuse("blocks", "on CUDA the last block must be an mlp, whose last layer gives the logit");
  }
  double rows = 0;
  for (const Table& table : plan.tables) rows += table.rows;
  constexpr double kMostRows = 2147483646;  // keys of 31 bits
  if (rows > kMostRows) {
    return Refuse("tables",
                  fmt::format("on CUDA all tables together have up to {:.0f} rows, here {:.0f}", kMostRows, rows));
  }
  const double lookups = plan.lookups * static_cast<double>(plan.options.batch);
  if (lookups > kMostRows) {
    return Refuse("global_batch",
                  fmt::format("on CUDA a batch has up to {:.0f} lookups, here {:.0f}", kMostRows, lookups));
  }
  int64_t samples = 1;
  while (samples < plan.options.batch) samples *= 2;
  if (static_cast<double>(samples) * static_cast<double>(plan.features.size()) > 4294967296.0) {
    return Refuse("global_batch", fmt::format("on CUDA the batch, rounded up to a power of two, times {} features must "
                                              "stay within 2^32",
                                              plan.features.size()));
  }
  for (const NetworkLayer& layer : plan.layers) {
    const auto* dot = std::get_if<DotInteractionSpec>(&layer.layer->spec);
    if (dot == nullptr) continue;
    constexpr int64_t kMostShared = 227 * 1024;  // bytes a block can have on compute capability 9.0
    if (4 * (dot->vectors * (dot->dim + 1) + dot->vectors * (dot->vectors - 1) / 2) > kMostShared) {
      return Refuse("blocks",
                    fmt::format("a dot_interaction of {} vectors of {} numbers is too large for the CUDA kernel, "
                                "which holds them in {} bytes of shared memory",
                                dot->vectors, dot->dim, kMostShared));
    }
  }
  return {};
}

}  // namespace

Result<CudaOptions> CudaOptionsFromRecipe(const Model& model, const Recipe& recipe, std::vector<std::string>* notes) {
  CudaOptions options;
  Recipe computed = recipe;
  switch (recipe.gemm) {
    case DType::kFp32:
      break;
    case DType::kTf32:
      options.math = CudaMath::kTf32;
      break;
    case DType::kBf16:
      options.math = CudaMath::kBf16;
      break;
    default:
      return Refuse("precision.gemm", fmt::format("'{}' products are not built on CUDA; accepted: fp32, tf32, bf16",
                                                  DTypeName(recipe.gemm)));
  }
  options.cache_policy = recipe.host_cache;
  const bool narrow = options.math == CudaMath::kBf16;
  if ((recipe.activation == DType::kFp32) == narrow) {
    notes->push_back(fmt::format("activations are kept in {} on CUDA, as precision.gemm is {}",
                                 narrow ? "bf16" : "fp32", DTypeName(recipe.gemm)));
  }
  if (recipe.recompute != Recompute::kNone) notes->push_back("activations are kept, not recomputed, on CUDA");
  if (recipe.accumulation_steps > 1) {
    return Refuse("accumulation_steps",
                  fmt::format("on CUDA a step is one batch; accepted: 1, got {}; lower local_batch "
                              "instead",
                              recipe.accumulation_steps));
  }
  // The rest is read as for the CPU, without its notes: layers are fused, whatever a framework would do.
  computed.gemm = computed.activation = computed.embedding_output = DType::kFp32;
  computed.fusion = Fusion::kFull;
  computed.recompute = Recompute::kNone;
  PORTOLAN_ASSIGN_OR_RETURN(options.network, OptionsFromRecipe(model, computed, notes));
  return options;
}

Result<CudaMemory> CudaMemoryAvailable() {
  PORTOLAN_ASSIGN_OR_RETURN(const device::cuda::DeviceFacts facts, device::cuda::OpenDevice());
  CudaMemory memory;
  memory.free_bytes = static_cast<double>(facts.free_bytes);
  memory.device = fmt::format("{}, CUDA {}", facts.name, facts.driver);
  return memory;
}

namespace {

// All but the tables.
std::vector<std::pair<std::string, double>> OtherParts(const NetworkPlan& plan, CudaMath math) {
  std::vector<std::pair<std::string, double>> parts = plan.MemoryParts();
  const double width = math == CudaMath::kBf16 ? 2 : 4, batch = static_cast<double>(plan.options.batch);
  std::vector<ArenaBuffer> buffers;
  double masks = 0;
  for (const NetworkLayer& layer : plan.layers) {
    const auto* linear = std::get_if<LinearSpec>(&layer.layer->spec);
    if (linear != nullptr) masks += static_cast<double>(kernels::cuda::MaskStride(linear->out)) / 8;
  }
  int64_t parameters = 0;
  int32_t max_dim = 1;
  PlaceParameters(plan, &parameters);
  for (const Table& table : plan.tables) max_dim = std::max(max_dim, static_cast<int32_t>(table.dim));
  const auto lookups = static_cast<int64_t>(batch * plan.lookups);
  constexpr double kBatchesHeld = 4;     // one in use, two read ahead, one in the making
  constexpr double kSortBytes = 30;      // a lookup: keys and places, twice, and the sort's own
  constexpr double kWorkspaces = 1.3e9;  // context, library, workspace of products
  const double chunk_sums = static_cast<double>(lookups) / 32 * (4.0 * max_dim + 8);
  const double held = kBatchesHeld * batch *
                      (static_cast<double>(plan.dense_width) * 4 + plan.lookups * 8 +
                       static_cast<double>(plan.features.size()) * 8 + 4);
  for (auto& [name, bytes] : parts) {
    if (name == "dense parameters, gradients, state") {
      bytes = static_cast<double>(parameters) *
              (8.0 + 4.0 * static_cast<double>(kernels::DenseStateFloats(plan.options.dense_optimizer)) + width / 2);
    } else if (name == "activations and gradients") {
      bytes = width * static_cast<double>(LayOutDeviceArena(plan, &buffers)) + batch * masks + 8 * batch;
    } else if (name == "batches and sort") {
      bytes = held + static_cast<double>(lookups) * kSortBytes * 1.07 + chunk_sums * 1.07 + kWorkspaces;
    }
  }
  return parts;
}

// Beside the caches: sorted lookups and places of the batch in training and of the next one, rows to load.
double CacheScratchBytes(const NetworkPlan& plan) {
  const double lookups = static_cast<double>(plan.options.batch) * plan.lookups;
  int32_t max_dim = 1;
  for (const Table& table : plan.tables) max_dim = std::max(max_dim, static_cast<int32_t>(table.dim));
  constexpr double kSortBytes = 30, kRoom = 1.07;
  return kRoom * lookups * (kSortBytes + (4.0 * max_dim + 8) / 32 + 2 * 8 + 4);
}

TablePlacement PlacementOf(const NetworkPlan& plan, const CudaOptions& options) {
  if (options.device_bytes <= 0) return PlaceTables(plan, std::numeric_limits<double>::infinity());
  double others = 0, tables = 0;
  for (const auto& [name, bytes] : OtherParts(plan, options.math)) {
    (name.starts_with("embedding") ? tables : others) += bytes;
  }
  if (tables + others <= options.device_bytes) return PlaceTables(plan, std::numeric_limits<double>::infinity());
  return PlaceTables(plan, std::max(1.0, options.device_bytes - others - CacheScratchBytes(plan)));
}

}  // namespace

std::vector<std::pair<std::string, double>> CudaMemoryParts(const NetworkPlan& plan, const CudaOptions& options) {
  std::vector<std::pair<std::string, double>> parts = OtherParts(plan, options.math);
  const TablePlacement placement = PlacementOf(plan, options);
  if (placement.caches.empty()) return parts;
  for (auto& [name, bytes] : parts) {
    if (name == "embedding rows") bytes = placement.whole_rows_bytes;
    if (name == "embedding optimizer state") bytes = placement.whole_state_bytes;
  }
  parts.emplace_back("cache of tables in host memory", placement.cache_bytes + CacheScratchBytes(plan));
  return parts;
}

double CudaHostBytes(const NetworkPlan& plan, const CudaOptions& options) {
  return PlacementOf(plan, options).host_bytes;
}

Result<std::unique_ptr<TrainableNetwork>> MakeCudaNetwork(NetworkPlan plan, const CudaOptions& options, uint64_t seed,
                                                          Repeats repeats) {
  PORTOLAN_RETURN_IF_ERROR(CheckPlan(plan));
  PORTOLAN_ASSIGN_OR_RETURN([[maybe_unused]] const device::cuda::DeviceFacts facts, device::cuda::OpenDevice());
  const TablePlacement tables = PlacementOf(plan, options);
  const kernels::cuda::CachePolicy policy = options.cache_policy == HostCachePolicy::kLru
                                                ? kernels::cuda::CachePolicy::kLru
                                                : kernels::cuda::CachePolicy::kLfu;
  const ProductMath math = NativeMath(options.math);
  if (options.math == CudaMath::kBf16) {
    return std::make_unique<CudaNetwork<Bf16>>(std::move(plan), math, tables, policy, seed, repeats);
  }
  return std::make_unique<CudaNetwork<float>>(std::move(plan), math, tables, policy, seed, repeats);
}

namespace {

// Where the device has no memory for them they stay 0.
void MeasureCeilings(ProductMath math, StepProfile* profile) {
  const device::cuda::Queue queue;
  device::cuda::Event begin(device::cuda::Event::Timing::kTimed), end(device::cuda::Event::Timing::kTimed);
  constexpr int64_t kCopied = int64_t{1} << 30, kEdge = 8192;
  try {
    const DeviceMemory from(kCopied, "a copy"), to(kCopied, "a copy");
    device::cuda::FillZero(queue, from.As<void>(), kCopied);
    for (int run = 0; run < 4; ++run) {
      begin.Record(queue);
      device::cuda::CheckRuntime(
          cudaMemcpyAsync(to.As<void>(), from.As<void>(), kCopied, cudaMemcpyDeviceToDevice, queue.native()), "a copy");
      end.Record(queue);
      end.Wait();
      profile->copy_bytes_per_s =
          std::max(profile->copy_bytes_per_s, 2e3 * static_cast<double>(kCopied) / end.MillisecondsSince(begin));
    }
    kernels::cuda::CudaGemm gemm(kernels::cuda::CudaGemm::Choice::kMeasured);
    kernels::cuda::CudaProduct product;
    product.m = product.n = product.k = product.lda = product.ldb = product.ldd = kEdge;
    product.b_transposed = kernels::Transpose::kYes;
    product.math = math;
    product.fp32_out = math != ProductMath::kBf16;
    gemm.Prepare(product);
    const double seconds = gemm.TimingOf(product).taken_s;
    if (seconds > 0) profile->product_flops_per_s = 2.0 * kEdge * kEdge * kEdge / seconds;
  } catch (const device::cuda::DeviceFailure&) {
  }
}

}  // namespace

Result<StepProfile> ProfileCudaStep(TrainableNetwork* network, Reader* reader, const UpdateSettings& settings,
                                    int steps) {
  std::vector<float> logits(static_cast<size_t>(network->plan().options.batch));
  const auto profile = [&](auto* own) -> Result<StepProfile> {
    using Profile = typename std::remove_pointer_t<decltype(own)>::Profile;
    StepProfile sum;
    const auto run = [&](Profile kind, std::vector<OperationTime>* times) -> Status {
      for (int step = 0; step < steps; ++step) {
        Batch batch;
        PORTOLAN_ASSIGN_OR_RETURN(const ReadOutcome outcome, reader->Next(network->plan().options.batch, &batch));
        if (outcome == ReadOutcome::kEnd)
          return MakeError(ErrorCode::kInvalidValue, "the data ended before the profile");
        own->SetProfile(kind);
        own->TrainStep(batch, settings, logits.data(), {});
        const std::vector<OperationTime> taken = own->TakeProfile();
        own->SetProfile(Profile::kOff);
        for (size_t i = 0; i < taken.size(); ++i) {
          if (i >= times->size()) times->push_back({taken[i].name, 0, taken[i].bytes, taken[i].flops});
          (*times)[i].seconds += taken[i].seconds / steps;
        }
      }
      return {};
    };
    std::vector<OperationTime> whole;
    PORTOLAN_RETURN_IF_ERROR(run(Profile::kSteps, &whole));
    PORTOLAN_RETURN_IF_ERROR(run(Profile::kOperations, &sum.operations));
    sum.step_seconds = whole.front().seconds;
    const kernels::cuda::CudaGemm::WholeList list = own->products()->CompareWithWholeList();
    sum.products_taken_s = list.taken_s;
    sum.products_best_s = list.best_s;
    sum.products = list.products;
    sum.product_kernels = list.kernels;
    MeasureCeilings(own->math(), &sum);
    return sum;
  };
  if (auto* narrow = dynamic_cast<CudaNetwork<Bf16>*>(network)) return profile(narrow);
  if (auto* wide = dynamic_cast<CudaNetwork<float>*>(network)) return profile(wide);
  return MakeError(ErrorCode::kUnsupported, "--profile times the operations of device cuda only");
}

std::string DeviceFailureText(const std::exception& error) {
  return dynamic_cast<const device::cuda::DeviceFailure*>(&error) != nullptr ? error.what() : "";
}

}  // namespace portolan
