#include "select/selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "select/constants.h"
#include "select/selection_shift.h"

namespace portolan {
namespace {

constexpr size_t kMostKernels = 65536;
constexpr size_t kStackKernels = 1024;  // scored on the stack; larger catalogues go through in parts
// Standard deviation of log(predicted / measured) between kernels of one problem, held-out shapes, and the gap below
// which a choice is as good as the best: docs/select.md.
constexpr double kPairError = 0.06;
constexpr double kGoodEnough = 0.02;

// Slots of the cache; a problem may stand in one of kWays neighbours.
constexpr size_t kSlots = 4096, kWays = 4;

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

uint64_t Hash(const GemmProblem& p) {
  uint64_t hash = Mix(0x517CC1B727220A95ull, static_cast<uint64_t>(p.m));
  hash = Mix(hash, static_cast<uint64_t>(p.n));
  hash = Mix(hash, static_cast<uint64_t>(p.k));
  hash = Mix(hash, static_cast<uint64_t>(p.batch) ^ static_cast<uint64_t>(p.groups) << 40);
  hash = Mix(hash, static_cast<uint64_t>(p.lda) ^ static_cast<uint64_t>(p.ldb) << 32);
  hash = Mix(hash, static_cast<uint64_t>(p.ldc) ^ static_cast<uint64_t>(p.ldd) << 32);
  const uint64_t kinds = static_cast<uint64_t>(p.layout) | static_cast<uint64_t>(p.a) << 4 |
                         static_cast<uint64_t>(p.b) << 8 | static_cast<uint64_t>(p.c) << 12 |
                         static_cast<uint64_t>(p.d) << 16 | static_cast<uint64_t>(p.compute) << 20 |
                         static_cast<uint64_t>(p.epilogue) << 24 | static_cast<uint64_t>(p.inputs) << 28 |
                         static_cast<uint64_t>(p.pointer_alignment_bytes) << 32;
  return Mix(Mix(hash, kinds), static_cast<uint64_t>(p.usable_units));
}

// The problem as words, so that a reader can compare it while another thread writes the slot.
struct Words {
  static constexpr size_t kCount = 11;
  std::array<uint64_t, kCount> word;
  explicit Words(const GemmProblem& p)
      : word{static_cast<uint64_t>(p.m),
             static_cast<uint64_t>(p.n),
             static_cast<uint64_t>(p.k),
             static_cast<uint64_t>(p.batch),
             static_cast<uint64_t>(p.lda),
             static_cast<uint64_t>(p.ldb),
             static_cast<uint64_t>(p.ldc),
             static_cast<uint64_t>(p.ldd),
             static_cast<uint64_t>(p.groups) | static_cast<uint64_t>(p.usable_units) << 32,
             static_cast<uint64_t>(p.pointer_alignment_bytes),
             static_cast<uint64_t>(p.layout) | static_cast<uint64_t>(p.a) << 8 | static_cast<uint64_t>(p.b) << 16 |
                 static_cast<uint64_t>(p.c) << 24 | static_cast<uint64_t>(p.d) << 32 |
                 static_cast<uint64_t>(p.compute) << 40 | static_cast<uint64_t>(p.epilogue) << 48 |
                 static_cast<uint64_t>(p.inputs) << 56} {}
};

// A sequence lock: odd while a writer is in the slot.
struct Slot {
  static constexpr size_t kAnswer = 7;
  std::atomic<uint32_t> sequence{0};
  std::array<std::atomic<uint64_t>, Words::kCount> key{};
  std::array<std::atomic<uint64_t>, kAnswer> answer{};
};

std::array<uint64_t, Slot::kAnswer> Pack(const RankedKernel& r) {
  const double values[] = {
      r.time.value, r.estimate.compute.value, r.estimate.memory.value, r.estimate.launch.value, r.estimate.total.value,
      r.confidence};
  std::array<uint64_t, Slot::kAnswer> words{static_cast<uint64_t>(r.index + 1)};
  std::memcpy(words.data() + 1, values, sizeof(values));
  return words;
}

RankedKernel Unpack(const std::array<uint64_t, Slot::kAnswer>& words) {
  double values[6];
  std::memcpy(values, words.data() + 1, sizeof(values));
  RankedKernel r;
  r.index = static_cast<int32_t>(words[0]) - 1;
  r.time = Seconds(values[0]);
  r.estimate.compute = Seconds(values[1]);
  r.estimate.memory = Seconds(values[2]);
  r.estimate.launch = Seconds(values[3]);
  r.estimate.total = Seconds(values[4]);
  r.confidence = values[5];
  return r;
}

class AnswerCache {
 public:
  AnswerCache() : slots_(kSlots) {}

  bool Find(const Words& words, uint64_t hash, RankedKernel* answer) const {
    for (size_t way = 0; way < kWays; ++way) {
      const Slot& slot = slots_[(hash + way) % kSlots];
      const uint32_t before = slot.sequence.load(std::memory_order_acquire);
      if (before == 0 || before % 2 == 1) continue;
      bool same = true;
      for (size_t i = 0; i < Words::kCount && same; ++i) {
        same = slot.key[i].load(std::memory_order_relaxed) == words.word[i];
      }
      if (!same) continue;
      std::array<uint64_t, Slot::kAnswer> packed;
      for (size_t i = 0; i < Slot::kAnswer; ++i) packed[i] = slot.answer[i].load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (slot.sequence.load(std::memory_order_relaxed) != before) continue;
      *answer = Unpack(packed);
      return true;
    }
    return false;
  }

  // Takes an empty way, else the one that the hash's high bits name; gives up when another thread is writing there.
  void Store(const Words& words, uint64_t hash, const RankedKernel& answer) {
    size_t way = (hash >> 48) % kWays;
    for (size_t i = 0; i < kWays; ++i) {
      if (slots_[(hash + i) % kSlots].sequence.load(std::memory_order_relaxed) == 0) {
        way = i;
        break;
      }
    }
    Slot& slot = slots_[(hash + way) % kSlots];
    uint32_t before = slot.sequence.load(std::memory_order_relaxed);
    if (before % 2 == 1) return;
    if (!slot.sequence.compare_exchange_strong(before, before + 1, std::memory_order_acquire)) return;
    std::atomic_thread_fence(std::memory_order_release);
    for (size_t i = 0; i < Words::kCount; ++i) slot.key[i].store(words.word[i], std::memory_order_relaxed);
    const auto packed = Pack(answer);
    for (size_t i = 0; i < Slot::kAnswer; ++i) slot.answer[i].store(packed[i], std::memory_order_relaxed);
    // Never back to 0, which means empty.
    slot.sequence.store(before + 2 == 0 ? 2 : before + 2, std::memory_order_release);
  }

 private:
  std::vector<Slot> slots_;
};

// Probability that a normal error of kPairError leaves the leader within kGoodEnough of one that is `gap` behind it.
double HoldsAgainst(double gap) { return 0.5 * std::erfc(-(gap + kGoodEnough) / (kPairError * M_SQRT2)); }

}  // namespace

struct Selector::Impl {
  // Kernels of one family and compute type, at most kStackKernels of them.
  struct Part {
    KernelFamily family;
    DType compute;
    std::vector<int32_t> index;  // in the catalogue
    std::shared_ptr<const FamilyModel> model;
    std::unique_ptr<KernelScorer> scorer;
  };

  Accelerator accelerator;
  KernelCatalogue catalogue;
  std::vector<Part> parts;
  std::vector<int32_t> part_of, place_of;  // per kernel: its part, and its place there
  mutable AnswerCache cache;

  KernelTerms Terms(const GemmProblem& problem, int32_t index) const {
    const auto i = static_cast<size_t>(index);
    return parts[static_cast<size_t>(part_of[i])].scorer->Terms(problem, static_cast<size_t>(place_of[i]));
  }

  RankedKernel Answer(const GemmProblem& problem, int32_t index, double seconds, double runner_up) const {
    RankedKernel r;
    r.index = index;
    if (index < 0) return r;
    r.time = Seconds(seconds);
    r.estimate = EstimateOf(Terms(problem, index));
    r.confidence = runner_up > 0.0 && std::isfinite(runner_up) ? HoldsAgainst(std::log(runner_up / seconds)) : 1.0;
    return r;
  }
};

Selector::Selector(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Selector::Selector(Selector&&) noexcept = default;
Selector& Selector::operator=(Selector&&) noexcept = default;
Selector::~Selector() = default;

Result<Selector> Selector::Create(const Accelerator& accelerator, KernelCatalogue catalogue,
                                  std::span<const FamilyConstants> constants) {
  if (catalogue.kernels.empty()) return MakeError(ErrorCode::kInvalidValue, "the kernel catalogue is empty");
  if (catalogue.kernels.size() > kMostKernels) {
    return MakeError(ErrorCode::kInvalidValue, fmt::format("the catalogue has {} kernels; at most {} are accepted",
                                                           catalogue.kernels.size(), kMostKernels));
  }
  if (catalogue.ids.size() != catalogue.kernels.size()) {
    return MakeError(ErrorCode::kInvalidValue,
                     fmt::format("{} kernels, but {} names", catalogue.kernels.size(), catalogue.ids.size()));
  }
  auto impl = std::make_unique<Impl>();
  impl->accelerator = accelerator;
  impl->catalogue = std::move(catalogue);
  const std::vector<FamilyConstants> all(constants.begin(), constants.end());
  const std::vector<GemmKernel>& kernels = impl->catalogue.kernels;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const GemmKernel& kernel = kernels[i];
    const FamilyEntry* family = FindFamily(kernel.family);
    if (family == nullptr) {
      return MakeError(ErrorCode::kUnsupported, fmt::format("kernel '{}': no model for the family {}",
                                                            impl->catalogue.ids[i], KernelFamilyName(kernel.family)));
    }
    if (kernel.tile_m < 0 || kernel.tile_n < 0 || kernel.tile_k < 0 || kernel.stages < 0 || kernel.cluster_m < 1 ||
        kernel.cluster_n < 1 || kernel.split_k < -1) {
      return MakeError(ErrorCode::kInvalidValue,
                       fmt::format("kernel '{}': tile, stages and split must not be negative, clusters at least 1",
                                   impl->catalogue.ids[i]));
    }
    auto part = std::find_if(impl->parts.rbegin(), impl->parts.rend(), [&](const Impl::Part& p) {
      return p.family == kernel.family && p.compute == kernel.compute;
    });
    const bool first = part == impl->parts.rend();
    if (first || part->index.size() == kStackKernels) {
      Impl::Part fresh;
      fresh.family = kernel.family;
      fresh.compute = kernel.compute;
      fresh.model = first ? std::shared_ptr<const FamilyModel>(family->make(
                                accelerator, PickConstants(all, kernel.family, kernel.compute, accelerator)))
                          : part->model;
      impl->parts.push_back(std::move(fresh));
      part = impl->parts.rbegin();
    }
    impl->part_of.push_back(static_cast<int32_t>(impl->parts.rend() - part - 1));
    impl->place_of.push_back(static_cast<int32_t>(part->index.size()));
    part->index.push_back(static_cast<int32_t>(i));
  }
  for (Impl::Part& part : impl->parts) {
    std::vector<GemmKernel> own;
    for (const int32_t index : part.index) own.push_back(kernels[static_cast<size_t>(index)]);
    part.scorer = part.model->Prepare(own);
  }
  return Selector(std::move(impl));
}

RankedKernel Selector::BestUncached(const GemmProblem& problem) const {
  double least = std::numeric_limits<double>::infinity(), second = least;
  int32_t index = -1;
  if (!IsPriceable(problem)) return {};
  std::array<double, kStackKernels> seconds;
  for (const Impl::Part& part : impl_->parts) {
    const size_t n = part.index.size();
    part.scorer->ScoreAll(problem, {seconds.data(), n});
    for (size_t i = 0; i < n; ++i) {
      if (seconds[i] >= second) continue;
      // Equal times keep catalogue order, also between parts.
      if (seconds[i] < least || (seconds[i] == least && part.index[i] < index)) {
        second = least;
        least = seconds[i];
        index = part.index[i];
      } else {
        second = seconds[i];
      }
    }
  }
  return impl_->Answer(problem, index, least, second);
}

RankedKernel Selector::Best(const GemmProblem& problem) const {
  if (problem.group_m != nullptr || !IsPriceable(problem)) return BestUncached(problem);
  const uint64_t hash = Hash(problem);
  const Words words(problem);
  RankedKernel answer;
  if (impl_->cache.Find(words, hash, &answer)) return answer;
  answer = BestUncached(problem);
  impl_->cache.Store(words, hash, answer);
  return answer;
}

Seconds Selector::ExpectedTime(const GemmProblem& problem, const RankedKernel& best, double kernel_error) const {
  if (best.index < 0) return best.time;
  SelectionShift shift(best.time.value, kernel_error);
  std::array<double, kStackKernels> seconds;
  for (const Impl::Part& part : impl_->parts) {
    const std::span<double> own(seconds.data(), part.index.size());
    part.scorer->ScoreAll(problem, own);
    shift.Add(own);
  }
  return Seconds(best.time.value * shift.Factor());
}

size_t Selector::Rank(const GemmProblem& problem, std::span<RankedKernel> ranked) const {
  size_t kept = 0;
  double outside = std::numeric_limits<double>::infinity();  // the fastest that `ranked` has no room for
  std::array<double, kStackKernels> seconds;
  if (ranked.empty() || !IsPriceable(problem)) return 0;
  for (const Impl::Part& part : impl_->parts) {
    const size_t n = part.index.size();
    part.scorer->ScoreAll(problem, {seconds.data(), n});
    for (size_t i = 0; i < n; ++i) {
      const auto before = [&](const RankedKernel& other) {
        return seconds[i] < other.time.value || (seconds[i] == other.time.value && part.index[i] < other.index);
      };
      if (!std::isfinite(seconds[i])) continue;
      if (kept == ranked.size()) {
        const bool enters = before(ranked[kept - 1]);
        outside = std::min(outside, enters ? ranked[kept - 1].time.value : seconds[i]);
        if (!enters) continue;
      }
      size_t place = kept < ranked.size() ? kept++ : kept - 1;
      for (; place > 0 && before(ranked[place - 1]); --place) ranked[place] = ranked[place - 1];
      ranked[place] = RankedKernel{part.index[i], Seconds(seconds[i]), {}, 0.0};
    }
  }
  // The confidence of a runner-up is the chance that the leader loses to it.
  for (size_t i = kept; i-- > 0;) {
    const double leader = ranked[0].time.value;
    const double next = kept > 1 ? ranked[1].time.value : outside;
    const double confidence =
        i == 0 ? 0.0 : 1.0 - HoldsAgainst(std::log(ranked[i].time.value / leader) - 2.0 * kGoodEnough);
    RankedKernel answer = impl_->Answer(problem, ranked[i].index, ranked[i].time.value, i == 0 ? next : 0.0);
    if (i > 0) answer.confidence = confidence;
    ranked[i] = answer;
  }
  return kept;
}

std::vector<RankedKernel> Selector::Rank(const GemmProblem& problem, int k) const {
  std::vector<RankedKernel> ranked(static_cast<size_t>(std::clamp<int>(k, 0, static_cast<int>(kMostKernels))));
  ranked.resize(Rank(problem, std::span<RankedKernel>(ranked)));
  return ranked;
}

KernelTerms Selector::Explain(const GemmProblem& problem, int32_t index) const { return impl_->Terms(problem, index); }

const KernelCatalogue& Selector::catalogue() const { return impl_->catalogue; }
const Accelerator& Selector::accelerator() const { return impl_->accelerator; }

}  // namespace portolan
