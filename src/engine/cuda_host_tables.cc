#include "engine/cuda_host_tables.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/cuda_network_state.h"

namespace portolan {

using device::cuda::CheckRuntime;
using kernels::cuda::CacheCounts;
using kernels::cuda::CachedTable;
using kernels::cuda::kCacheWays;
using kernels::cuda::RowCache;

namespace {

constexpr double kSlotBytes = 12;      // owner, last use, uses
constexpr double kDirectoryBytes = 4;  // a row
constexpr double kWholeShare = 0.25;   // of the budget

struct RecordShape {
  int64_t row_bytes, state_offset, record_bytes;
  int64_t state_floats;
};
RecordShape ShapeOf(const NetworkPlan& plan, const Table& table) {
  constexpr int64_t kAlignment = 16;
  RecordShape shape = {};
  shape.row_bytes = kernels::RowBytes(plan.options.row, table.dim);
  shape.state_floats = kernels::RowStateFloats(plan.options.row_optimizer, table.dim);
  shape.state_offset = RoundUp(shape.row_bytes, kAlignment);
  shape.record_bytes = RoundUp(shape.state_offset + 4 * shape.state_floats, kAlignment);
  return shape;
}

}  // namespace

TablePlacement PlaceTables(const NetworkPlan& plan, double budget) {
  TablePlacement placement;
  placement.cache_of.assign(plan.tables.size(), -1);
  std::vector<double> bytes;
  for (const Table& table : plan.tables) {
    const RecordShape shape = ShapeOf(plan, table);
    bytes.push_back(table.rows * static_cast<double>(shape.row_bytes + 4 * shape.state_floats));
  }
  std::vector<size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return bytes[a] < bytes[b]; });
  const bool all = std::accumulate(bytes.begin(), bytes.end(), 0.0) <= budget;
  double whole = 0;
  for (const size_t t : order) {
    const Table& table = plan.tables[t];
    const RecordShape shape = ShapeOf(plan, table);
    if (all || whole + bytes[t] <= kWholeShare * budget) {
      whole += bytes[t];
      placement.whole_rows_bytes += table.rows * static_cast<double>(shape.row_bytes);
      placement.whole_state_bytes += table.rows * 4.0 * static_cast<double>(shape.state_floats);
      continue;
    }
    auto cache = std::find_if(placement.caches.begin(), placement.caches.end(), [&](const TablePlacement::Cache& c) {
      return c.record_bytes == shape.record_bytes && c.state_offset == shape.state_offset;
    });
    if (cache == placement.caches.end()) {
      placement.caches.push_back({shape.record_bytes, shape.state_offset, 0, 0});
      cache = placement.caches.end() - 1;
    }
    placement.cache_of[t] = static_cast<int>(cache - placement.caches.begin());
    cache->table_bytes += table.rows * static_cast<double>(shape.record_bytes);
    placement.cache_bytes += kDirectoryBytes * table.rows;
  }
  const double left = budget - whole - placement.cache_bytes;
  for (const TablePlacement::Cache& cache : placement.caches) placement.host_bytes += cache.table_bytes;
  for (TablePlacement::Cache& cache : placement.caches) {
    const double set_bytes = kCacheWays * (static_cast<double>(cache.record_bytes) + kSlotBytes);
    const double most = std::ceil(cache.table_bytes / static_cast<double>(cache.record_bytes) / kCacheWays);
    const double share = left * cache.table_bytes / placement.host_bytes;
    constexpr double kMostSets = 4294967294.0 / kCacheWays;
    cache.sets = static_cast<int64_t>(std::clamp(std::floor(share / set_bytes), 1.0, std::min(2 * most, kMostSets)));
    placement.cache_bytes += static_cast<double>(cache.sets) * set_bytes;
  }
  return placement;
}

CudaHostTables::CudaHostTables(const NetworkPlan& plan, const TablePlacement& placement,
                               kernels::cuda::CachePolicy policy, const std::vector<int64_t>& first_row)
    : policy_(policy), table_count_(static_cast<int32_t>(plan.tables.size())) {
  const auto take = [&](int64_t bytes, const char* purpose) {
    memory_.emplace_back(bytes, purpose);
    return memory_.back().As<char>();
  };
  for (const TablePlacement::Cache& shape : placement.caches) {
    const int64_t slots = shape.sets * kCacheWays;
    RowCache cache;
    cache.records = take(slots * shape.record_bytes, "the cache of tables in host memory");
    cache.owners = reinterpret_cast<uint32_t*>(take(slots * 4, "the cache's directory"));
    cache.last_used = reinterpret_cast<uint32_t*>(take(slots * 4, "the cache's directory"));
    cache.uses = reinterpret_cast<uint32_t*>(take(slots * 4, "the cache's directory"));
    cache.sets = shape.sets;
    cache.record_bytes = shape.record_bytes;
    caches_.push_back(cache);
  }
  for (size_t t = 0; t < plan.tables.size(); ++t) {
    CachedTable table;
    if (placement.cache_of[t] >= 0) {
      const RecordShape shape = ShapeOf(plan, plan.tables[t]);
      const auto rows = static_cast<int64_t>(plan.tables[t].rows);
      const RowCache& cache = caches_[static_cast<size_t>(placement.cache_of[t])];
      host_.emplace_back((rows + 1) * shape.record_bytes, "embedding rows in host memory");
      table.records = cache.records;
      // A whole number of records from the cache, so that a place in host memory is a number of a record too.
      char* start = host_.back().Device<char>();
      const int64_t apart = static_cast<int64_t>(reinterpret_cast<uintptr_t>(start)) -
                            static_cast<int64_t>(reinterpret_cast<uintptr_t>(cache.records));
      const int64_t over = apart % shape.record_bytes;
      table.host = start + (over > 0 ? shape.record_bytes - over : -over);
      table.host_records = host_.back().Host<char>() + (table.host - start);
      table.slots = reinterpret_cast<uint32_t*>(take(rows * 4, "the cache's directory"));
      table.record_bytes = shape.record_bytes;
      table.state_offset = shape.state_offset;
      table.row_bytes = shape.row_bytes;
      table.state_floats = static_cast<int32_t>(shape.state_floats);
      table.cache = placement.cache_of[t];
      counts_.rows += rows;
    }
    cached_.push_back(table);
  }
  for (const RowCache& cache : caches_) counts_.slots += cache.sets * kCacheWays;
  device_cached_ = device::cuda::UploadedArray(cached_, "tables");
  device_caches_ = device::cuda::UploadedArray(caches_, "caches");
  device_first_row_ = device::cuda::UploadedArray(first_row, "tables");
  counters_ = DeviceMemory(sizeof(CacheCounts) + 16, "cache counters");
  host_counts_ = device::cuda::PinnedMemory(sizeof(CacheCounts), "cache counters");
  Clear();
}

void CudaHostTables::Clear() {
  queue_.Wait();
  const auto fill = [&](void* memory, int byte, int64_t bytes) {
    CheckRuntime(cudaMemsetAsync(memory, byte, static_cast<size_t>(bytes), queue_.native()), "clearing the cache");
  };
  for (const RowCache& cache : caches_) {
    const int64_t bytes = 4 * cache.sets * kCacheWays;
    fill(cache.owners, 0xff, bytes);
    fill(cache.last_used, 0, bytes);
    fill(cache.uses, 0, bytes);
  }
  // Every directory is the memory behind a table's slots.
  for (const CachedTable& table : cached_) {
    if (table.record_bytes == 0) continue;
    for (const DeviceMemory& memory : memory_) {
      if (memory.As<uint32_t>() == table.slots) fill(table.slots, 0xff, memory.bytes());
    }
  }
  queue_.Wait();
  for (Found& found : found_) found.number = 0;
}

void CudaHostTables::Collect() {
  if (counted_) return;
  found_[last_].done.Wait();
  const auto& counts = *host_counts_.As<CacheCounts>();
  counts_.found += static_cast<int64_t>(counts.found);
  counts_.loaded += static_cast<int64_t>(counts.loaded);
  counts_.written_back += static_cast<int64_t>(counts.written_back);
  counts_.bypassed += static_cast<int64_t>(counts.bypassed);
  bypassed_ = counts.bypassed;
  counted_ = true;
}

void CudaHostTables::Find(std::shared_ptr<const DeviceBatch> batch, kernels::cuda::EmbeddingLookups lookups,
                          uint32_t keep_from) {
  Collect();
  last_ = 1 - current_;
  Found& found = found_[last_];
  found.number = ++clock_;
  found.batch = std::move(batch);
  const auto room = [](DeviceMemory* memory, int64_t bytes, const char* purpose) {
    if (memory->bytes() >= bytes) return;
    *memory = DeviceMemory();
    *memory = DeviceMemory(bytes + bytes / 16, purpose);
  };
  room(&found.sort_space, kernels::cuda::EmbeddingWorkspaceBytes(lookups.lookups, lookups.max_dim), "sorting lookups");
  room(&found.places, 8 * std::max<int64_t>(lookups.lookups, 1), "places of lookups");
  room(&missing_, 4 * std::max<int64_t>(lookups.lookups, 1), "rows to load");
  lookups.cached = device_cached();
  found.sorted =
      kernels::cuda::SortByRow(lookups, found.sort_space.As<void>(), found.sort_space.bytes(), queue_.stream());
  kernels::cuda::CacheRequest request;
  request.lookups = lookups;
  request.sorted = found.sorted;
  request.caches = device_caches_.As<RowCache>();
  request.cache_count = static_cast<int32_t>(caches_.size());
  request.now = clock_;
  request.keep_from = std::min(keep_from, clock_);
  request.policy = policy_;
  request.missing = missing_.As<uint32_t>();
  request.counts = counters_.As<CacheCounts>();
  request.missing_count = reinterpret_cast<uint32_t*>(counters_.As<char>() + sizeof(CacheCounts));
  kernels::cuda::FindAndLoadRows(request, queue_.stream());
  kernels::cuda::PlaceLookups(lookups, found.places.As<int64_t>(), queue_.stream());
  device::cuda::CopyToHost(queue_, counters_.As<void>(), sizeof(CacheCounts), host_counts_.As<void>());
  found.done.Record(queue_);
  counted_ = false;
}

CudaHostTables::Found& CudaHostTables::Take(const std::shared_ptr<const DeviceBatch>& batch,
                                            const kernels::cuda::EmbeddingLookups& lookups) {
  Found& ahead = found_[1 - current_];
  if (ahead.number == 0 || batch == nullptr || ahead.batch != batch) {
    // Nothing is being trained on: every slot may change hands.
    Find(batch, lookups, clock_ + 1);
  }
  found_[current_].number = 0;
  found_[current_].batch.reset();
  current_ = 1 - current_;
  return found_[current_];
}

void CudaHostTables::Ahead(std::shared_ptr<const DeviceBatch> batch, const kernels::cuda::EmbeddingLookups& lookups,
                           const device::cuda::Event& updated) {
  Collect();
  // Rows that the step changes in host memory must not be loaded before it has.
  const bool after = bypassed_ > 0;
  if (after) updated.HoldBack(queue_);
  Find(std::move(batch), lookups, after ? clock_ + 1 : found_[current_].number);
}

const int64_t* CudaHostTables::PlacesOf(const kernels::cuda::EmbeddingLookups& lookups,
                                        const device::cuda::Queue& queue) {
  queue_.Wait();
  const int64_t bytes = 8 * std::max<int64_t>(lookups.lookups, 1);
  if (eval_places_.bytes() < bytes) {
    eval_places_ = DeviceMemory();
    eval_places_ = DeviceMemory(bytes, "places of lookups");
  }
  kernels::cuda::PlaceLookups(lookups, eval_places_.As<int64_t>(), queue.stream());
  return eval_places_.As<int64_t>();
}

void CudaHostTables::WriteBack() {
  queue_.Wait();
  kernels::cuda::EmbeddingLookups tables;
  tables.cached = device_cached();
  tables.first_row = device_first_row_.As<int64_t>();
  tables.table_count = table_count_;
  for (const RowCache& cache : caches_) kernels::cuda::WriteBackRows(cache, tables, queue_.stream());
  queue_.Wait();
}

HostCacheCounts CudaHostTables::Counts() {
  Collect();
  return counts_;
}

}  // namespace portolan
