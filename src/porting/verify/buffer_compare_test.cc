#include "porting/verify/buffer_compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace portolan {
namespace {

template <typename T>
BufferDifference Compare(const std::vector<T>& expected, const std::vector<T>& seen, ElementType type,
                         FillBytes fill = {}) {
  return CompareBuffers(reinterpret_cast<const uint8_t*>(expected.data()),
                        reinterpret_cast<const uint8_t*>(seen.data()), expected.size() * sizeof(T), type, fill);
}

TEST(CompareBuffers, FirstElementThatDiffersAndHowMany) {
  const BufferDifference difference = Compare<int>({1, 2, 3, 4}, {1, 2, 5, -4}, {'i', 4});
  EXPECT_EQ(difference.elements, 2);
  EXPECT_EQ(difference.first, 2);
  EXPECT_EQ(difference.expected, "3");
  EXPECT_EQ(difference.seen, "5");
  EXPECT_FALSE(difference.permuted);
  EXPECT_EQ(Compare<int>({1, 2}, {1, 2}, {'i', 4}).elements, 0);
}

TEST(CompareBuffers, RoundingIsNoDifferenceAndALaneIs) {
  // 1e-3 of the element: 100.05 is within it, 101 is not.
  EXPECT_EQ(Compare<float>({100.0f, 1.0f}, {100.05f, 1.0f}, {'f', 4}).elements, 0);
  EXPECT_NEAR(Compare<float>({100.0f, 1.0f}, {100.05f, 1.0f}, {'f', 4}).largest_relative, 5e-4, 1e-5);
  EXPECT_EQ(Compare<float>({100.0f, 1.0f}, {101.0f, 1.0f}, {'f', 4}).elements, 1);
  // A sum of large terms that cancel: judged by the buffer's largest element, 1e-3 * 1e-3 * 1000.
  EXPECT_EQ(Compare<float>({1000.0f, 1e-4f}, {1000.0f, 2e-4f}, {'f', 4}).elements, 0);
  EXPECT_EQ(Compare<double>({1.0}, {1.0 + 1e-6}, {'d', 8}).elements, 1);
  EXPECT_EQ(Compare<float>({NAN}, {-NAN}, {'f', 4}).elements, 0);
  EXPECT_EQ(Compare<float>({NAN}, {1.0f}, {'f', 4}).elements, 1);
}

TEST(CompareBuffers, UnknownTypesAreFloatsWhereBothSidesReadAsSuch) {
  EXPECT_EQ(Compare<float>({2.5f}, {2.5001f}, {'?', 1}).elements, 0);
  EXPECT_EQ(Compare<int>({7}, {8}, {'?', 1}).elements, 1);  // 1e-44 as a float
}

TEST(CompareBuffers, MemoryThatNobodyWroteAgrees) {
  // 0 in one run, 0x3c3c3c3c in the other.
  EXPECT_EQ(Compare<uint32_t>({0, 5}, {0x3c3c3c3c, 5}, {'i', 4}, {0, 0x3c}).elements, 0);
  EXPECT_EQ(Compare<uint32_t>({0, 5}, {0x3c3c3c3d, 5}, {'i', 4}, {0, 0x3c}).elements, 1);
  EXPECT_EQ(Compare<uint32_t>({0, 5}, {0x3c3c3c3c, 5}, {'i', 4}, {0, 0}).elements, 1);
}

TEST(CompareBuffers, TheSameElementsInAnotherOrder) {
  EXPECT_TRUE(Compare<int>({1, 2, 3}, {3, 1, 2}, {'i', 4}).permuted);
  EXPECT_FALSE(Compare<int>({1, 2, 3}, {3, 1, 1}, {'i', 4}).permuted);
}

}  // namespace
}  // namespace portolan
