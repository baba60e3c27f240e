#include "ops/collective.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace portolan {
namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllToAll, CollectiveKind::kAllReduce,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllGather,
                                     CollectiveKind::kBroadcast};

CollectiveShape Shape(CollectiveKind kind, double bytes, int devices) {
  CollectiveShape shape;
  shape.kind = kind;
  shape.bytes = Bytes(bytes);
  shape.devices = devices;
  return shape;
}

TEST(CollectiveBytesSent, HandSums) {
  // 800 bytes over 8 devices: 7/8 is 700.
  EXPECT_EQ(CollectiveBytesSent(Shape(CollectiveKind::kAllToAll, 800, 8)), Bytes(700));
  EXPECT_EQ(CollectiveBytesSent(Shape(CollectiveKind::kReduceScatter, 800, 8)), Bytes(700));
  EXPECT_EQ(CollectiveBytesSent(Shape(CollectiveKind::kAllGather, 800, 8)), Bytes(700));
  EXPECT_EQ(CollectiveBytesSent(Shape(CollectiveKind::kAllReduce, 800, 8)), Bytes(1400));
  EXPECT_EQ(CollectiveBytesSent(Shape(CollectiveKind::kBroadcast, 800, 8)), Bytes(800));
}

TEST(CollectiveBytesSent, AllReduceIsReduceScatterThenAllGather) {
  for (const int devices : {1, 2, 3, 8, 128}) {
    EXPECT_EQ(CollectiveBytesSent(Shape(CollectiveKind::kAllReduce, 4096, devices)),
              CollectiveBytesSent(Shape(CollectiveKind::kReduceScatter, 4096, devices)) +
                  CollectiveBytesSent(Shape(CollectiveKind::kAllGather, 4096, devices)));
  }
}

TEST(CollectiveBytesSent, OneDeviceSendsNothing) {
  for (const CollectiveKind kind : kKinds) EXPECT_EQ(CollectiveBytesSent(Shape(kind, 800, 1)), Bytes(0));
}

TEST(CollectiveBytesSent, MonotoneInDevicesLinearInBytes) {
  for (const CollectiveKind kind : kKinds) {
    Bytes last;
    for (int devices = 1; devices <= 256; devices *= 2) {
      const Bytes sent = CollectiveBytesSent(Shape(kind, 1024, devices));
      EXPECT_GE(sent, last);
      EXPECT_EQ(CollectiveBytesSent(Shape(kind, 2048, devices)), sent * 2);
      last = sent;
    }
    EXPECT_EQ(CollectiveBytesSent(Shape(kind, 0, 8)), Bytes(0));
  }
}

TEST(CollectiveBytesSent, ImbalanceIsLeftToTheCaller) {
  CollectiveShape shape = Shape(CollectiveKind::kAllToAll, 800, 8);
  shape.imbalance = 1.7;
  EXPECT_EQ(CollectiveBytesSent(shape), Bytes(700));
}

TEST(CollectiveKindName, DistinctNames) {
  std::set<std::string> names;
  for (const CollectiveKind kind : kKinds) names.insert(CollectiveKindName(kind));
  EXPECT_EQ(names.size(), 5u);
}

}  // namespace
}  // namespace portolan
