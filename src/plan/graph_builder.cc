#include "plan/graph_builder.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "plan/gemm_times.h"

namespace portolan {
namespace {

// A size of a product: whole, at least 1, and far from the end of int64_t whatever batch a recipe asks for.
int64_t Whole(double size) { return std::llround(std::clamp(size, 1.0, 1e15)); }

}  // namespace

double NarrowParameters(const Model& model, const Recipe& recipe) {
  double narrow = 0;
  for (const Block& block : model.blocks) {
    if (SizeOf(recipe.GemmOf(block.name)) < Bytes(4)) narrow += BlockParameters(model, block);
  }
  return narrow;
}

Bytes GemmWeightBytes(const Model& model, const Recipe& recipe) {
  Bytes bytes;
  for (const Block& block : model.blocks) bytes += BlockParameters(model, block) * SizeOf(recipe.GemmOf(block.name));
  return bytes;
}

int GraphBuilder::Add(std::string name, Category category, Stream stream, const Estimate& estimate,
                      std::vector<int> after) {
  Task task;
  task.name = std::move(name);
  task.category = category;
  task.stream = stream;
  task.estimate = estimate;
  task.after = std::move(after);
  graph.tasks.push_back(std::move(task));
  return static_cast<int>(graph.tasks.size()) - 1;
}

DType NativeGemmFormat(DType wanted, DType fallback, const Accelerator& chip) {
  const auto has = [&chip](DType dtype) { return chip.sustained_matrix[dtype] > FlopsPerSecond(0); };
  if (has(wanted) || SizeOf(wanted) >= SizeOf(fallback)) return wanted;
  return has(DType::kFp8E4m3) ? DType::kFp8E4m3 : fallback;
}

int GraphBuilder::Gemm(const std::string& name, double m, double n, double k, GemmLayout layout, GemmEpilogue epilogue,
                       std::vector<int> after, double batch) {
  GemmShape shape;
  shape.m = Whole(m);
  shape.n = Whole(n);
  shape.k = Whole(k);
  shape.batch = Whole(batch);
  shape.layout = layout;
  const DType format = NativeGemmFormat(gemm, recipe.activation, chip);
  shape.compute = format;
  // Narrow formats are quantised on the way in; the output is an activation.
  const bool narrow = SizeOf(format) < SizeOf(recipe.activation);
  shape.a = shape.b = narrow ? format : recipe.activation;
  shape.d = recipe.activation;
  shape.epilogue = epilogue;
  const int task = Add(name, Category::kGemm, Stream::kMain, PriceGemm(shape), std::move(after));
  graph.tasks.back().matrix_flops = GemmWork(shape).matrix_flops;
  return task;
}

Estimate GraphBuilder::PriceGemm(const GemmShape& shape) const {
  const GemmMemo::key_type key(shape.m, shape.n, shape.k, shape.batch, shape.layout, shape.epilogue, shape.compute);
  if (memo_ != nullptr) {
    if (const auto found = memo_->find(key); found != memo_->end()) return found->second;
  }
  std::optional<Estimate> selected;
  if (const auto times = CurrentGemmTimes()) selected = times->SelectEstimate(shape, chip);
  const Estimate estimate = selected ? *selected : GemmEstimate(shape, chip);
  if (memo_ != nullptr) memo_->emplace(key, estimate);
  return estimate;
}

int GraphBuilder::OwnWeightGemm(const std::string& name, double m, double n, double k, GemmLayout layout,
                                GemmEpilogue epilogue, std::vector<int> after, double count) {
  if (recipe.grouped_products == GroupedProducts::kBatched || count <= 1) {
    return Gemm(name, m, n, k, layout, epilogue, std::move(after), count);
  }
  const int task = Gemm(name, m, n, k, layout, epilogue, std::move(after));
  Task& loop = graph.tasks[static_cast<size_t>(task)];
  loop.estimate.compute *= count;
  loop.estimate.memory *= count;
  loop.estimate.launch *= count;
  loop.estimate.total *= count;
  loop.matrix_flops *= count;
  loop.kernels = count;
  return task;
}

int GraphBuilder::Pointwise(const std::string& name, double read, double written, std::vector<int> after) {
  ElementwiseShape shape;
  shape.read = Bytes(read);
  shape.written = Bytes(written);
  shape.elements = written / 2;
  shape.flops_per_element = 4;
  const int task = Add(name, Category::kElementwise, Stream::kMain, ElementwiseEstimate(shape, chip), std::move(after));
  graph.tasks.back().moved = shape.read + shape.written;
  return task;
}

}  // namespace portolan
