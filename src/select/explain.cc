#include "select/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace portolan {
namespace {

constexpr int kBarColumns = 30;

struct NamedTerm {
  const char* name;
  double KernelTerms::*term;
  const char* saves;  // "A <saves>" in the sentence that compares two kernels
};

constexpr std::array<NamedTerm, 10> kSummed = {{
    {"launch", &KernelTerms::launch, "starts sooner"},
    {"prologue", &KernelTerms::prologue, "waits less for its first tiles"},
    {"main loop", &KernelTerms::main_loop, "has the shorter main loop"},
    {"wave quantisation", &KernelTerms::wave_quantisation, "fills the units better in its last wave"},
    {"epilogue", &KernelTerms::epilogue, "writes its tiles faster"},
    {"split reduction", &KernelTerms::split_reduction, "spends less on partial sums"},
    {"clearing", &KernelTerms::clearing, "spends less on clearing and converting the output"},
    {"clock", &KernelTerms::clock, "keeps the higher clock"},
    {"code path", &KernelTerms::residual, "runs a code path that calibration found faster"},
    {"total", &KernelTerms::total, ""},
}};

constexpr std::array<NamedTerm, 6> kOverlapped = {{
    {"matrix", &KernelTerms::matrix, "the matrix units"},
    {"lds", &KernelTerms::lds, "shared memory"},
    {"l2", &KernelTerms::l2, "the L2"},
    {"mall", &KernelTerms::mall, "the memory-side cache"},
    {"hbm", &KernelTerms::hbm, "HBM"},
    {"latency", &KernelTerms::latency, "the latency of a K step"},
}};

std::string Bar(double value, double whole) {
  const double share = whole > 0.0 ? std::clamp(std::fabs(value) / whole, 0.0, 1.0) : 0.0;
  const auto length = static_cast<size_t>(std::lround(share * kBarColumns));
  return std::string(length, value < 0.0 ? '-' : '#');
}

const char* Bound(const KernelTerms& t) {
  const NamedTerm* longest = &kOverlapped[0];
  for (const NamedTerm& term : kOverlapped) {
    if (t.*term.term > t.*longest->term) longest = &term;
  }
  return longest->saves;
}

std::string Id(const Selector& selector, const RankedKernel& r) {
  return selector.catalogue().ids[static_cast<size_t>(r.index)];
}

double FlopsOf(const GemmProblem& p) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
         static_cast<double>(p.batch);
}

}  // namespace

std::string DescribeKernel(const GemmKernel& k) {
  std::string text = k.tile_m > 0 ? fmt::format("tile {}x{}", k.tile_m, k.tile_n) : "no tile";
  if (k.tile_k > 0) text += fmt::format("x{}", k.tile_k);
  if (k.algo >= 0) text += fmt::format(", algorithm {}", k.algo);
  if (k.cluster_m * k.cluster_n > 1) text += fmt::format(", cluster {}x{}", k.cluster_m, k.cluster_n);
  if (k.waves > 0) text += fmt::format(", {} {}", k.waves, k.family == KernelFamily::kTriton ? "warps" : "waves");
  if (k.stages > 0) text += fmt::format(", {} stages", k.stages);
  if (k.split_k > 1) text += fmt::format(", split-K {}", k.split_k);
  if (k.stream_k > 0) text += ", stream-K";
  if (k.hand_scheduled > 0) text += ", hand-scheduled";
  return text;
}

std::string ShowRanking(const Selector& selector, const GemmProblem& problem, std::span<const RankedKernel> ranked) {
  std::string text =
      fmt::format("{} x {} x {}, {}, on {}: best of {} kernels\n\n", problem.m, problem.n, problem.k,
                  DTypeName(problem.compute), selector.accelerator().name, selector.catalogue().kernels.size());
  text += fmt::format("{:>2} {:<34} {:>10} {:>8} {:>6}  {}\n", "", "kernel", "time us", "TFLOP/s", "sure", "");
  for (size_t i = 0; i < ranked.size(); ++i) {
    const GemmKernel& kernel = selector.catalogue().kernels[static_cast<size_t>(ranked[i].index)];
    text += fmt::format("{:>2} {:<34} {:>10.2f} {:>8.1f} {:>5.0f}%  {}\n", i + 1, Id(selector, ranked[i]),
                        1e6 * ranked[i].time.value, FlopsOf(problem) / ranked[i].time.value / 1e12,
                        100 * ranked[i].confidence, DescribeKernel(kernel));
  }
  return text;
}

std::string ExplainRanking(const Selector& selector, const GemmProblem& problem, std::span<const RankedKernel> ranked) {
  std::string text;
  std::vector<KernelTerms> terms;
  double whole = 0.0;
  for (size_t i = 0; i < std::min<size_t>(4, ranked.size()); ++i) {
    terms.push_back(selector.Explain(problem, ranked[i].index));
    whole = std::max(whole, terms.back().total);
  }
  for (size_t i = 0; i < terms.size(); ++i) {
    text += fmt::format("{}. {}, main loop bound by {}\n", i + 1, Id(selector, ranked[i]), Bound(terms[i]));
    for (const NamedTerm& term : kSummed) {
      const double value = terms[i].*term.term;
      if (value == 0.0) continue;
      text += fmt::format("   {:<18} {:>9.2f} us {}\n", term.name, 1e6 * value, Bar(value, whole));
      if (term.term != &KernelTerms::main_loop) continue;
      for (const NamedTerm& part : kOverlapped) {
        const double overlapped = terms[i].*part.term;
        if (overlapped > 0.0) {
          text += fmt::format("     {:<16} {:>9.2f} us {}\n", part.name, 1e6 * overlapped, Bar(overlapped, whole));
        }
      }
    }
  }
  if (terms.size() < 2) return text;
  // What decides: the terms in which the winner gains most on the runner-up, and where it loses.
  std::vector<std::pair<double, const NamedTerm*>> gains;
  for (const NamedTerm& term : kSummed) {
    if (term.term != &KernelTerms::total) gains.emplace_back(terms[1].*term.term - terms[0].*term.term, &term);
  }
  std::sort(gains.begin(), gains.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  const double lead = terms[1].total - terms[0].total;
  text += fmt::format("\nThe first leads the second by {:.2f} us ({:.1f} %)", 1e6 * lead, 100 * lead / terms[0].total);
  if (gains.front().first > 1e-9) {
    text += fmt::format(": it {} ({:.2f} us)", gains.front().second->saves, 1e6 * gains.front().first);
    if (gains[1].first > 0.3 * gains.front().first) {
      text += fmt::format(" and {} ({:.2f} us)", gains[1].second->saves, 1e6 * gains[1].first);
    }
  }
  text += ".";
  if (gains.back().first < -1e-9) {
    text += fmt::format(" The second {} ({:.2f} us).", gains.back().second->saves, -1e6 * gains.back().first);
  }
  return text + "\n";
}

nlohmann::ordered_json RankingJson(const Selector& selector, const GemmProblem& problem,
                                   std::span<const RankedKernel> ranked) {
  nlohmann::ordered_json document;
  document["accelerator"] = selector.accelerator().id;
  document["m"] = problem.m;
  document["n"] = problem.n;
  document["k"] = problem.k;
  document["batch"] = problem.batch;
  document["dtype"] = DTypeName(problem.compute);
  document["kernels"] = nlohmann::ordered_json::array();
  for (const RankedKernel& r : ranked) {
    const KernelTerms terms = selector.Explain(problem, r.index);
    nlohmann::ordered_json kernel;
    kernel["kernel_id"] = Id(selector, r);
    kernel["description"] = DescribeKernel(selector.catalogue().kernels[static_cast<size_t>(r.index)]);
    kernel["predicted_s"] = r.time.value;
    kernel["confidence"] = r.confidence;
    nlohmann::ordered_json& parts = kernel["terms_s"];
    for (const NamedTerm& term : kSummed) {
      std::string name = term.name;
      std::replace(name.begin(), name.end(), ' ', '_');
      parts[name] = terms.*term.term;
    }
    for (const NamedTerm& term : kOverlapped) parts["overlapped"][term.name] = terms.*term.term;
    document["kernels"].push_back(std::move(kernel));
  }
  return document;
}

}  // namespace portolan
