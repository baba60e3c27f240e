#include "loop/price_cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "loop/kernel_names.h"

namespace portolan {
namespace {

// 16-bit rows are as many bytes in both formats and timed in one.
const char* TimedFormat(kernels::RowFormat format) {
  return FormatName(format == kernels::RowFormat::kFp16 ? kernels::RowFormat::kBf16 : format);
}

// Adds up what cuda_network.cc and cuda_layers.cc queue.
class Pricer {
 public:
  Pricer(const NetworkPlan& plan, CudaMath math, const std::vector<CudaTableLookups>& lookups, const CudaCalibration& c)
      : plan_(plan),
        lookups_(lookups),
        c_(c),
        type_(math == CudaMath::kBf16 ? ".bf16" : ".fp32"),
        math_(math == CudaMath::kBf16   ? "gemm.bf16."
              : math == CudaMath::kTf32 ? "gemm.tf32."
                                        : "gemm.fp32."),
        batch_(static_cast<double>(plan.options.batch)) {}

  Result<CudaStepPrice> Price() {
    EmbeddingForward();
    Add("dense input", "input" + type_, {batch_, static_cast<double>(std::max<int64_t>(plan_.dense_width, 1))});
    double layers = 0;
    for (const NetworkLayer& layer : plan_.layers) layers += Forward(layer);
    Add("loss", "loss", {batch_});
    for (size_t l = plan_.layers.size(); l-- > 0;) Backward(plan_.layers[l]);
    EmbeddingBackward();
    Add("dense optimizer", fmt::format("dense_optimizer.{}{}", DenseName(plan_.options.dense_optimizer), type_),
        {static_cast<double>(std::max<int64_t>(plan_.dense_parameters, 1))});
    double sort = 0, all = 0;
    for (const auto& [name, seconds] : price_.operations) {
      all += seconds;
      if (name == "sort lookups") sort += seconds;
    }
    price_.step_s = all - std::min(sort, layers) + c_.step_s;
    if (!missing_.empty()) {
      return MakeError(ErrorCode::kInvalidValue, "the calibration has no '" + missing_ + "': calibrate again");
    }
    return price_;
  }

 private:
  double Seconds(const std::string& grid, const std::vector<double>& at) {
    const Result<double> seconds = c_.Seconds(grid, at);
    if (!seconds) missing_ = grid;
    return seconds.value_or(0);
  }
  double Put(const std::string& name, double seconds) {
    for (auto& [known, sum] : price_.operations) {
      if (known == name) {
        sum += seconds;
        return seconds;
      }
    }
    price_.operations.emplace_back(name, seconds);
    return seconds;
  }
  double Add(const std::string& name, const std::string& grid, const std::vector<double>& at, double share = 1) {
    return Put(name, share * Seconds(grid, at));
  }
  double Product(const std::string& name, const char* layout, int64_t m, int64_t n, int64_t k) {
    return Add(name, math_ + layout, {static_cast<double>(m), static_cast<double>(n), static_cast<double>(k)});
  }
  double Elementwise(const std::string& name, const char* kernel, int64_t width, double share = 1) {
    return Add(name, kernel + type_, {batch_, static_cast<double>(std::max<int64_t>(width, 1))}, share);
  }
  // Inputs are read up to a multiple of eight numbers.
  static int64_t Padded(int64_t width) { return (width + 7) / 8 * 8; }
  bool IsHead(const NetworkLayer& layer) const { return &layer == &plan_.layers.back(); }
  bool Wanted(const NetworkLayer& layer, size_t input) const {
    return plan_.values[static_cast<size_t>(layer.inputs[input])].gradient >= 0 || layer.added[input] >= 0;
  }

  double Forward(const NetworkLayer& layer) {
    const int64_t batch = plan_.options.batch;
    const LayerSpec& spec = layer.layer->spec;
    double sum = 0;
    if (const auto* linear = std::get_if<LinearSpec>(&spec)) {
      if (IsHead(layer)) return Elementwise("logits", "logits_forward", linear->in);
      sum += Product("linear", "nt", batch, linear->out, Padded(linear->in));
      const bool fused =
          linear->activation == kernels::ActivationKind::kRelu || linear->activation == kernels::ActivationKind::kNone;
      if (!fused) sum += Elementwise("activation", "activation_forward", linear->out);
    } else if (const auto* join = std::get_if<JoinSpec>(&spec)) {
      for (const JoinedInput& input : join->inputs) {
        if (input.place == JoinedInput::Place::kCopied) sum += Elementwise("join", "copy", input.width);
      }
    } else if (const auto* cross = std::get_if<CrossSpec>(&spec)) {
      for (int64_t l = 0; l < cross->layers; ++l) {
        if (cross->rank > 0) {
          sum += Product("cross", "nt", batch, cross->rank, cross->width);
          sum += Product("cross", "nt", batch, cross->width, cross->rank);
        } else {
          sum += Product("cross", "nt", batch, cross->width, cross->width);
        }
        sum += Elementwise("cross elementwise", "cross_forward", cross->width, l == 0 ? 0.75 : 1.0);
      }
    } else if (const auto* norm = std::get_if<NormSpec>(&spec)) {
      sum += Add("layer norm", "norm_forward" + type_,
                 {batch_ * static_cast<double>(norm->tokens), static_cast<double>(norm->width)});
    } else if (const auto* dot = std::get_if<DotInteractionSpec>(&spec)) {
      sum += Add("dot interaction", "dot_forward" + type_,
                 {batch_, static_cast<double>(dot->vectors), static_cast<double>(dot->dim)});
    } else if (const auto* add = std::get_if<AddSpec>(&spec)) {
      for (int64_t i = 0; i < add->inputs; ++i) sum += Elementwise("add", "copy", add->width, i == 0 ? 1.0 : 1.5);
    }
    return sum;
  }

  void Backward(const NetworkLayer& layer) {
    const int64_t batch = plan_.options.batch;
    const LayerSpec& spec = layer.layer->spec;
    if (const auto* linear = std::get_if<LinearSpec>(&spec)) {
      if (IsHead(layer)) {
        Elementwise("logits backward", "logits_backward", linear->in);
      } else {
        Elementwise("activation backward", "activation_backward", linear->out);
        Product("linear weight gradient", "tn", linear->out, Padded(linear->in), batch);
        if (Wanted(layer, 0)) Product("linear input gradient", "nn", batch, Padded(linear->in), linear->out);
      }
    } else if (const auto* join = std::get_if<JoinSpec>(&spec)) {
      for (size_t i = 0; i < join->inputs.size(); ++i) {
        if (join->inputs[i].place == JoinedInput::Place::kCopied && Wanted(layer, i)) {
          Elementwise("join backward", "copy", join->inputs[i].width);
        }
      }
    } else if (const auto* cross = std::get_if<CrossSpec>(&spec)) {
      for (int64_t l = cross->layers; l-- > 0;) {
        // The top layer does not read what it adds to.
        Elementwise("cross elementwise backward", "cross_backward", cross->width,
                    l + 1 == cross->layers ? 5.0 / 6 : 1.0);
        const bool below = l > 0 || Wanted(layer, 0);
        if (cross->rank > 0) {
          Product("cross input gradient", "nn", batch, cross->rank, cross->width);
          Product("cross weight gradient", "tn", cross->width, cross->rank, batch);
          Product("cross weight gradient", "tn", cross->rank, cross->width, batch);
          if (below) AddedProduct(cross->width, cross->rank);
        } else {
          Product("cross weight gradient", "tn", cross->width, cross->width, batch);
          if (below) AddedProduct(cross->width, cross->width);
        }
      }
    } else if (const auto* norm = std::get_if<NormSpec>(&spec)) {
      Add("layer norm backward", "norm_backward" + type_,
          {batch_ * static_cast<double>(norm->tokens), static_cast<double>(norm->width)});
    } else if (const auto* dot = std::get_if<DotInteractionSpec>(&spec)) {
      Add("dot interaction backward", "dot_backward" + type_,
          {batch_, static_cast<double>(dot->vectors), static_cast<double>(dot->dim)});
    } else if (const auto* add = std::get_if<AddSpec>(&spec)) {
      for (size_t i = 0; i < static_cast<size_t>(add->inputs); ++i) {
        if (Wanted(layer, i)) Elementwise("copy gradient", "copy", add->width);
      }
    }
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      if (layer.added[i] < 0) continue;
      Elementwise("add gradients", "copy", plan_.values[static_cast<size_t>(layer.inputs[i])].width, 1.5);
    }
  }
  // A product that is added to what its output holds: it reads [batch, n] more.
  void AddedProduct(int64_t n, int64_t k) {
    Product("cross input gradient", "nn", plan_.options.batch, n, k);
    const double bytes = batch_ * static_cast<double>(n) * (type_ == ".bf16" ? 2 : 4);
    Put("cross input gradient", bytes / c_.copy_bytes_per_s);
  }

  void EmbeddingForward() {
    if (plan_.features.empty()) return;
    double all = 0;
    for (const CudaTableLookups& table : lookups_) all += table.lookups;
    const std::string grid = fmt::format("embedding_forward.{}{}", TimedFormat(plan_.options.row), type_);
    double seconds = 0;
    // One kernel for all tables: each at its own rate, all at the size of the whole.
    for (size_t t = 0; t < lookups_.size(); ++t) {
      if (lookups_[t].lookups <= 0) continue;
      const std::vector<double> at = {all, static_cast<double>(plan_.tables[t].dim), Bag(lookups_[t])};
      const double missed = lookups_[t].missed / lookups_[t].lookups;
      seconds += lookups_[t].lookups / all *
                 ((1 - missed) * Seconds(grid + ".warm", at) + missed * Seconds(grid + ".cold", at));
    }
    Put("embedding forward", seconds);
    double sort = 0;
    for (const CudaTableLookups& table : lookups_) {
      if (table.lookups > 0) sort += table.lookups / all * Seconds("sort", {all, Bag(table)});
    }
    Put("sort lookups", sort);
  }

  // Lookups of a bag, within the calibrated ones.
  static double Bag(const CudaTableLookups& table) {
    constexpr double kMost = 64;
    return std::clamp(table.lookups / std::max(table.bags, 1.0), 1.0, kMost);
  }

  void EmbeddingBackward() {
    double all = 0;
    for (const CudaTableLookups& table : lookups_) all += table.lookups;
    const std::string grid = fmt::format("embedding_backward.{}.{}{}", OptimizerName(plan_.options.row_optimizer),
                                         TimedFormat(plan_.options.row), type_);
    double seconds = 0;
    for (size_t t = 0; t < lookups_.size(); ++t) {
      if (lookups_[t].lookups <= 0) continue;
      // A part for every lookup and one for every row: linear in 1 / repeats.
      const double repeats = std::max(1.0, lookups_[t].lookups / std::max(lookups_[t].distinct, 1.0));
      const auto at = [&](double lookups_a_row) {
        return Seconds(grid, {all, static_cast<double>(plan_.tables[t].dim), lookups_a_row});
      };
      double each = at(512);
      for (const auto& [few, many] : {std::pair{1.0, 4.0}, {4.0, 32.0}, {32.0, 512.0}}) {
        if (repeats > many) continue;
        const double share = (1 / repeats - 1 / many) / (1 / few - 1 / many);
        each = at(many) + share * (at(few) - at(many));
        break;
      }
      seconds += lookups_[t].lookups / all * each;
    }
    if (all > 0) Put("embedding backward", seconds);
  }

  const NetworkPlan& plan_;
  const std::vector<CudaTableLookups>& lookups_;
  const CudaCalibration& c_;
  const std::string type_, math_;
  const double batch_;
  CudaStepPrice price_;
  std::string missing_;
};

}  // namespace

Result<double> CudaCalibration::Seconds(const std::string& grid, const std::vector<double>& at) const {
  const auto found = grids.find(grid);
  if (found == grids.end() || found->second.axes.size() != at.size()) {
    return MakeError(ErrorCode::kInvalidValue, "the calibration has no grid '" + grid + "'");
  }
  return found->second.At(at);
}

std::vector<CudaTableLookups> CountCudaLookups(const NetworkPlan& plan, const std::vector<Batch>& batches,
                                               double l2_bytes) {
  // What is beside rows in the cache (ids, outputs) and its hashed sets leave about this share.
  constexpr double kKept = 0.6;
  std::vector<CudaTableLookups> counts(plan.tables.size());
  std::vector<int64_t> ids, uses;
  for (const Batch& batch : batches) {
    for (size_t t = 0; t < plan.tables.size(); ++t) {
      ids.clear();
      for (size_t f = 0; f < plan.features.size(); ++f) {
        if (plan.features[f].table != static_cast<int>(t)) continue;
        const auto begin = batch.offsets[f * static_cast<size_t>(batch.size)];
        const auto end = batch.offsets[(f + 1) * static_cast<size_t>(batch.size)];
        ids.insert(ids.end(), batch.ids.begin() + begin, batch.ids.begin() + end);
        counts[t].bags += static_cast<double>(batch.size);
      }
      std::sort(ids.begin(), ids.end());
      uses.clear();
      for (size_t i = 0; i < ids.size(); ++i) {
        if (i == 0 || ids[i] != ids[i - 1]) uses.push_back(0);
        ++uses.back();
      }
      const auto row_bytes = static_cast<double>(kernels::RowBytes(plan.options.row, plan.tables[t].dim));
      const auto kept = std::min(uses.size(), static_cast<size_t>(kKept * l2_bytes / row_bytes));
      std::nth_element(uses.begin(), uses.begin() + static_cast<int64_t>(kept), uses.end(), std::greater<>());
      double found = 0;
      for (size_t i = 0; i < kept; ++i) found += static_cast<double>(uses[i] - 1);
      counts[t].lookups += static_cast<double>(ids.size());
      counts[t].distinct += static_cast<double>(uses.size());
      counts[t].missed += static_cast<double>(ids.size()) - found;
    }
  }
  for (CudaTableLookups& table : counts) {
    const double all = static_cast<double>(std::max<size_t>(batches.size(), 1));
    table.lookups /= all;
    table.distinct /= all;
    table.missed /= all;
    table.bags /= all;
  }
  return counts;
}

Result<CudaStepPrice> PriceCudaStep(const NetworkPlan& plan, CudaMath math,
                                    const std::vector<CudaTableLookups>& lookups, const CudaCalibration& calibration) {
  return Pricer(plan, math, lookups, calibration).Price();
}

}  // namespace portolan
