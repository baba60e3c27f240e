// ExpectedUniqueRows against exact sums and against counted production batches.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "ops/embedding.h"

namespace portolan {
namespace {

// The sum that ExpectedUniqueRows approximates, smallest terms first.
double ExactUniqueRows(double lookups, double rows, double exponent) {
  double normaliser = 0;
  for (double i = rows; i >= 1; --i) normaliser += std::pow(i, -exponent);
  double unique = 0;
  for (double i = rows; i >= 1; --i) {
    unique -= std::expm1(lookups * std::log1p(-std::pow(i, -exponent) / normaliser));
  }
  return unique;
}

TEST(ExpectedUniqueRows, HandSums) {
  EXPECT_EQ(ExpectedUniqueRows(0, 100, 0), 0);
  EXPECT_EQ(ExpectedUniqueRows(0, 100, 1), 0);
  EXPECT_EQ(ExpectedUniqueRows(10, 0, 1), 0);
  EXPECT_EQ(ExpectedUniqueRows(10, 1, 0), 1);
  EXPECT_EQ(ExpectedUniqueRows(10, 1, 1), 1);
  EXPECT_DOUBLE_EQ(ExpectedUniqueRows(1, 1000, 0), 1);
  EXPECT_NEAR(ExpectedUniqueRows(1, 1000, 1), 1, 1e-5);
  EXPECT_DOUBLE_EQ(ExpectedUniqueRows(2, 2, 0), 1.5);  // two coins: 1 or 2 faces, half and half
  EXPECT_DOUBLE_EQ(ExpectedUniqueRows(3, 4, 0), 4 * (1 - 27.0 / 64));
  // Zipf 1 on two rows: p = 2/3, 1/3; two draws: (1 - 1/9) + (1 - 4/9) = 13/9.
  EXPECT_DOUBLE_EQ(ExpectedUniqueRows(2, 2, 1), 13.0 / 9);
}

TEST(ExpectedUniqueRows, UniformIsStableForHugeTables) {
  // n^2 / 2R = 5e-3 of 1e5 draws from 1e12 rows are expected to collide; 1 - 1/R alone loses it in rounding.
  EXPECT_NEAR(1e5 - ExpectedUniqueRows(1e5, 1e12, 0), 5e-3, 1e-4);
}

TEST(ExpectedUniqueRows, ZipfWithinToleranceOfExactSums) {
  constexpr double kTolerance = 1e-5;  // relative; the largest error seen is 7.5e-6, at exponent 3
  for (const double exponent : {0.1, 0.5, 0.8, 1.0, 1.05, 1.2, 2.0, 3.0}) {
    for (const double rows : {2.0, 64.0, 65.0, 100.0, 1e4, 1e6}) {
      for (const double lookups : {1.0, 100.0, 1e5, 1e9}) {
        if (rows == 1e6 && lookups != 1e5) continue;  // a second's worth of sums is enough
        const double exact = ExactUniqueRows(lookups, rows, exponent);
        EXPECT_NEAR(ExpectedUniqueRows(lookups, rows, exponent) / exact, 1, kTolerance)
            << lookups << " lookups of " << rows << " rows, exponent " << exponent;
      }
    }
  }
}

TEST(ExpectedUniqueRows, BoundedAndMonotone) {
  for (const double exponent : {0.0, 0.7, 1.0, 1.3}) {
    double last = 0;
    for (double lookups = 0.25; lookups < 1e12; lookups *= 2) {
      const double unique = ExpectedUniqueRows(lookups, 1e7, exponent);
      EXPECT_GE(unique, last);
      EXPECT_LE(unique, lookups);
      EXPECT_LE(unique, 1e7);
      last = unique;
    }
    last = 0;
    for (double rows = 1; rows < 1e12; rows *= 3) {
      const double unique = ExpectedUniqueRows(1e6, rows, exponent);
      EXPECT_GE(unique, last * (1 - 1e-5)) << rows;
      last = unique;
    }
  }
}

TEST(ExpectedUniqueRows, SkewMeansFewerRows) {
  double last = 1e300;
  for (const double exponent : {0.0, 0.3, 0.6, 0.9, 1.0, 1.1, 1.5, 2.0}) {
    const double unique = ExpectedUniqueRows(1e6, 4e7, exponent);
    EXPECT_LT(unique, last) << exponent;
    last = unique;
  }
}

TEST(ExpectedUniqueRows, ContinuousInTheExponentAtZeroAndOne) {
  const double rows = 1e6;
  EXPECT_NEAR(ExpectedUniqueRows(1e6, rows, 1e-9) / ExpectedUniqueRows(1e6, rows, 0), 1, 1e-5);
  EXPECT_NEAR(ExpectedUniqueRows(1e6, rows, 1 + 1e-9) / ExpectedUniqueRows(1e6, rows, 1), 1, 1e-6);
}

// One block of facebookresearch/dlrm_datasets' locality statistics.
struct Locality {
  std::string name;
  double lookups = 0;
  double unique = 0;
  std::vector<double> rows_by_reuse;     // shares of the unique rows
  std::vector<double> lookups_by_reuse;  // shares of the lookups
};

double NumberAfter(const std::string& line, const std::string& label) {
  return std::strtod(line.c_str() + line.find(label) + label.size(), nullptr);
}

std::vector<Locality> ReadLocality(const std::string& file_name) {
  const char* shared = std::getenv("PORTOLAN_SHARED_DATA");
  std::ifstream file(std::string(shared != nullptr ? shared : "../shared/data") + "/dlrm-traces/" + file_name);
  std::vector<Locality> blocks;
  std::vector<double>* histogram = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (line.find(".pt") != std::string::npos) {
      blocks.emplace_back().name = line;
    } else if (line.find("# of indices:") != std::string::npos) {
      blocks.back().lookups = NumberAfter(line, "indices:");
    } else if (line.find("# of unique cols:") != std::string::npos) {
      blocks.back().unique = NumberAfter(line, "cols:");
    } else if (line.find("Histogram of col sizes") == 0) {
      histogram = &blocks.back().rows_by_reuse;
    } else if (line.find("Ratio of index distribution") == 0) {
      histogram = &blocks.back().lookups_by_reuse;
    } else if (line.find('(') == 0 && histogram != nullptr) {
      histogram->push_back(NumberAfter(line, ": "));
    }
  }
  return blocks;
}

class LocalityTrace : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    blocks_ = ReadLocality(GetParam());
    if (blocks_.empty()) GTEST_SKIP() << "no dlrm-traces/" << GetParam() << "; set PORTOLAN_SHARED_DATA to have it";
  }
  std::vector<Locality> blocks_;
};

// The data's own sums: both histograms describe the same rows. Bin i holds rows looked up (2^(i-1), 2^i] times, the
// last has no upper end, and shares are rounded to 0.001.
TEST_P(LocalityTrace, HistogramsAgree) {
  for (const Locality& block : blocks_) {
    ASSERT_EQ(block.rows_by_reuse.size(), 17u) << block.name;
    ASSERT_EQ(block.lookups_by_reuse.size(), 17u) << block.name;
    double least = 0;
    double most = 0;
    double shares = 0;
    for (size_t i = 0; i < 17; ++i) {
      const double lookups = block.lookups_by_reuse[i] * block.lookups;
      shares += block.lookups_by_reuse[i];
      const double reuse_below = i == 0 ? 1 : std::exp2(static_cast<double>(i) - 1) + 1;
      most += lookups / reuse_below;
      if (i < 16) least += lookups / std::exp2(static_cast<double>(i));
    }
    EXPECT_NEAR(shares, 1, 0.01) << block.name;
    EXPECT_GT(block.unique, least * 0.98) << block.name;
    EXPECT_LT(block.unique, most * 1.02) << block.name;
    EXPECT_NEAR(block.rows_by_reuse[0] * block.unique / block.lookups, block.lookups_by_reuse[0], 0.001) << block.name;
  }
}

// Equal tables with P(i) ~ 1 / i, as many as the data set has, sized to give the unique rows counted, must give the
// share of rows looked up once. By Good and Turing that share is d ln(unique) / d ln(lookups), which the histogram
// counts independently. Uniform draws sized likewise are far off.
TEST_P(LocalityTrace, ZipfOneGivesTheShareOfSingles) {
  const auto singles = [](double lookups, double unique, double exponent) {
    double low = unique;
    double high = 1e15;
    for (int i = 0; i < 80; ++i) {
      const double middle = std::sqrt(low * high);
      (ExpectedUniqueRows(lookups, middle, exponent) < unique ? low : high) = middle;
    }
    const double step = 1.01;
    return std::log(ExpectedUniqueRows(lookups * step, low, exponent) /
                    ExpectedUniqueRows(lookups / step, low, exponent)) /
           (2 * std::log(step));
  };
  for (const Locality& block : blocks_) {
    const double tables = NumberAfter(block.name, "_t");
    ASSERT_GT(tables, 0) << block.name;
    EXPECT_NEAR(singles(block.lookups / tables, block.unique / tables, 1), block.rows_by_reuse[0], 0.07) << block.name;
    EXPECT_LT(singles(block.lookups / tables, block.unique / tables, 0), 0.02) << block.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, LocalityTrace, testing::Values("locality_stats_2021.txt", "locality_stats_2022.txt"));

}  // namespace
}  // namespace portolan
