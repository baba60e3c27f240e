#include "plan/hot_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace portolan {
namespace {

// Zipf 1 over 1e6 rows: the first 1e4 take (ln 1e4 + 0.577) / (ln 1e6 + 0.577) = 0.68 of the lookups.
TEST(HotRows, ShareOfOneTable) {
  const std::vector<HotRows> hot = HottestRows({{1e6, 1e5, 1.0}}, 1e4);
  EXPECT_NEAR(hot[0].rows, 1e4, 10);
  EXPECT_NEAR(hot[0].share, 0.68, 0.01);
}

// Against enumeration: of two tables, the 60 rows with the most lookups.
TEST(HotRows, AreTheMostLookedUp) {
  const RowDemand tables[] = {{200, 1000, 1.2}, {300, 3000, 0.8}};
  std::vector<std::pair<double, int>> rows;
  for (int t = 0; t < 2; ++t) {
    double sum = 0;
    for (int i = 1; i <= tables[t].rows; ++i) sum += std::pow(i, -tables[t].zipf_exponent);
    for (int i = 1; i <= tables[t].rows; ++i) {
      rows.emplace_back(tables[t].lookups * std::pow(i, -tables[t].zipf_exponent) / sum, t);
    }
  }
  std::sort(rows.rbegin(), rows.rend());
  double count[2] = {0, 0}, lookups[2] = {0, 0};
  for (int i = 0; i < 60; ++i) {
    count[rows[i].second] += 1;
    lookups[rows[i].second] += rows[i].first;
  }
  const std::vector<HotRows> hot = HottestRows({tables[0], tables[1]}, 60);
  for (int t = 0; t < 2; ++t) {
    EXPECT_NEAR(hot[t].rows, count[t], 3) << t;
    EXPECT_NEAR(hot[t].share, lookups[t] / tables[t].lookups, 0.04) << t;
  }
}

// HugeCTR's logs (mlcommons/training_results_v2.1): the 33,096 most frequent rows of 26 Criteo tables take 89.48 % of
// the lookups; the model's exponent 1.13 was chosen so.
TEST(HotRows, CriteoAsLogged) {
  const double rows[] = {39884406, 39043,    17289,    7420,     20263,  3,     7120, 1543, 63,
                         38532951, 2953546,  403346,   10,       2208,   11938, 155,  4,    976,
                         14,       39979771, 25641295, 39664984, 585935, 12972, 108,  36};
  std::vector<RowDemand> tables;
  for (const double r : rows) tables.push_back({r, 1, 1.13});
  double share = 0;
  for (const HotRows& hot : HottestRows(tables, 33096)) share += hot.share / 26;
  EXPECT_NEAR(share, 0.8948, 0.02);
}

TEST(HotRows, NothingToKeep) {
  const std::vector<HotRows> none = HottestRows({{1000, 10, 0}, {1000, 0, 1}}, 100);
  EXPECT_EQ(none[0].rows, 0);
  EXPECT_EQ(none[1].rows, 0);
  EXPECT_EQ(HottestRows({{1000, 10, 1}}, 0)[0].rows, 0);
  EXPECT_NEAR(HottestRows({{1000, 10, 1}}, 1e9)[0].rows, 1000, 1);
}

}  // namespace
}  // namespace portolan
