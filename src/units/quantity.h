#pragma once

// Strong types for the three things a cost model adds up. A product or quotient has the type of the result, so a wrong
// ratio does not compile: Bytes / BytesPerSecond is Seconds, Bytes / FlopsPerSecond is not. All values are doubles in
// base SI units (bytes, floating-point operations, seconds).

#include <compare>

namespace portolan {

template <int kBytes, int kFlops, int kSeconds>
struct Quantity {
  double value = 0.0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double v) : value(v) {}
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value -= other.value;
    return *this;
  }
  constexpr Quantity& operator*=(double factor) {
    value *= factor;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value + b.value); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value - b.value); }
  friend constexpr Quantity operator*(Quantity a, double factor) { return Quantity(a.value * factor); }
  friend constexpr Quantity operator*(double factor, Quantity a) { return Quantity(a.value * factor); }
  friend constexpr Quantity operator/(Quantity a, double factor) { return Quantity(a.value / factor); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
};

template <int B1, int F1, int S1, int B2, int F2, int S2>
constexpr Quantity<B1 + B2, F1 + F2, S1 + S2> operator*(Quantity<B1, F1, S1> a, Quantity<B2, F2, S2> b) {
  return Quantity<B1 + B2, F1 + F2, S1 + S2>(a.value * b.value);
}
template <int B1, int F1, int S1, int B2, int F2, int S2>
requires(B1 != B2 || F1 != F2 || S1 != S2) constexpr Quantity<B1 - B2, F1 - F2, S1 - S2> operator/(
    Quantity<B1, F1, S1> a, Quantity<B2, F2, S2> b) {
  return Quantity<B1 - B2, F1 - F2, S1 - S2>(a.value / b.value);
}

using Bytes = Quantity<1, 0, 0>;
using Flops = Quantity<0, 1, 0>;  // one fused multiply-add is two
using Seconds = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<1, 0, -1>;
using FlopsPerSecond = Quantity<0, 1, -1>;
using Hertz = Quantity<0, 0, -1>;

}  // namespace portolan
