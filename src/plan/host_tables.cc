#include "plan/host_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace portolan {
namespace {

bool Replicated(const Model& model, const Recipe& recipe, size_t table) {
  const Table& t = model.tables[table];
  const auto named = recipe.tables.find(t.name);
  const Sharding sharding = named != recipe.tables.end() ? named->second.sharding : recipe.sharding;
  if (sharding == Sharding::kDataParallel) return true;
  return sharding == Sharding::kAuto &&
         t.rows * RowAndStateBytes(model, recipe, table).value <= recipe.data_parallel_max.value;
}

// Probability that a row of popularity `p` is among `lookups` draws.
double Touched(double p, double lookups) { return p >= 1 ? 1 : -std::expm1(lookups * std::log1p(-p)); }

// Sum over i in (begin, end] of Touched(P(i)), by Simpson's rule over log i between the midpoints.
double TouchedRows(double lookups, double exponent, double log_normaliser, double begin, double end) {
  constexpr int kPanels = 256;
  const double low = std::log(begin + 0.5), high = std::log(end + 0.5);
  if (high <= low) return 0;
  const double width = (high - low) / kPanels;
  const auto at = [&](double x) {
    const double p = std::min(1.0, std::exp(-exponent * x - log_normaliser));
    return Touched(p, lookups) * std::exp(x);
  };
  double sum = 0;
  for (int i = 0; i < kPanels; ++i) {
    const double x = low + width * i;
    sum += at(x) + 4 * at(x + width / 2) + at(x + width);
  }
  return sum * width / 6;
}

double SumMissedShare(double lookups, double rows, double exponent, double held) {
  const double log_normaliser =
      std::abs(exponent - 1) < 1e-9
          ? std::log(std::log(2 * rows + 1))
          : std::log(std::abs((std::pow(rows + 0.5, 1 - exponent) - std::pow(0.5, 1 - exponent)) / (1 - exponent)));
  const double missed = TouchedRows(lookups, exponent, log_normaliser, held, rows);
  const double hit = TouchedRows(lookups, exponent, log_normaliser, 0, held);
  return missed + hit > 0 ? missed / (missed + hit) : 0;
}

double RecencyMissedShare(double lookups, double rows, double exponent, double held) {
  // The draws that fill the cache.
  double low = held, high = held;
  while (high < 1e18 && ExpectedUniqueRows(high, rows, exponent) < held) {
    low = high;
    high *= 4;
  }
  while (high / low > 1 + 1e-6) {
    const double middle = std::sqrt(low * high);
    (ExpectedUniqueRows(middle, rows, exponent) < held ? low : high) = middle;
  }
  const double before = ExpectedUniqueRows(high, rows, exponent);
  const double missed = ExpectedUniqueRows(high + lookups, rows, exponent) - before;
  return std::clamp(missed / ExpectedUniqueRows(lookups, rows, exponent), 0.0, 1.0);
}

}  // namespace

Bytes RowStateBytes(const Model& model, const Recipe& recipe, size_t table) {
  return EmbeddingStateBytesPerRow(recipe.embedding_optimizer.value_or(model.embedding_optimizer),
                                   model.tables[table].dim, recipe.embedding_state);
}

Bytes RowAndStateBytes(const Model& model, const Recipe& recipe, size_t table) {
  return static_cast<double>(model.tables[table].dim) * SizeOf(recipe.embedding_row) +
         RowStateBytes(model, recipe, table);
}

bool InHostMemory(const Model& model, const Recipe& recipe, size_t table) {
  if (recipe.host_cache_fraction >= 1) return false;
  const Table& t = model.tables[table];
  const auto named = recipe.tables.find(t.name);
  const TableMemory memory = named != recipe.tables.end() ? named->second.memory : TableMemory::kAuto;
  if (memory == TableMemory::kDevice || Replicated(model, recipe, table)) return false;
  if (memory == TableMemory::kHost) return true;
  return recipe.host_tables_min > Bytes(0) && t.rows * RowAndStateBytes(model, recipe, table) >= recipe.host_tables_min;
}

bool AnyInHostMemory(const Model& model, const Recipe& recipe) {
  bool possible = recipe.host_tables_min > Bytes(0);
  for (const auto& [name, table] : recipe.tables) possible = possible || table.memory == TableMemory::kHost;
  if (!possible) return false;
  for (size_t t = 0; t < model.tables.size(); ++t) {
    if (InHostMemory(model, recipe, t)) return true;
  }
  return false;
}

double DeviceRows(const Model& model, const Recipe& recipe, size_t table) {
  const double rows = model.tables[table].rows;
  return InHostMemory(model, recipe, table) ? std::ceil(rows * recipe.host_cache_fraction) : rows;
}

double MissedShare(double lookups, double rows, double zipf_exponent, double held, HostCachePolicy policy) {
  if (lookups <= 0 || rows <= 0 || held >= rows) return 0;
  if (held <= 0) return 1;
  if (zipf_exponent <= 0) return 1 - held / rows;
  // The placement search asks the same again and again.
  struct Answer {
    double lookups = -1, rows = -1, exponent = -1, held = -1, share = 0;
    HostCachePolicy policy = HostCachePolicy::kLfu;
  };
  constexpr size_t kRemembered = 1024;
  thread_local std::vector<Answer> answers(kRemembered);
  const std::hash<double> hash;
  Answer& answer = answers[(hash(lookups) * 31 + hash(rows) * 7 + hash(zipf_exponent) * 3 + hash(held)) % kRemembered];
  if (answer.lookups != lookups || answer.rows != rows || answer.exponent != zipf_exponent || answer.held != held ||
      answer.policy != policy) {
    double share = SumMissedShare(lookups, rows, zipf_exponent, held);
    if (policy == HostCachePolicy::kLru)
      share = std::max(share, RecencyMissedShare(lookups, rows, zipf_exponent, held));
    answer = {lookups, rows, zipf_exponent, held, share, policy};
  }
  return answer.share;
}

double MissedRows(const Model& model, const Recipe& recipe, size_t table, double samples) {
  if (!InHostMemory(model, recipe, table)) return 0;
  const double rows = model.tables[table].rows;
  const double held = DeviceRows(model, recipe, table);
  double missed = 0;
  for (const Feature& feature : model.features) {
    if (static_cast<size_t>(feature.table) != table) continue;
    missed += model.UniqueRows(feature, samples) *
              MissedShare(samples * feature.lookups, rows, feature.zipf_exponent, held, recipe.host_cache);
  }
  return std::min(missed, rows - held);
}

Bytes HostMemoryPerDevice(const Accelerator& accelerator) {
  const auto fact = accelerator.facts.find("host_memory_bytes_per_device");
  return fact == accelerator.facts.end() ? Bytes(0) : Bytes(fact->second.value);
}

Status CheckHostTables(const Model& model, const Recipe& recipe, const Cluster& cluster) {
  for (const auto& [name, table] : recipe.tables) {
    if (table.memory != TableMemory::kHost) continue;
    if (table.sharding == Sharding::kDataParallel || recipe.sharding == Sharding::kDataParallel) {
      return MakeError(ErrorCode::kInvalidValue,
                       fmt::format("recipe '{}': embedding.tables.{}.memory: a table in host memory is not replicated; "
                                   "accepted with sharding auto, table, column, row or table_row",
                                   recipe.id, name));
    }
  }
  if (!AnyInHostMemory(model, recipe) || HostMemoryPerDevice(cluster.accelerator) > Bytes(0)) return {};
  return MakeError(
      ErrorCode::kInvalidValue,
      fmt::format("recipe '{}': tables in host memory, but {} states no host_memory_bytes_per_device (portolan hw show "
                  "{}); state it in a file of --data-dir",
                  recipe.id, cluster.accelerator.id, cluster.accelerator.id));
}

}  // namespace portolan
