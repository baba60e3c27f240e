#include "plan/timeline.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace portolan {
namespace {

constexpr int kSteps = 4;  // the last of them is in steady state: nothing reaches further back than one step
constexpr double kNever = std::numeric_limits<double>::infinity();

struct StreamState {
  std::vector<int> queue;  // tasks of one step, in issue order
  size_t next = 0;         // over all steps: step * queue.size() + position
  int running = -1;        // index over all steps
  double left = 0;         // seconds of work of the running task
};

class Simulation {
 public:
  Simulation(const StepGraph& graph, const Recipe& recipe, const Cluster& cluster, const StepConstants& constants)
      : graph_(graph), count_(static_cast<int>(graph.tasks.size())), constants_(constants) {
    double host = 0;
    if (recipe.launch != Launch::kGraph) {
      const double launches =
          recipe.fusion == Fusion::kEager ? constants.host_kernel_eager : constants.host_kernel_compiled;
      host = launches * cluster.accelerator.host_launch.value;
    }
    issue_offset_.resize(static_cast<size_t>(count_));
    duration_.resize(static_cast<size_t>(count_));
    const bool framework = recipe.launch == Launch::kStream && recipe.fusion != Fusion::kFull;
    const double interpreter = framework && count_ > 0 ? constants.framework_step.value / count_ : 0;
    double issued = 0;
    for (int i = 0; i < count_; ++i) {
      const Task& task = graph.tasks[static_cast<size_t>(i)];
      issued += host * task.kernels + interpreter;
      issue_offset_[static_cast<size_t>(i)] = issued;
      const double factor = constants.Factor(task.category, recipe.fusion);
      duration_[static_cast<size_t>(i)] =
          task.estimate.launch.value + factor * (task.estimate.total - task.estimate.launch).value;
      streams_[static_cast<size_t>(task.stream)].queue.push_back(i);
    }
    issue_total_ = issued;
    end_.assign(static_cast<size_t>(count_ * kSteps), kNever);
  }

  Timeline Run() {
    double window_begin = kNever;
    while (true) {
      for (int s = 0; s < kStreamCount; ++s) TryStart(s);
      const double step = NextEvent();
      if (step == kNever) break;
      if (now_ >= window_begin) Charge(step);
      Advance(step);
      if (window_begin == kNever && StepDone(kSteps - 2)) window_begin = now_;
    }
    PORTOLAN_CHECK(StepDone(kSteps - 1), "a task of the step graph can never start");
    Timeline timeline;
    timeline.step = Seconds(now_ - window_begin);
    for (int c = 0; c < kCategoryCount; ++c) {
      if (charged_[static_cast<size_t>(c)] > 0) {
        timeline.exposed.push_back({CategoryName(static_cast<Category>(c)), Seconds(charged_[static_cast<size_t>(c)])});
      }
    }
    timeline.step += constants_.step_overhead;
    if (constants_.step_overhead > Seconds(0)) timeline.exposed.push_back({"step_overhead", constants_.step_overhead});
    if (host_ > 0) timeline.exposed.push_back({"host_launch", Seconds(host_)});
    if (idle_ > 0) timeline.exposed.push_back({"idle", Seconds(idle_)});
    for (int i = 0; i < count_; ++i) {
      const Task& task = graph_.tasks[static_cast<size_t>(i)];
      timeline.busy[static_cast<size_t>(task.category)] += Seconds(duration_[static_cast<size_t>(i)]);
    }
    return timeline;
  }

 private:
  int TaskOf(int global) const { return global % count_; }

  // When every dependency has ended; kNever while one has not.
  double DependenciesEnd(int task, int step) const {
    double ready = 0;
    const Task& t = graph_.tasks[static_cast<size_t>(task)];
    for (const int before : t.after) ready = std::max(ready, end_[static_cast<size_t>(step * count_ + before)]);
    if (step > 0) {
      for (const int before : t.after_previous) {
        ready = std::max(ready, end_[static_cast<size_t>((step - 1) * count_ + before)]);
      }
    }
    return ready;
  }

  void TryStart(int s) {
    StreamState& stream = streams_[static_cast<size_t>(s)];
    const size_t per_step = stream.queue.size();
    if (stream.running >= 0 || per_step == 0 || stream.next >= per_step * kSteps) return;
    const int step = static_cast<int>(stream.next / per_step);
    const int task = stream.queue[stream.next % per_step];
    waits_for_host_[static_cast<size_t>(s)] = false;
    wake_[static_cast<size_t>(s)] = kNever;
    if (DependenciesEnd(task, step) > now_) return;
    const double issued = step * issue_total_ + issue_offset_[static_cast<size_t>(task)];
    if (issued > now_) {
      waits_for_host_[static_cast<size_t>(s)] = true;
      wake_[static_cast<size_t>(s)] = issued;
      return;
    }
    stream.running = step * count_ + task;
    stream.left = duration_[static_cast<size_t>(task)];
    ++stream.next;
  }

  double Rate(int s) const {
    const bool both = streams_[static_cast<size_t>(Stream::kMain)].running >= 0 &&
                      streams_[static_cast<size_t>(Stream::kEmbedding)].running >= 0;
    const bool compute = s == static_cast<int>(Stream::kMain) || s == static_cast<int>(Stream::kEmbedding);
    return both && compute ? 0.5 * (1 + constants_.concurrency_gain) : 1.0;
  }

  double NextEvent() const {
    double step = kNever;
    for (int s = 0; s < kStreamCount; ++s) {
      const StreamState& stream = streams_[static_cast<size_t>(s)];
      if (stream.running >= 0) {
        step = std::min(step, stream.left / Rate(s));
      } else {
        step = std::min(step, wake_[static_cast<size_t>(s)] - now_);
      }
    }
    return step;
  }

  void Charge(double seconds) {
    for (const Stream s : {Stream::kMain, Stream::kEmbedding, Stream::kCommunication, Stream::kHostCopy}) {
      const int running = streams_[static_cast<size_t>(s)].running;
      if (running < 0) continue;
      charged_[static_cast<size_t>(graph_.tasks[static_cast<size_t>(TaskOf(running))].category)] += seconds;
      return;
    }
    const bool host = std::find(waits_for_host_.begin(), waits_for_host_.end(), true) != waits_for_host_.end();
    (host ? host_ : idle_) += seconds;
  }

  void Advance(double seconds) {
    std::array<double, kStreamCount> rates;
    for (int s = 0; s < kStreamCount; ++s) rates[static_cast<size_t>(s)] = Rate(s);
    now_ += seconds;
    for (int s = 0; s < kStreamCount; ++s) {
      StreamState& stream = streams_[static_cast<size_t>(s)];
      if (stream.running < 0) continue;
      const double done = seconds * rates[static_cast<size_t>(s)];
      // Within rounding of its end, a task has ended.
      if (done >= stream.left * (1 - 1e-12)) {
        end_[static_cast<size_t>(stream.running)] = now_;
        ++ended_[static_cast<size_t>(stream.running / count_)];
        stream.running = -1;
      } else {
        stream.left -= done;
      }
    }
  }

  bool StepDone(int step) const { return ended_[static_cast<size_t>(step)] == count_; }

  const StepGraph& graph_;
  const int count_;
  const StepConstants& constants_;
  std::array<StreamState, kStreamCount> streams_;
  std::vector<double> issue_offset_, duration_, end_;
  std::array<bool, kStreamCount> waits_for_host_{};
  std::array<double, kStreamCount> wake_{kNever, kNever, kNever, kNever};
  std::array<int, kSteps> ended_{};
  std::array<double, kCategoryCount> charged_{};
  double now_ = 0, host_ = 0, idle_ = 0, issue_total_ = 0;
};

}  // namespace

Timeline RunTimeline(const StepGraph& graph, const Recipe& recipe, const Cluster& cluster,
                     const StepConstants& constants) {
  if (graph.tasks.empty()) return {};
  return Simulation(graph, recipe, cluster, constants).Run();
}

}  // namespace portolan
