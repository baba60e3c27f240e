#include "select/regret.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cost/gemm.h"
#include "select/constants.h"

namespace portolan {
namespace {

constexpr int kLeastAiterCandidates = 4;

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::vector<double> Predict(const FamilyEntry& family, const Accelerator& accelerator, const FamilyConstants& constants,
                            std::span<const CalibrationRow> rows) {
  const auto model = family.make(accelerator, constants);
  std::vector<double> seconds;
  for (const CalibrationRow& row : rows) seconds.push_back(model->Score(row.problem, row.kernel).total);
  return seconds;
}

// Where `constants` come from, in a few words.
std::string Origin(const FamilyConstants& constants, const std::string& chip) {
  if (constants.accelerator.empty()) return "uncalibrated";
  return constants.accelerator == chip ? "calibrated on this chip" : "calibrated on " + constants.accelerator;
}

AbsoluteSet ScoreAbsolute(const MeasuredShapes& set, const Accelerator& accelerator) {
  std::vector<double> errors, sizes;
  for (const MeasuredShape& row : set.rows) {
    const double predicted = GemmEstimate(row.shape, accelerator, set.inputs).total.value + set.launch_seconds;
    errors.push_back(predicted / row.seconds - 1.0);
    sizes.push_back(std::fabs(errors.back()));
  }
  AbsoluteSet scored;
  scored.name = set.name;
  scored.n = static_cast<int>(errors.size());
  if (errors.empty()) return scored;
  std::sort(errors.begin(), errors.end());
  std::sort(sizes.begin(), sizes.end());
  scored.bias = errors[errors.size() / 2];
  scored.median = sizes[sizes.size() / 2];
  scored.p90 = sizes[sizes.size() * 9 / 10];
  return scored;
}

nlohmann::ordered_json SummaryJson(const std::string& name, const RegretSummary& r) {
  return {{"name", name}, {"n", r.n}, {"geomean", r.geomean}, {"p10", r.p10}, {"worst", r.worst}};
}

}  // namespace

const char* ProblemClass(const GemmProblem& p) {
  const double tiles = static_cast<double>(CeilDivide(p.m, 256)) * static_cast<double>(CeilDivide(p.n, 256));
  if (p.batch > 1 || p.groups > 1) return "batched";
  if (std::min(p.m, p.n) <= 64) return "skinny";
  if (p.k / 8 >= std::max(p.m, p.n)) return "deep";
  if (tiles < 64.0) return "few_tiles";
  if (std::min({RowAlignmentA(p), RowAlignmentB(p), RowAlignmentD(p)}) < 16) return "misaligned";
  const double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  return flops >= 1e12 ? "large" : "medium";
}

Result<Accelerator> WithheldAccelerator(const Catalogue& hardware, const std::string& id,
                                        const std::string& relative_id) {
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* chip, hardware.FindAccelerator(id));
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* relative, hardware.FindAccelerator(relative_id));
  Accelerator scaled = *chip;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const double peak = relative->peak_matrix[dtype].value;
    const double share = peak > 0.0 ? relative->sustained_matrix[dtype].value / peak : 1.0;
    scaled.sustained_matrix[dtype] = FlopsPerSecond(chip->peak_matrix[dtype].value * share);
  }
  const double bandwidth = chip->hbm_peak.value / relative->hbm_peak.value;
  scaled.hbm_sustained = BytesPerSecond(relative->hbm_sustained.value * bandwidth);
  scaled.mall_rate = BytesPerSecond(relative->mall_rate.value * bandwidth);
  scaled.l2_rate = BytesPerSecond(relative->l2_rate.value * chip->compute_units * chip->clock_boost.value /
                                  (relative->compute_units * relative->clock_boost.value));
  scaled.kernel_fixed = relative->kernel_fixed;
  return scaled;
}

RegretSet ScoreRegret(const std::string& name, std::span<const CalibrationRow> rows,
                      std::span<const double> predicted) {
  RegretSet set;
  set.name = name;
  set.all = Regret(rows, predicted);
  std::map<std::string, std::pair<std::vector<CalibrationRow>, std::vector<double>>> by_class;
  struct List {
    double best = std::numeric_limits<double>::infinity(), chosen = 0.0,
           least = std::numeric_limits<double>::infinity();
  };
  std::map<int, List> lists;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].judged) continue;
    auto& part = by_class[ProblemClass(rows[i].problem)];
    part.first.push_back(rows[i]);
    part.second.push_back(predicted[i]);
    List& list = lists[rows[i].list];
    list.best = std::min(list.best, rows[i].seconds);
    if (predicted[i] < list.least) {
      list.least = predicted[i];
      list.chosen = rows[i].seconds;
    }
  }
  for (const auto& [part, both] : by_class) set.classes[part] = Regret(both.first, both.second);
  for (const auto& [id, list] : lists) set.ratios.push_back(list.best / list.chosen);
  std::sort(set.ratios.begin(), set.ratios.end());
  return set;
}

Result<RegretReport> ScoreMeasuredData(const std::string& data_dir, const Catalogue& hardware,
                                       const std::vector<FamilyConstants>& constants) {
  RegretReport report;
  const auto add = [&](const MeasuredList& list, const FamilyConstants& values,
                       const std::string& suffix) -> Result<std::vector<double>> {
    PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* accelerator, hardware.FindAccelerator(list.chip));
    const std::vector<double> predicted = Predict(*FindFamily(list.family), *accelerator, values, list.rows);
    RegretSet set = ScoreRegret(list.name + suffix, list.rows, predicted);
    set.constants = Origin(values, list.chip);
    if (set.all.n > 0) report.sets.push_back(std::move(set));
    return predicted;
  };
  const auto picked = [&](const MeasuredList& list) -> Result<FamilyConstants> {
    PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* accelerator, hardware.FindAccelerator(list.chip));
    return PickConstants(constants, list.family, list.compute, *accelerator);
  };

  PORTOLAN_ASSIGN_OR_RETURN(const std::vector<MeasuredList> h200, ReadH200Lists(data_dir, hardware));
  for (const MeasuredList& list : h200) {
    PORTOLAN_ASSIGN_OR_RETURN(const FamilyConstants values, picked(list));
    PORTOLAN_RETURN_IF_ERROR(add(list, values, ""));
  }

  PORTOLAN_ASSIGN_OR_RETURN(const MeasuredList tensile, ReadTensileSweep(data_dir, hardware));
  PORTOLAN_ASSIGN_OR_RETURN(const FamilyConstants tensile_values, picked(tensile));
  PORTOLAN_RETURN_IF_ERROR(add(tensile, tensile_values, ""));
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator withheld, WithheldAccelerator(hardware, tensile.chip, "mi300x"));
  const FamilyConstants uncalibrated = InitialConstants(tensile.family, tensile.compute);
  RegretSet blind = ScoreRegret(tensile.name + "_withheld", tensile.rows,
                                Predict(*FindFamily(tensile.family), withheld, uncalibrated, tensile.rows));
  blind.constants = "uncalibrated, rates of mi300x";
  report.sets.push_back(std::move(blind));

  PORTOLAN_ASSIGN_OR_RETURN(std::vector<MeasuredList> aiter, ReadAiterTables(data_dir, hardware));
  std::vector<CalibrationRow> pooled;
  std::vector<double> pooled_seconds;
  int offset = 0;
  for (MeasuredList& list : aiter) {
    JudgeListsOf(kLeastAiterCandidates, &list.rows);
    PORTOLAN_ASSIGN_OR_RETURN(const FamilyConstants values, picked(list));
    PORTOLAN_ASSIGN_OR_RETURN(const std::vector<double> predicted, add(list, values, ""));
    int most = -1;
    for (size_t i = 0; i < list.rows.size(); ++i) {
      most = std::max(most, list.rows[i].list);
      pooled.push_back(list.rows[i]);
      pooled.back().list += offset;
      pooled_seconds.push_back(predicted[i]);
    }
    offset += most + 1;
  }
  RegretSet all_aiter = ScoreRegret("aiter", pooled, pooled_seconds);
  all_aiter.constants = "each part its own";
  report.sets.push_back(std::move(all_aiter));

  PORTOLAN_ASSIGN_OR_RETURN(const std::vector<MeasuredShapes> shapes, ReadMeasuredShapes(data_dir));
  for (const MeasuredShapes& set : shapes) {
    PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* accelerator, hardware.FindAccelerator(set.chip));
    report.absolute.push_back(ScoreAbsolute(set, *accelerator));
  }
  return report;
}

nlohmann::ordered_json RegretJson(const RegretReport& report) {
  nlohmann::ordered_json json = {{"schema", "portolan.regret/1"}};
  json["data_sets"] = nlohmann::ordered_json::array();
  for (const RegretSet& set : report.sets) {
    nlohmann::ordered_json entry = SummaryJson(set.name, set.all);
    entry["constants"] = set.constants;
    entry["classes"] = nlohmann::ordered_json::array();
    for (const auto& [name, summary] : set.classes) entry["classes"].push_back(SummaryJson(name, summary));
    json["data_sets"].push_back(std::move(entry));
  }
  json["absolute"] = nlohmann::ordered_json::array();
  for (const AbsoluteSet& set : report.absolute) {
    json["absolute"].push_back(
        {{"name", set.name}, {"n", set.n}, {"bias", set.bias}, {"median_error", set.median}, {"p90_error", set.p90}});
  }
  return json;
}

std::string ShowRegret(const RegretReport& report) {
  std::string text = fmt::format("{:<34} {:>6} {:>8} {:>7} {:>7}  {}\n", "best / chosen time", "n", "geomean", "p10",
                                 "worst", "constants");
  const auto line = [&](const std::string& name, const RegretSummary& r, const std::string& note) {
    text += fmt::format("{:<34} {:>6} {:>8.4f} {:>7.4f} {:>7.3f}{}{}\n", name, r.n, r.geomean, r.p10, r.worst,
                        note.empty() ? "" : "  ", note);
  };
  for (const RegretSet& set : report.sets) {
    line(set.name, set.all, set.constants);
    if (set.classes.size() < 2) continue;
    for (const auto& [name, summary] : set.classes) line("  " + name, summary, "");
  }
  text += fmt::format("\n{:<34} {:>6} {:>8} {:>7} {:>7}\n", "error of the best kernel's time", "n", "bias", "median",
                      "p90");
  for (const AbsoluteSet& set : report.absolute) {
    text += fmt::format("{:<34} {:>6} {:>+7.1f}% {:>6.1f}% {:>6.1f}%\n", set.name, set.n, 100 * set.bias,
                        100 * set.median, 100 * set.p90);
  }
  return text;
}

}  // namespace portolan
