#include "plan/timeline.h"

#include <random>

#include "plan/test_inputs.h"

namespace portolan {
namespace {

// Seconds of a task are exact: all factors one, nothing fixed, no overhead.
StepConstants Plain() { return {}; }

Recipe GraphRecipe() {
  Recipe recipe = DefaultRecipe();
  recipe.launch = Launch::kGraph;
  return recipe;
}

int AddTask(StepGraph& graph, Category category, Stream stream, double seconds, std::vector<int> after = {}) {
  Task task;
  task.name = "task " + std::to_string(graph.tasks.size());
  task.category = category;
  task.stream = stream;
  task.estimate.total = Seconds(seconds);
  task.after = std::move(after);
  graph.tasks.push_back(std::move(task));
  return static_cast<int>(graph.tasks.size()) - 1;
}

double Exposed(const Timeline& timeline, const std::string& name) {
  double sum = 0;
  for (const ExposedTerm& term : timeline.exposed) sum += term.name == name ? term.time.value : 0.0;
  return sum;
}

double SumOfTerms(const Timeline& timeline) {
  double sum = 0;
  for (const ExposedTerm& term : timeline.exposed) sum += term.time.value;
  return sum;
}

class TimelineTest : public testing::Test {
 protected:
  Timeline Run(const StepConstants& constants = Plain()) { return RunTimeline(graph_, recipe_, cluster_, constants); }

  StepGraph graph_;
  Recipe recipe_ = GraphRecipe();
  Cluster cluster_;
};

TEST_F(TimelineTest, NothingTakesNoTime) { EXPECT_EQ(Run().step, Seconds(0)); }

TEST_F(TimelineTest, OneStreamIsTheSumOfItsTasks) {
  AddTask(graph_, Category::kGemm, Stream::kMain, 3);
  AddTask(graph_, Category::kElementwise, Stream::kMain, 2);
  AddTask(graph_, Category::kGemm, Stream::kMain, 1);
  const Timeline timeline = Run();
  EXPECT_DOUBLE_EQ(timeline.step.value, 6);
  EXPECT_DOUBLE_EQ(Exposed(timeline, "gemm"), 4);
  EXPECT_DOUBLE_EQ(Exposed(timeline, "elementwise"), 2);
  EXPECT_DOUBLE_EQ(timeline.busy[static_cast<size_t>(Category::kGemm)].value, 4);
}

TEST_F(TimelineTest, ACollectiveBesideLongerComputeIsHidden) {
  const int first = AddTask(graph_, Category::kGemm, Stream::kMain, 1);
  const int reduce = AddTask(graph_, Category::kDenseCollective, Stream::kCommunication, 3, {first});
  AddTask(graph_, Category::kGemm, Stream::kMain, 5, {first});
  const int last = AddTask(graph_, Category::kOptimizer, Stream::kMain, 1, {reduce});
  graph_.tasks[static_cast<size_t>(first)].after_previous = {last};
  const Timeline timeline = Run();
  EXPECT_DOUBLE_EQ(timeline.step.value, 7);  // 1 + max(3, 5) + 1
  EXPECT_DOUBLE_EQ(Exposed(timeline, "dense_collective"), 0);
  EXPECT_DOUBLE_EQ(timeline.busy[static_cast<size_t>(Category::kDenseCollective)].value, 3);
}

TEST_F(TimelineTest, ALongerCollectiveIsExposedByTheDifference) {
  const int first = AddTask(graph_, Category::kGemm, Stream::kMain, 1);
  const int reduce = AddTask(graph_, Category::kDenseCollective, Stream::kCommunication, 9, {first});
  AddTask(graph_, Category::kGemm, Stream::kMain, 5, {first});
  const int last = AddTask(graph_, Category::kOptimizer, Stream::kMain, 1, {reduce});
  graph_.tasks[static_cast<size_t>(first)].after_previous = {last};
  const Timeline timeline = Run();
  EXPECT_DOUBLE_EQ(timeline.step.value, 11);  // 1 + max(9, 5) + 1
  EXPECT_DOUBLE_EQ(Exposed(timeline, "dense_collective"), 4);
  EXPECT_DOUBLE_EQ(Exposed(timeline, "gemm"), 6);
}

TEST_F(TimelineTest, CollectivesShareOneQueue) {
  const int first = AddTask(graph_, Category::kSparseExchange, Stream::kCommunication, 2);
  const int second = AddTask(graph_, Category::kDenseCollective, Stream::kCommunication, 3);
  const int join = AddTask(graph_, Category::kGemm, Stream::kMain, 1, {first, second});
  graph_.tasks[static_cast<size_t>(first)].after_previous = {join};
  EXPECT_DOUBLE_EQ(Run().step.value, 6);
}

TEST_F(TimelineTest, TwoComputeStreamsShareTheDevice) {
  // Both of 4 s: at (1 + 0.2) / 2 each they take 4 / 0.6 s together instead of 8.
  const int a = AddTask(graph_, Category::kGemm, Stream::kMain, 4);
  const int b = AddTask(graph_, Category::kEmbeddingForward, Stream::kEmbedding, 4);
  const int join = AddTask(graph_, Category::kGemm, Stream::kMain, 1, {a, b});
  for (const int start : {a, b}) graph_.tasks[static_cast<size_t>(start)].after_previous = {join};
  StepConstants constants = Plain();
  constants.concurrency_gain = 0.2;
  EXPECT_NEAR(Run(constants).step.value, 4 / 0.6 + 1, 1e-9);
  // Without a gain nothing is won, with full concurrency one is free.
  EXPECT_NEAR(Run().step.value, 9, 1e-9);
  constants.concurrency_gain = 1;
  EXPECT_NEAR(Run(constants).step.value, 5, 1e-9);
}

TEST_F(TimelineTest, AStreamLeftAloneRunsAtFullRate) {
  // Until the short one (1 s of work) ends after 2 s at half rate each, then 3 s of the long one are left.
  const int a = AddTask(graph_, Category::kGemm, Stream::kMain, 1);
  const int b = AddTask(graph_, Category::kEmbeddingForward, Stream::kEmbedding, 4);
  graph_.tasks[static_cast<size_t>(a)].after_previous = {b};
  graph_.tasks[static_cast<size_t>(b)].after_previous = {a};
  EXPECT_NEAR(Run().step.value, 5, 1e-9);
}

TEST_F(TimelineTest, ALongChainOfShortKernelsWaitsForTheHost) {
  // 10 kernels of 1 s whose enqueueing takes 1.5 x 2 s each: 30 s a step, of which 10 compute.
  recipe_.launch = Launch::kStream;
  cluster_.accelerator.host_launch = Seconds(2);
  for (int i = 0; i < 10; ++i) AddTask(graph_, Category::kGemm, Stream::kMain, 1);
  StepConstants constants = Plain();
  constants.host_kernel_compiled = 1.5;
  const Timeline timeline = Run(constants);
  EXPECT_NEAR(timeline.step.value, 30, 1e-9);
  EXPECT_NEAR(Exposed(timeline, "gemm"), 10, 1e-9);
  EXPECT_NEAR(Exposed(timeline, "host_launch"), 20, 1e-9);
  // A graph is launched at once; long kernels hide the enqueueing of the next ones.
  recipe_.launch = Launch::kGraph;
  EXPECT_NEAR(Run(constants).step.value, 10, 1e-9);
  recipe_.launch = Launch::kStream;
  for (Task& task : graph_.tasks) task.estimate.total = Seconds(5);
  EXPECT_NEAR(Run(constants).step.value, 50, 1e-9);
}

TEST_F(TimelineTest, ATaskOfManyKernelsIsEnqueuedAsOften) {
  recipe_.launch = Launch::kStream;
  cluster_.accelerator.host_launch = Seconds(1);
  AddTask(graph_, Category::kGemm, Stream::kMain, 1);
  graph_.tasks[0].kernels = 8;
  StepConstants constants = Plain();
  constants.host_kernel_compiled = 1;
  EXPECT_NEAR(Run(constants).step.value, 8, 1e-9);
}

TEST_F(TimelineTest, DependenciesOnThePreviousStep) {
  // The exchange of the next step may start when the lookup of this one has ended: beside the 6 s of GEMMs.
  const int exchange = AddTask(graph_, Category::kSparseExchange, Stream::kCommunication, 4);
  const int lookup = AddTask(graph_, Category::kEmbeddingForward, Stream::kMain, 1, {exchange});
  const int gemm = AddTask(graph_, Category::kGemm, Stream::kMain, 6, {lookup});
  graph_.tasks[static_cast<size_t>(exchange)].after_previous = {lookup};
  Timeline timeline = Run();
  EXPECT_DOUBLE_EQ(timeline.step.value, 7);
  EXPECT_DOUBLE_EQ(Exposed(timeline, "sparse_exchange"), 0);
  // Waiting for the whole step exposes it.
  graph_.tasks[static_cast<size_t>(exchange)].after_previous = {gemm};
  timeline = Run();
  EXPECT_DOUBLE_EQ(timeline.step.value, 11);
  EXPECT_DOUBLE_EQ(Exposed(timeline, "sparse_exchange"), 4);
}

TEST_F(TimelineTest, FactorsDoNotStretchTheFixedPart) {
  AddTask(graph_, Category::kGemm, Stream::kMain, 5);
  graph_.tasks[0].estimate.launch = Seconds(1);
  StepConstants constants = Plain();
  constants.gemm = 1.5;
  constants.step_overhead = Seconds(0.25);
  const Timeline timeline = Run(constants);
  EXPECT_DOUBLE_EQ(timeline.step.value, 1 + 1.5 * 4 + 0.25);
  EXPECT_DOUBLE_EQ(Exposed(timeline, "step_overhead"), 0.25);
  EXPECT_DOUBLE_EQ(SumOfTerms(timeline), timeline.step.value);
}

TEST_F(TimelineTest, PointwiseFactorsByFusion) {
  StepConstants constants = Plain();
  constants.pointwise_full = 2;
  constants.pointwise_compiled = 3;
  constants.pointwise_eager = 4;
  EXPECT_EQ(constants.Factor(Category::kElementwise, Fusion::kFull), 2);
  EXPECT_EQ(constants.Factor(Category::kElementwise, Fusion::kCompiled), 3);
  EXPECT_EQ(constants.Factor(Category::kElementwise, Fusion::kEager), 4);
  EXPECT_EQ(constants.Factor(Category::kHostCopy, Fusion::kEager), 1);
}

// Random graphs whose steps follow one another: the terms add up to the step, which is at least what any queue has to
// do and at most all tasks one after the other.
TEST_F(TimelineTest, LawsOnRandomGraphs) {
  std::mt19937 random(7);
  const auto uniform = [&random](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    graph_ = {};
    const int count = 1 + uniform(12);
    std::vector<int> all;
    double total = 0;
    std::array<double, kStreamCount> queues{};
    for (int i = 0; i < count; ++i) {
      std::vector<int> after;
      for (int j = 0; j < i; ++j) {
        if (uniform(4) == 0) after.push_back(j);
      }
      const int stream = uniform(kStreamCount);
      const double seconds = 1e-3 * (1 + uniform(50));
      total += seconds;
      queues[static_cast<size_t>(stream)] += seconds;
      all.push_back(
          AddTask(graph_, static_cast<Category>(uniform(kCategoryCount)), static_cast<Stream>(stream), seconds, after));
    }
    const int join = AddTask(graph_, Category::kOptimizer, Stream::kMain, 1e-3, all);
    for (const int task : all) graph_.tasks[static_cast<size_t>(task)].after_previous = {join};
    const Timeline timeline = Run();
    EXPECT_NEAR(SumOfTerms(timeline), timeline.step.value, 1e-9 * timeline.step.value);
    for (const double queue : queues) EXPECT_GE(timeline.step.value, queue + (1 - 1e-6) * 1e-3);
    EXPECT_LE(timeline.step.value, total + (1 + 1e-6) * 1e-3);
    double busy = 0;
    for (const Seconds& seconds : timeline.busy) busy += seconds.value;
    EXPECT_NEAR(busy, total + 1e-3, 1e-9);
    for (const ExposedTerm& term : timeline.exposed) EXPECT_GE(term.time.value, 0) << term.name;
  }
}

}  // namespace
}  // namespace portolan
