#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/cuda/cuda_device.h"
#include "engine/batch.h"
#include "engine/cuda_network.h"
#include "kernels/embedding/cuda_cache.h"

// Tables in host memory behind caches on the device (kernels/embedding/cuda_cache.h), for the CUDA network.
namespace portolan {

// Which tables lie where. Tables are kept on the device whole, the smallest first, in up to a quarter of what there is
// for tables; the others lie in host memory, and those with records of one size share a cache.
struct TablePlacement {
  struct Cache {
    int64_t record_bytes = 0, state_offset = 0, sets = 0;
    double table_bytes = 0;  // of the tables behind it
  };
  std::vector<int> cache_of;  // by table; -1: whole on the device
  std::vector<Cache> caches;  // none: all tables are whole
  double whole_rows_bytes = 0, whole_state_bytes = 0;
  double cache_bytes = 0;  // caches and directories
  double host_bytes = 0;
};
// `budget`: device bytes for tables, caches and directories; infinite: all tables are whole. Where it is too small the
// placement needs more than it: every cache has one set.
TablePlacement PlaceTables(const NetworkPlan& plan, double budget);

class CudaHostTables {
 public:
  // Allocates; rows are not initialised, states are zero. first_row: [tables + 1] over all tables, known to the device
  // as device_first_row.
  CudaHostTables(const NetworkPlan& plan, const TablePlacement& placement, kernels::cuda::CachePolicy policy,
                 const std::vector<int64_t>& first_row);

  // Of a table in host memory: what kernels take as its rows, and where its own rows begin, a record apart.
  const kernels::cuda::CachedTable& Of(size_t table) const { return cached_[table]; }
  const kernels::cuda::CachedTable* device_cached() const { return device_cached_.As<kernels::cuda::CachedTable>(); }

  // The rows of a batch in the caches, sorted lookups and places.
  struct Found {
    std::shared_ptr<const DeviceBatch> batch;  // null: of nobody who could ask for it again
    kernels::cuda::SortedLookups sorted;
    device::cuda::DeviceMemory sort_space, places;
    device::cuda::Event done;
    uint32_t number = 0;  // 0: not valid
  };
  // What Ahead found of this batch, or finds it now. The batch's memory must stay until it is done.
  Found& Take(const std::shared_ptr<const DeviceBatch>& batch, const kernels::cuda::EmbeddingLookups& lookups);
  // Finds the rows of the batch after the one taken last, while that one is trained on; called when its step is queued.
  // `updated`: recorded where that step's update of rows is done. Waits until the rows of the batch taken are in place.
  void Ahead(std::shared_ptr<const DeviceBatch> batch, const kernels::cuda::EmbeddingLookups& lookups,
             const device::cuda::Event& updated);
  // Places of an evaluation: nothing is loaded. On `queue`, after what was begun.
  const int64_t* PlacesOf(const kernels::cuda::EmbeddingLookups& lookups, const device::cuda::Queue& queue);

  // Waits for what was begun, and writes all records back.
  void WriteBack();
  // Forgets what the caches hold: host memory has changed.
  void Clear();
  HostCacheCounts Counts();

 private:
  // Into the one of found_ that was not taken last.
  void Find(std::shared_ptr<const DeviceBatch> batch, kernels::cuda::EmbeddingLookups lookups, uint32_t keep_from);
  void Collect();  // the counters of the last search

  const kernels::cuda::CachePolicy policy_;
  std::vector<device::cuda::MappedHostMemory> host_;
  std::vector<kernels::cuda::CachedTable> cached_;
  std::vector<kernels::cuda::RowCache> caches_;
  std::vector<device::cuda::DeviceMemory> memory_;  // caches and directories
  device::cuda::DeviceMemory device_cached_, device_caches_, device_first_row_, missing_, counters_, eval_places_;
  device::cuda::PinnedMemory host_counts_;
  device::cuda::Queue queue_;
  Found found_[2];
  int current_ = 0, last_ = 0;  // of found_: taken last, searched for last
  uint32_t clock_ = 0;
  bool counted_ = true;    // the counters of the last search are in counts_
  uint64_t bypassed_ = 0;  // of the last search
  HostCacheCounts counts_;
  int32_t table_count_ = 0;
};

}  // namespace portolan
