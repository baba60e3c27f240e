#include "units/quantity.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace portolan {
namespace {

// Right ratios have the type of the result.
static_assert(std::is_same_v<decltype(Bytes(1) / BytesPerSecond(1)), Seconds>);
static_assert(std::is_same_v<decltype(Flops(1) / FlopsPerSecond(1)), Seconds>);
static_assert(std::is_same_v<decltype(Bytes(1) / Seconds(1)), BytesPerSecond>);
static_assert(std::is_same_v<decltype(Seconds(1) * FlopsPerSecond(1)), Flops>);
static_assert(std::is_same_v<decltype(Flops(1) * Hertz(1)), FlopsPerSecond>);
static_assert(std::is_same_v<decltype(Bytes(1) / Bytes(1)), double>);

// Wrong ones do not compile.
template <typename A, typename B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <typename A, typename B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <typename A, typename B>
concept DivisionGivesSeconds = requires(A a, B b, Seconds target) {
  target = a / b;
};
static_assert(DivisionGivesSeconds<Bytes, BytesPerSecond>);
static_assert(!DivisionGivesSeconds<Bytes, FlopsPerSecond>);
static_assert(!DivisionGivesSeconds<BytesPerSecond, Bytes>);
static_assert(!DivisionGivesSeconds<Flops, BytesPerSecond>);
static_assert(Addable<Bytes, Bytes>);
static_assert(!Addable<Bytes, Flops>);
static_assert(!Addable<Bytes, double>);
static_assert(Comparable<Seconds, Seconds>);
static_assert(!Comparable<Seconds, Bytes>);
static_assert(!std::is_convertible_v<double, Seconds>);
static_assert(!std::is_convertible_v<Seconds, double>);

TEST(QuantityTest, Arithmetic) {
  // 3.35e12 B/s moves 6.7e9 B in 2 ms.
  EXPECT_DOUBLE_EQ((Bytes(6.7e9) / BytesPerSecond(3.35e12)).value, 2e-3);
  EXPECT_DOUBLE_EQ((2.0 * Bytes(3) + Bytes(4) * 0.5 - Bytes(1) / 2.0).value, 7.5);
  EXPECT_DOUBLE_EQ(Flops(6) / Flops(4), 1.5);
  Seconds time(1);
  time += Seconds(2);
  time -= Seconds(0.5);
  time *= 4.0;
  EXPECT_DOUBLE_EQ(time.value, 10.0);
  EXPECT_LT(Seconds(1), Seconds(2));
  EXPECT_EQ(Bytes().value, 0.0);
}

}  // namespace
}  // namespace portolan
