#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

// Tables that crowd a device's memory move to host memory, the largest first, behind a cache of their hottest rows.
class HostTablesRule : public Rule {
 public:
  const char* name() const override { return "host_tables"; }
  const char* published() const override {
    return "embedding collection on 8 x V100: 19 ms in HBM, 60 ms behind a cache, 620 ms without one "
           "(meta-pytorch/torchrec benchmarks README)";
  }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    std::vector<Change> changes;
    if (context.recipe.host_tables_min > Bytes(0)) {
      changes.push_back(MakeSetting(context, name(), "none", "every table in device memory", MathsClass::kExact,
                                    [](Recipe& r) { r.host_tables_min = Bytes(0); }));
    }
    const std::vector<double> sizes = SizesOf(context);
    double all = 0;
    for (const double size : sizes) all += size;
    const double share = all / context.cluster.devices / context.cluster.accelerator.hbm.value;
    if (context.recipe.sharding == Sharding::kDataParallel) {
      if (changes.empty()) *why_not = "every table is replicated";
    } else if (context.cluster.accelerator.facts.count("host_memory_bytes_per_device") == 0) {
      if (changes.empty()) {
        *why_not = fmt::format("{} states no host_memory_bytes_per_device", context.cluster.accelerator.id);
      }
    } else if (share < kCrowded) {
      if (changes.empty()) {
        *why_not = fmt::format("tables and their state take {:.0f} % of the devices' memory", 100 * share);
      }
    } else {
      AddSettings(context, sizes, &changes);
    }
    return changes;
  }

 private:
  // Of the devices' memory; below it tables leave room for all but the largest activations.
  static constexpr double kCrowded = 0.3;

  static std::string Words(size_t moved, double bytes, double cached) {
    const std::string size =
        bytes >= 1e12 ? fmt::format("{:.2f} TB", bytes * 1e-12) : fmt::format("{:.3g} GB", bytes * 1e-9);
    const std::string tables =
        moved == 1 ? fmt::format("the table of {}", size) : fmt::format("the {} tables of {} and more", moved, size);
    return fmt::format("{} in host memory, the hottest {:g} % of {} rows cached on the devices", tables, 100 * cached,
                       moved == 1 ? "its" : "their");
  }

  // Bytes of rows and state, largest first.
  static std::vector<double> SizesOf(const RuleContext& context) {
    const EmbeddingOptimizer optimizer = context.recipe.embedding_optimizer.value_or(context.model.embedding_optimizer);
    std::vector<double> sizes;
    for (const Table& table : context.model.tables) {
      sizes.push_back(table.rows * (static_cast<double>(table.dim) * SizeOf(context.recipe.embedding_row) +
                                    EmbeddingStateBytesPerRow(optimizer, table.dim, context.recipe.embedding_state))
                                       .value);
    }
    std::sort(sizes.rbegin(), sizes.rend());
    return sizes;
  }

  // The largest 1, 4, 16, ... tables and all that are not replicated, by how much of them is cached.
  void AddSettings(const RuleContext& context, const std::vector<double>& sizes, std::vector<Change>* changes) const {
    double last = 0;
    for (size_t count = 1;; count = std::min(4 * count, sizes.size())) {
      const double threshold = sizes[count - 1];
      if (threshold <= context.recipe.data_parallel_max.value) break;
      if (threshold != last) {
        last = threshold;
        size_t moved = 0;
        for (const double size : sizes) moved += size >= threshold ? 1 : 0;
        for (const double cached : {0.5, 0.2, 0.05, 0.01}) {
          if (threshold == context.recipe.host_tables_min.value && cached == context.recipe.host_cache_fraction)
            continue;
          changes->push_back(MakeSetting(context, name(), fmt::format("{}/{:g}", moved, cached),
                                         Words(moved, threshold, cached), MathsClass::kExact,
                                         [threshold, cached](Recipe& r) {
                                           r.host_tables_min = Bytes(threshold);
                                           r.host_cache_fraction = cached;
                                         }));
        }
      }
      if (count == sizes.size()) break;
    }
  }
};

}  // namespace

std::unique_ptr<Rule> MakeHostTablesRule() { return std::make_unique<HostTablesRule>(); }

}  // namespace portolan
