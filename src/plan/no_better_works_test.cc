#include "plan/no_better_works.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

EmbeddingWork Work(double forward, double update, double exchanged) {
  EmbeddingWork work;
  work.forward.total = Seconds(forward);
  work.backward.total = Seconds(update);
  work.forward_exchange_bytes = exchanged;
  return work;
}

TEST(NoBetterWorksTest, CoversWhatIsInNoPartLess) {
  NoBetterWorks works;
  EXPECT_FALSE(works.Cover(Work(1, 1, 1)));
  works.Add(Work(2, 5, 10));
  EXPECT_TRUE(works.Cover(Work(2, 5, 10)));
  EXPECT_TRUE(works.Cover(Work(3, 6, 10)));
  EXPECT_FALSE(works.Cover(Work(3, 4.9, 10)));
  EXPECT_FALSE(works.Cover(Work(1.9, 6, 100)));
  works.Add(Work(1, 6, 10));
  EXPECT_TRUE(works.Cover(Work(1.9, 6, 100)));
  EXPECT_FALSE(works.Cover(Work(1.9, 5.5, 10)));
}

// A kernel takes launch + factor x the rest: more of one does not make up for less of the other.
TEST(NoBetterWorksTest, LaunchAndTheRestApart) {
  NoBetterWorks works;
  EmbeddingWork work = Work(3, 1, 1);
  work.forward.launch = Seconds(1);
  works.Add(work);
  EXPECT_TRUE(works.Cover(work));
  work.forward.launch = Seconds(2);
  EXPECT_FALSE(works.Cover(work));
  work.forward.total = Seconds(4);
  EXPECT_TRUE(works.Cover(work));
}

// Many works are not all remembered; the last one always is.
TEST(NoBetterWorksTest, ManyWorks) {
  NoBetterWorks works;
  for (int i = 0; i < 5000; ++i) {
    works.Add(Work(1 + i, 5000 - i, 1));
    EXPECT_TRUE(works.Cover(Work(1 + i, 5000 - i, 1)));
    EXPECT_FALSE(works.Cover(Work(1 + i, 5000 - i, 0.5)));
  }
}

}  // namespace
}  // namespace portolan
