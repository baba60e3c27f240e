#include "kernels/interaction/interaction.h"

#include <gtest/gtest.h>

#include "kernels/backend_under_test.h"
#include "kernels/test_random.h"

namespace portolan::kernels {
namespace {

TEST(DotInteractionReference, ByHand) {
  // x0 = (1, 2), x1 = (3, 4), x2 = (5, 6): dots (0,1) = 11, (0,2) = 17, (1,2) = 39; one column of padding.
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  std::vector<float> out(6, 9);
  const DotInteractionShape shape{1, 3, 2, 6, 6, 6};
  reference::DotInteractionForward(shape, x.data(), out.data());
  EXPECT_EQ(out, (std::vector<float>{1, 2, 11, 17, 39, 0}));
  // Only (0,2) and the copy have a gradient: dx0 = (10, 0) + 1 x2, dx2 = x0.
  const std::vector<float> dout = {10, 0, 0, 1, 0, 5};
  std::vector<float> dx(6, 9);
  reference::DotInteractionBackward(shape, x.data(), dout.data(), dx.data());
  EXPECT_EQ(dx, (std::vector<float>{15, 6, 0, 0, 1, 2}));
}

TEST(DotInteraction, AgreesWithReference) {
  for (const int64_t features : {1, 2, 9, 27}) {
    for (const int64_t dim : {1, 7, 16, 64}) {
      const int64_t width = DotInteractionWidth(features, dim);
      const DotInteractionShape shape{70, features, dim, features * dim + 5, width + 4, width + 2};
      const std::vector<float> x = RandomNumbers(shape.batch * shape.x_stride, 1);
      std::vector<float> expected(shape.batch * shape.out_stride, 7), actual = expected;
      reference::DotInteractionForward(shape, x.data(), expected.data());
      backend::DotInteractionForward(shape, x.data(), actual.data());
      for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-4) << features << " " << dim;

      const std::vector<float> dout = RandomNumbers(shape.batch * shape.out_stride, 2);
      std::vector<float> want(shape.batch * shape.x_stride, 7), got = want;
      reference::DotInteractionBackward(shape, x.data(), dout.data(), want.data());
      backend::DotInteractionBackward(shape, x.data(), dout.data(), got.data());
      for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << features << " " << dim;
    }
  }
}

}  // namespace
}  // namespace portolan::kernels
