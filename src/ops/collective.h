#pragma once

#include <cstdint>

#include "units/quantity.h"

namespace portolan {

enum class CollectiveKind { kAllToAll, kAllReduce, kReduceScatter, kAllGather, kBroadcast };

// Who moves the bytes.
enum class CollectiveTransport {
  kLibrary,       // NCCL, RCCL, MPI
  kDirectStores,  // the kernel before it writes into peer memory, inside a node: no protocol to fill, one barrier
};

// One collective over `devices` devices. `bytes` by the usual convention (nccl-tests): all-to-all, all-reduce and
// broadcast: the send buffer of one device; reduce-scatter: the input of one device; all-gather: the output.
struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Bytes bytes;
  int devices = 8;
  CollectiveTransport transport = CollectiveTransport::kLibrary;
  double imbalance = 1.0;  // largest share over mean share, for all-to-all with unequal parts
};

const char* CollectiveKindName(CollectiveKind kind);
// Bytes that the mean device must send: (n-1)/n x bytes (all-to-all, reduce-scatter, all-gather), 2 (n-1)/n x bytes
// (all-reduce), bytes (broadcast: a root or a link of the chain sends the buffer once); 0 for one device. These are the
// bus-bandwidth factors of nccl-tests (doc/PERFORMANCE.md). `imbalance` is not applied: the most loaded device sends
// imbalance x this, which is for the cost model to wait for.
Bytes CollectiveBytesSent(const CollectiveShape& shape);

// A copy between host and device memory.
struct HostCopyShape {
  Bytes bytes;
};

}  // namespace portolan
