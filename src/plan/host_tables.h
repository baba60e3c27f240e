#pragma once

#include <vector>

#include "base/error.h"
#include "hw/catalogue.h"
#include "model/model.h"
#include "recipe/recipe.h"

namespace portolan {

// Tables in host memory behind a cache on the devices (Recipe::host_tables_min, host_cache_fraction).
//
// The table and its optimizer state live in the memory of the node whose devices own its shards; each device caches its
// shard's hottest rows and their state (Recipe::host_cache_fraction of the rows). Steady state; with kLfu the hottest
// rows are the ones held. A step needs the distinct rows of its batch; those
// that are not held come over the device's host link, with their state, before the lookup, and as many updated ones go
// back at the same time in the other direction (the link is full duplex: host_link is a rate each way). With the
// batch's row popularity P(i) ~ i^-s over n rows, L lookups and C rows held, the share of the distinct rows that is
// missed is
//   m(C) = sum_{i>C} (1 - (1 - P(i))^L) / sum_{i>=1} (1 - (1 - P(i))^L),
// 1 for C = 0 and 0 for C = n. With kLru a row is held while it was looked up in the last t draws, where t is what
// fills the cache, D(t) = C with D(k) = sum_i (1 - (1 - P(i))^k) distinct rows in k draws (Che, Tung, Wang, IEEE JSAC
// 20(7), 2002), so that the rows of a batch that are missed are those of t + L draws that were not among the first t:
//   m(C) = (D(t + L) - C) / D(L).
// Never less than with kLfu, and the same without skew. A feature whose distinct rows are measured (unique_ratio) and
// whose skew is not stated counts as uniform: m = 1 - C / n. Rows that return soon because of their time and not of
// their frequency are not known to the model: a cache does better with them than is said here.
struct HostTable {
  bool in_host = false;
  double missed_rows = 0;  // distinct rows that a step needs and the caches do not hold, all devices together
};

// Rows of a table that its devices hold: all of them, or the cached ones.
double DeviceRows(const Model& model, const Recipe& recipe, size_t table);
// Whether the table's home is host memory: named so, or at least host_tables_min bytes of rows and state; never one
// that is replicated (by its sharding, or by data_parallel_max), and not when the cache would hold every row.
bool InHostMemory(const Model& model, const Recipe& recipe, size_t table);
bool AnyInHostMemory(const Model& model, const Recipe& recipe);

// One step's misses of a table for `lookups` a sample of the features that read it, `samples` together.
double MissedRows(const Model& model, const Recipe& recipe, size_t table, double samples);

// Bytes of one row's optimizer state, and of the row with it.
Bytes RowStateBytes(const Model& model, const Recipe& recipe, size_t table);
Bytes RowAndStateBytes(const Model& model, const Recipe& recipe, size_t table);

// m(C) above for `lookups` draws from `rows` rows of which `held` are in the cache. kLfu: by Simpson's rule over log i
// (within 1e-3 of the exact sum, host_tables_test); kLru: t by bisection to 1e-6.
double MissedShare(double lookups, double rows, double zipf_exponent, double held,
                   HostCachePolicy policy = HostCachePolicy::kLfu);

// Host memory of one device's share of its server; zero where the accelerator's file does not state it
// (host_memory_bytes_per_device).
Bytes HostMemoryPerDevice(const Accelerator& accelerator);

// Refused: a recipe with host tables on an accelerator whose host memory is not stated, and a table that is named for
// the host and replicated.
Status CheckHostTables(const Model& model, const Recipe& recipe, const Cluster& cluster);

}  // namespace portolan
