#include "engine/cuda_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/cuda_network_state.h"

namespace portolan {
namespace {

using device::cuda::Event;
using device::cuda::Queue;
using kernels::cuda::Assign;
using kernels::cuda::Rows;

constexpr int kRuns = 6;  // back to back, after one that warms up

class Measurer {
 public:
  explicit Measurer(const std::function<void(const std::string&, double)>& progress) : progress_(progress) {}

  CudaKernelTimes Go(const device::cuda::DeviceFacts& facts) {
    CudaKernelTimes times;
    times.device = fmt::format("{}, CUDA {}", facts.name, facts.driver);
    times.l2_bytes = static_cast<double>(facts.l2_bytes);
    constexpr int64_t kCopied = int64_t{1} << 30;
    {
      const DeviceMemory from(kCopied, "a copy"), to(kCopied, "a copy");
      device::cuda::FillZero(queue_, from.As<void>(), kCopied);
      times.copy_bytes_per_s = 2.0 * kCopied / Seconds([&] {
                                 device::cuda::CheckRuntime(cudaMemcpyAsync(to.As<void>(), from.As<void>(), kCopied,
                                                                            cudaMemcpyDeviceToDevice, queue_.native()),
                                                            "a copy");
                               });
    }
    Products();
    Elementwise<float>("fp32");
    Elementwise<Bf16>("bf16");
    Parameters();
    Embeddings<float>("fp32", 0.55);
    Embeddings<Bf16>("bf16", 0.75);
    times.grids = std::move(grids_);
    return times;
  }

 private:
  // One of kRuns calls back to back: what a kernel takes in a queue that never runs dry.
  template <typename F>
  double Seconds(F&& f) {
    f();
    begin_.Record(queue_);
    for (int run = 0; run < kRuns; ++run) f();
    end_.Record(queue_);
    end_.Wait();
    return end_.MillisecondsSince(begin_) * 1e-3 / kRuns;
  }

  // measure(extents) for each point of the grid.
  template <typename F>
  void Grid(const std::string& name, const std::vector<std::vector<double>>& axes, F&& measure) {
    CudaKernelGrid grid{name, axes, {}};
    std::vector<size_t> at(axes.size());
    for (;;) {
      std::vector<int64_t> extents;
      for (size_t a = 0; a < axes.size(); ++a) extents.push_back(static_cast<int64_t>(axes[a][at[a]]));
      grid.seconds.push_back(measure(extents));
      size_t a = axes.size();
      while (a > 0 && ++at[a - 1] == axes[a - 1].size()) at[--a] = 0;
      if (a == 0) break;
    }
    grids_.push_back(std::move(grid));
  }

  void Products() {
    const std::vector<double> batches = {1024, 4096, 16384, 65536}, widths = {32, 64, 128, 256, 512, 1024, 2048};
    using kernels::Transpose;
    using kernels::cuda::ProductMath;
    double done = 0;
    for (const auto& [name, math] :
         {std::pair{"fp32", ProductMath::kFp32}, {"tf32", ProductMath::kTf32}, {"bf16", ProductMath::kBf16}}) {
      for (const std::string layout : {"nt", "nn", "tn"}) {
        progress_(fmt::format("products in {}", name), done);
        done += 0.05;
        const bool tn = layout == "tn";
        // Plans and their memory are dropped with the object.
        kernels::cuda::CudaGemm gemm(kernels::cuda::CudaGemm::Choice::kMeasured);
        Grid(fmt::format("gemm.{}.{}", name, layout), {tn ? widths : batches, widths, tn ? batches : widths},
             [&, math = math](const std::vector<int64_t>& e) {
               kernels::cuda::CudaProduct p;
               p.m = e[0], p.n = e[1], p.k = e[2];
               p.a_transposed = tn ? Transpose::kYes : Transpose::kNo;
               p.b_transposed = layout == "nt" ? Transpose::kYes : Transpose::kNo;
               p.lda = tn ? p.m : p.k;
               p.ldb = layout == "nt" ? p.k : p.n;
               p.ldd = p.n;
               p.math = math;
               p.fp32_out = tn || math != ProductMath::kBf16;
               gemm.Prepare(p);
               const double taken = gemm.TimingOf(p).taken_s;
               return taken > 0 ? taken : ProductSeconds(&gemm, p);
             });
      }
    }
  }
  // Where the library lists one kernel only, or none.
  double ProductSeconds(kernels::cuda::CudaGemm* gemm, const kernels::cuda::CudaProduct& p) {
    const DeviceMemory a(4 * p.m * p.k, "a product"), b(4 * p.n * p.k, "a product"), d(4 * p.m * p.n, "a product");
    return Seconds([&] {
      gemm->Run(p, a.As<void>(), b.As<void>(), d.As<void>(), d.As<void>(), nullptr, nullptr, queue_.stream());
    });
  }

  template <typename T>
  void Elementwise(const std::string& type) {
    progress_("elementwise kernels", 0.45);
    const std::vector<double> batches = {1024, 4096, 16384, 65536}, widths = {16, 128, 1024, 4096};
    constexpr int64_t kMost = int64_t{65536} * 4096;
    DeviceMemory tensors[5];
    for (DeviceMemory& tensor : tensors) {
      tensor = DeviceMemory(kMost * static_cast<int64_t>(sizeof(T)), "tensors");
      device::cuda::FillZero(queue_, tensor.As<void>(), tensor.bytes());
    }
    const DeviceMemory partial(4 * kernels::cuda::ColumnSumFloats(65536, 4096, 2), "sums"),
        columns(4 * 4 * 65536, "columns"), sums(8 * kernels::cuda::kNormPartials, "sums");
    device::cuda::FillZero(queue_, columns.As<void>(), columns.bytes());
    auto* column = columns.As<float>();
    const device::Stream stream = queue_.stream();
    const auto rows = [&](int i, int64_t width) { return Rows<T>{tensors[i].As<T>(), width}; };
    const auto read = [&](int i, int64_t width) { return Rows<const T>{tensors[i].As<T>(), width}; };
    const auto grid = [&](const char* name, auto launch) {
      Grid(fmt::format("{}.{}", name, type), {batches, widths},
           [&](const std::vector<int64_t>& e) { return Seconds([&] { launch(e[0], e[1]); }); });
    };
    using kernels::ActivationKind;
    grid("activation_forward", [&](int64_t b, int64_t w) {
      kernels::cuda::ActivationForward<T>(ActivationKind::kSilu, b, w, read(0, w), nullptr, rows(1, w), stream);
    });
    grid("activation_backward", [&](int64_t b, int64_t w) {
      kernels::cuda::ActivationBackward<T>(ActivationKind::kRelu, b, w, {}, nullptr, read(0, w), read(1, w), rows(1, w),
                                           column, partial.As<float>(), stream);
    });
    grid("cross_forward", [&](int64_t b, int64_t w) {
      kernels::cuda::CrossForward<T>(b, w, read(0, w), read(1, w), column, read(2, w), rows(3, w), stream);
    });
    grid("cross_backward", [&](int64_t b, int64_t w) {
      kernels::cuda::CrossBackward<T>(b, w, read(0, w), read(1, w), column, read(2, w), rows(3, w), rows(4, w),
                                      Assign::kAdd, kernels::cuda::CrossResidual::kNone, column + 65536,
                                      partial.As<float>(), stream);
    });
    grid("copy", [&](int64_t b, int64_t w) {
      kernels::cuda::CopyOrAdd<T>(b, w, read(0, w), rows(1, w), Assign::kOverwrite, stream);
    });
    grid("norm_forward", [&](int64_t b, int64_t w) {
      kernels::cuda::LayerNormForward<T>(b, 1, w, read(0, w), column, column, rows(1, w), stream);
    });
    grid("norm_backward", [&](int64_t b, int64_t w) {
      kernels::cuda::LayerNormBackward<T>(b, 1, w, read(0, w), column, read(1, w), rows(2, w), column + 65536,
                                          column + 2 * 65536, partial.As<float>(), stream);
    });
    grid("logits_forward", [&](int64_t b, int64_t w) {
      kernels::cuda::LogitForward<T>(b, w, read(0, w), column, column, column + 65536, stream);
    });
    grid("logits_backward", [&](int64_t b, int64_t w) {
      kernels::cuda::LogitBackward<T>(b, w, read(0, w), column, column + 65536, rows(1, w), column + 2 * 65536,
                                      column + 3 * 65536, partial.As<float>(), sums.As<double>(), stream);
    });
    grid("input", [&](int64_t b, int64_t w) {
      // fp32 to T; reads what lies there.
      kernels::cuda::Convert<float, T>(b, std::min<int64_t>(w, 2048),
                                       {tensors[4].As<float>(), std::min<int64_t>(w, 2048)},
                                       rows(1, std::min<int64_t>(w, 2048)), stream);
    });
    const auto dots = [&](const char* name, auto launch) {
      Grid(fmt::format("{}.{}", name, type), {batches, {4, 16, 32}, {16, 64, 128}}, [&](const std::vector<int64_t>& e) {
        const int64_t width = RoundUp(kernels::DotInteractionWidth(e[1], e[2]), 8);
        const kernels::DotInteractionShape shape = {e[0], e[1], e[2], e[1] * e[2], width, width};
        return Seconds([&] { launch(shape); });
      });
    };
    dots("dot_forward", [&](const kernels::DotInteractionShape& s) {
      kernels::cuda::DotInteractionForward<T>(s, tensors[0].As<T>(), tensors[1].As<T>(), stream);
    });
    dots("dot_backward", [&](const kernels::DotInteractionShape& s) {
      kernels::cuda::DotInteractionBackward<T>(s, tensors[0].As<T>(), tensors[1].As<T>(), tensors[2].As<T>(), stream);
    });
  }

  void Parameters() {
    progress_("optimizers and loss", 0.5);
    constexpr int64_t kMost = int64_t{1} << 25;
    const DeviceMemory gradient(4 * kMost, "gradients"), weights(4 * kMost, "weights"), state(8 * kMost, "state"),
        copy(2 * kMost, "a copy"), sums(8 * kernels::cuda::kNormPartials, "sums");
    for (const DeviceMemory* memory : {&gradient, &weights, &state}) {
      device::cuda::FillZero(queue_, memory->As<void>(), memory->bytes());
    }
    const auto* control = Control();
    using kernels::DenseUpdateKind;
    for (const auto& [name, kind] : {std::pair{"sgd", DenseUpdateKind::kSgd},
                                     {"momentum", DenseUpdateKind::kMomentum},
                                     {"adagrad", DenseUpdateKind::kAdagrad},
                                     {"adam", DenseUpdateKind::kAdam}}) {
      kernels::DenseUpdate update;
      update.kind = kind;
      update.step = 1;
      for (const std::string type : {"fp32", "bf16"}) {
        Grid(fmt::format("dense_optimizer.{}.{}", name, type), {{65536, 1048576, kMost}},
             [&](const std::vector<int64_t>& e) {
               return Seconds([&] {
                 kernels::cuda::DenseUpdateStep(update, e[0], gradient.As<float>(), weights.As<float>(),
                                                state.As<float>(), type == "bf16" ? copy.As<Bf16>() : nullptr, control,
                                                queue_.stream());
               });
             });
      }
    }
    Grid("loss", {{1024, 8192, 65536}}, [&](const std::vector<int64_t>& e) {
      return Seconds([&] {
        kernels::cuda::LossAndGradient(e[0], gradient.As<float>(), weights.As<float>(), nullptr, 0, state.As<float>(),
                                       sums.As<double>(), spare_control_.As<kernels::cuda::StepControl>(),
                                       queue_.stream());
      });
    });
  }

  const kernels::cuda::StepControl* Control() {
    kernels::cuda::StepControl control;
    control.apply = 1;
    if (control_.bytes() == 0) {
      control_ = DeviceMemory(sizeof(control), "step control");
      spare_control_ = DeviceMemory(sizeof(control), "step control");
    }
    device::cuda::CopyToDevice(queue_, &control, sizeof(control), control_.As<void>());
    device::cuda::CopyToDevice(queue_, &control, sizeof(control), spare_control_.As<void>());
    queue_.Wait();
    return control_.As<kernels::cuda::StepControl>();
  }

  // Lookups of one table in bags of `bag`: `repeats` of each row that is looked up, rows far apart and in no order.
  template <typename T>
  void Embeddings(const std::string& type, double done) {
    progress_("embeddings", done);
    const std::vector<double> counts = {16384, 262144, 2097152}, dims = {16, 64, 128}, bags = {1, 8, 64};
    constexpr int64_t kMostLookups = 2097152, kMostDim = 128, kWarmBytes = int64_t{12} << 20;
    constexpr int64_t kTableBytes = int64_t{4} << 30;
    const DeviceMemory rows(kTableBytes, "rows"), state(2 * kTableBytes, "state"),
        pooled(kMostLookups * kMostDim * static_cast<int64_t>(sizeof(T)), "pooled rows"), ids(8 * kMostLookups, "ids"),
        offsets(8 * (kMostLookups + 1), "offsets"),
        space(kernels::cuda::EmbeddingWorkspaceBytes(kMostLookups, kMostDim), "sort");
    for (const DeviceMemory* memory : {&rows, &state, &pooled}) {
      device::cuda::FillZero(queue_, memory->As<void>(), memory->bytes());
    }
    const auto* control = Control();
    const auto scramble = [](uint64_t x) {
      x = (x ^ (x >> 31)) * 0x7fb5d329728ea185ull;
      x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44dull;
      return x ^ (x >> 33);
    };
    const auto lookups_of = [&](int64_t count, int64_t dim, kernels::RowFormat format, int64_t table_rows,
                                int64_t repeats, int64_t bag) {
      std::vector<int64_t> host_ids(static_cast<size_t>(count));
      const uint64_t distinct = static_cast<uint64_t>(std::max<int64_t>(1, count / repeats));
      for (size_t i = 0; i < host_ids.size(); ++i) {
        const uint64_t pick = repeats == 1 ? i : scramble(i) % distinct;
        host_ids[i] = static_cast<int64_t>(scramble(pick + 77) % static_cast<uint64_t>(table_rows));
      }
      device::cuda::CopyToDevice(queue_, host_ids.data(), 8 * count, ids.As<void>());
      std::vector<int64_t> host_offsets(static_cast<size_t>(count / bag + 1));
      for (size_t i = 0; i < host_offsets.size(); ++i) host_offsets[i] = static_cast<int64_t>(i) * bag;
      device::cuda::CopyToDevice(queue_, host_offsets.data(), static_cast<int64_t>(8 * host_offsets.size()),
                                 offsets.As<void>());
      const kernels::EmbeddingTable table = {rows.As<void>(), state.As<float>(), table_rows, static_cast<int32_t>(dim),
                                             format};
      const kernels::EmbeddingFeature feature = {0, kernels::BagPooling::kSum, pooled.As<float>(), dim};
      const int64_t first_row = 0;
      tables_ = device::cuda::UploadedArray(std::vector{table}, "tables");
      features_ = device::cuda::UploadedArray(std::vector{feature}, "features");
      first_rows_ = device::cuda::UploadedArray(std::vector{first_row}, "tables");
      queue_.Wait();
      kernels::cuda::EmbeddingLookups lookups;
      lookups.tables = tables_.As<kernels::EmbeddingTable>();
      lookups.features = features_.As<kernels::EmbeddingFeature>();
      lookups.table_count = lookups.feature_count = 1;
      lookups.max_dim = static_cast<int32_t>(dim);
      lookups.batch = count / bag;
      lookups.lookups = count;
      lookups.row_count = table_rows;
      lookups.first_row = first_rows_.As<int64_t>();
      lookups.offsets = offsets.As<int64_t>();
      lookups.ids = ids.As<int64_t>();
      lookups.plain_rows = format == kernels::RowFormat::kFp32;
      return lookups;
    };
    using kernels::RowFormat;
    using kernels::RowOptimizer;
    const std::pair<const char*, RowFormat> formats[] = {
        {"fp32", RowFormat::kFp32}, {"bf16", RowFormat::kBf16}, {"int8", RowFormat::kInt8}};
    const std::pair<const char*, RowOptimizer> optimizers[] = {{"sgd", RowOptimizer::kSgd},
                                                               {"adagrad", RowOptimizer::kAdagrad},
                                                               {"rowwise_adagrad", RowOptimizer::kRowwiseAdagrad},
                                                               {"adam", RowOptimizer::kAdam},
                                                               {"rowwise_adam", RowOptimizer::kRowwiseAdam}};
    for (const auto& [format_name, format] : formats) {
      for (const bool warm : {true, false}) {
        Grid(fmt::format("embedding_forward.{}.{}.{}", format_name, type, warm ? "warm" : "cold"), {counts, dims, bags},
             [&, format = format](const std::vector<int64_t>& e) {
               const int64_t bytes = kernels::RowBytes(format, e[1]);
               const auto lookups = lookups_of(e[0], e[1], format, (warm ? kWarmBytes : kTableBytes) / bytes, 1, e[2]);
               return Seconds([&] { kernels::cuda::EmbeddingForward<T>(lookups, queue_.stream()); });
             });
      }
      for (const auto& [optimizer_name, optimizer] : optimizers) {
        Grid(fmt::format("embedding_backward.{}.{}.{}", optimizer_name, format_name, type),
             {counts, dims, {1, 4, 32, 512}},
             [&, format = format, optimizer = optimizer](const std::vector<int64_t>& e) {
               const auto lookups =
                   lookups_of(e[0], e[1], format,
                              kTableBytes / std::max<int64_t>(kernels::RowBytes(format, e[1]), 4 * e[1]), e[2], 4);
               const auto sorted = kernels::cuda::SortByRow(lookups, space.As<void>(), space.bytes(), queue_.stream());
               kernels::RowUpdate update;
               update.optimizer = optimizer;
               update.learning_rate = 0.01f;
               return Seconds(
                   [&] { kernels::cuda::EmbeddingUpdate<T>(lookups, sorted, update, control, queue_.stream()); });
             });
      }
    }
    if constexpr (std::is_same_v<T, float>) {
      Grid("sort", {counts, bags}, [&](const std::vector<int64_t>& e) {
        const auto lookups = lookups_of(e[0], 16, RowFormat::kFp32, int64_t{1} << 25, 1, e[1]);
        return Seconds([&] { kernels::cuda::SortByRow(lookups, space.As<void>(), space.bytes(), queue_.stream()); });
      });
    }
  }

  const std::function<void(const std::string&, double)>& progress_;
  Queue queue_;
  Event begin_{Event::Timing::kTimed}, end_{Event::Timing::kTimed};
  DeviceMemory control_, spare_control_, tables_, features_, first_rows_;
  std::vector<CudaKernelGrid> grids_;
};

}  // namespace

Result<CudaKernelTimes> MeasureCudaKernels(const std::function<void(const std::string& part, double done)>& progress) {
  PORTOLAN_ASSIGN_OR_RETURN(const device::cuda::DeviceFacts facts, device::cuda::OpenDevice());
  try {
    return Measurer(progress).Go(facts);
  } catch (const device::cuda::DeviceFailure& failure) {
    return MakeError(ErrorCode::kIo, failure.what());
  }
}

}  // namespace portolan
