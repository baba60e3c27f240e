#pragma once

#include <span>

namespace portolan {

// How much slower the fastest of many predicted times is to be expected, given that it was chosen for being the
// fastest: the smallest of n predictions is too small by the scatter of their errors (the optimiser's curse).
//
// With x = log(predicted) = log(true) + e, e normal with standard deviation s, Tweedie's formula gives the expectation
// of log(true) from the density f of the predictions alone, whatever the distribution of the true times:
//   E[log(true) | x] = x + s^2 d/dx log f(x)
// (Robbins 1956; B. Efron, "Tweedie's formula and selection bias", JASA 106, 2011). It holds at the chosen kernel as at
// any other, and errors that kernels share leave it as it is. f is estimated from the predictions x_j of all kernels
// that run the problem, smoothed by normal kernels of width h = s / 2:
//   shift = s^2 f'/f = (s / h)^2 sum_j w_j (x_j - x) / sum_j w_j,  w_j = exp(-(x_j - x)^2 / 2 h^2)
// A narrower h follows f closer where it falls off and is noisier; the test has what is left of the bias. No
// allocation.
class SelectionShift {
 public:
  // `fastest`: the smallest prediction, seconds > 0; `error`: s > 0, of a logarithm.
  SelectionShift(double fastest, double error) : fastest_(fastest), error_(error) {}

  // Predictions in seconds, each at least `fastest`; the fastest itself among them. Infinity: cannot run the problem.
  void Add(std::span<const double> seconds);
  // exp(shift): expected / predicted time of the fastest, at least 1; 1 when no other kernel is near.
  double Factor() const;

 private:
  double fastest_, error_;
  double weights_ = 0.0, moments_ = 0.0;
};

}  // namespace portolan
