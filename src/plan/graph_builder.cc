#include "plan/graph_builder.h"

#include <algorithm>
#include <cmath>

namespace portolan {

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

int GraphBuilder::Gemm(const std::string& name, double m, double n, double k, GemmLayout layout, GemmEpilogue epilogue,
                       std::vector<int> after, double batch) {
  GemmShape shape;
  shape.m = std::max<int64_t>(1, std::llround(m));
  shape.n = std::max<int64_t>(1, std::llround(n));
  shape.k = std::max<int64_t>(1, std::llround(k));
  shape.batch = std::max<int64_t>(1, std::llround(batch));
  shape.layout = layout;
  shape.compute = recipe.gemm;
  // Narrow formats are quantised on the way in; the output is an activation.
  const bool narrow = SizeOf(recipe.gemm) < SizeOf(recipe.activation);
  shape.a = shape.b = narrow ? recipe.gemm : recipe.activation;
  shape.d = recipe.activation;
  shape.epilogue = epilogue;
  return Add(name, Category::kGemm, Stream::kMain, GemmEstimate(shape, chip), std::move(after));
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
  loop.kernels = count;
  return task;
}

int GraphBuilder::Pointwise(const std::string& name, double read, double written, std::vector<int> after) {
  ElementwiseShape shape;
  shape.read = Bytes(read);
  shape.written = Bytes(written);
  shape.elements = written / 2;
  shape.flops_per_element = 4;
  return Add(name, Category::kElementwise, Stream::kMain, ElementwiseEstimate(shape, chip), std::move(after));
}

}  // namespace portolan
