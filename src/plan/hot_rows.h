#pragma once

#include <vector>

namespace portolan {

// How often the rows of one table are looked up: P(rank i) ~ i^-zipf_exponent over `rows` rows.
struct RowDemand {
  double rows = 0;
  double lookups = 0;
  double zipf_exponent = 0;
};

// The `count` rows with the most lookups over all tables: how many of each table, and what share of its lookups they
// take. Table t keeps its first c_t rows, where lookups_t c_t^-s / H_t(s) is one value for all tables (bisection).
// Tables without skew (exponent 0) and tables that are not looked up keep none.
struct HotRows {
  double rows = 0;
  double share = 0;
};
std::vector<HotRows> HottestRows(const std::vector<RowDemand>& tables, double count);

}  // namespace portolan
