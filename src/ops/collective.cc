#include "ops/collective.h"

#include "base/check.h"

namespace portolan {

const char* CollectiveKindName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllToAll:
      return "all-to-all";
    case CollectiveKind::kAllReduce:
      return "all-reduce";
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::kAllGather:
      return "all-gather";
    case CollectiveKind::kBroadcast:
      return "broadcast";
  }
  PORTOLAN_CHECK(false, "collective without a name");
}

Bytes CollectiveBytesSent(const CollectiveShape& shape) {
  PORTOLAN_CHECK(shape.devices >= 1 && shape.bytes.value >= 0, "a collective has devices and a size");
  if (shape.devices == 1) return Bytes(0);
  const double others = static_cast<double>(shape.devices - 1) / static_cast<double>(shape.devices);
  switch (shape.kind) {
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
      return shape.bytes * others;
    case CollectiveKind::kAllReduce:
      return shape.bytes * (2.0 * others);
    case CollectiveKind::kBroadcast:
      return shape.bytes;
  }
  PORTOLAN_CHECK(false, "collective without a size");
}

}  // namespace portolan
