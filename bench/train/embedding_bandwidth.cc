// Embedding forward and backward against the copy bandwidth of the same run. Uniform ids, one table of 1 GiB,
// compulsory bytes only: every distinct row (and optimizer state) read once, and in the backward pass written once.
// Indices, pooled outputs, gradients and the sort are not counted.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "kernels/embedding/embedding.h"

namespace {

using portolan::kernels::BagPooling;
using portolan::kernels::EmbeddingBags;
using portolan::kernels::EmbeddingFeature;
using portolan::kernels::EmbeddingTable;
using portolan::kernels::RowFormat;
using portolan::kernels::RowOptimizer;

constexpr int kRounds = 9;

void* Allocate(int64_t bytes) {
  constexpr int64_t kHugePage = int64_t{2} << 20;
  const int64_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = std::aligned_alloc(kHugePage, static_cast<size_t>(rounded));
  if (memory == nullptr) std::exit(3);
  madvise(memory, static_cast<size_t>(rounded), MADV_HUGEPAGE);
  std::memset(memory, 0, static_cast<size_t>(rounded));
  return memory;
}

template <typename Run>
double MedianSeconds(Run run) {
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  return times[kRounds / 2];
}

// Bytes read and written a second.
double CopyBandwidth() {
  constexpr int64_t kBytes = int64_t{512} << 20, kChunk = int64_t{1} << 20;
  char* from = static_cast<char*>(Allocate(kBytes));
  char* to = static_cast<char*>(Allocate(kBytes));
  const double seconds = MedianSeconds([&] {
#pragma omp parallel for schedule(static)
    for (int64_t at = 0; at < kBytes; at += kChunk) std::memcpy(to + at, from + at, kChunk);
  });
  std::free(from);
  std::free(to);
  return 2 * static_cast<double>(kBytes) / seconds;
}

}  // namespace

int main() {
  const double copy = CopyBandwidth();
  std::printf("copy %.1f GB/s\n", copy * 1e-9);
  std::printf("%6s %8s %8s %10s %22s %10s %10s\n", "dim", "lookups", "a bag", "distinct", "optimizer", "ms", "of copy");
  for (const int32_t dim : {64, 128}) {
    for (const int64_t per_bag : {1, 8}) {
      const int64_t rows = (int64_t{1} << 30) / (4 * dim), batch = 131072 / per_bag, lookups = batch * per_bag;
      std::mt19937_64 random(1);
      std::vector<int64_t> ids(static_cast<size_t>(lookups)), offsets(static_cast<size_t>(batch + 1));
      std::uniform_int_distribution<int64_t> id(0, rows - 1);
      for (int64_t& i : ids) i = id(random);
      for (int64_t b = 0; b <= batch; ++b) offsets[b] = b * per_bag;
      const auto distinct = static_cast<double>(std::set<int64_t>(ids.begin(), ids.end()).size());
      EmbeddingTable table{Allocate(rows * dim * 4), static_cast<float*>(Allocate(rows * dim * 4)), rows, dim,
                           RowFormat::kFp32};
      EmbeddingFeature feature{0, BagPooling::kSum, static_cast<float*>(Allocate(batch * dim * 4)), dim};
      const EmbeddingBags bags{&table, 1, &feature, 1, batch, offsets.data(), ids.data(), nullptr};
      void* workspace = Allocate(portolan::kernels::EmbeddingBackwardWorkspaceBytes(bags, lookups));
      const auto report = [&](const char* name, double bytes, double seconds) {
        std::printf("%6d %8lld %8lld %10.0f %22s %10.2f %9.0f%%\n", dim, static_cast<long long>(lookups),
                    static_cast<long long>(per_bag), distinct, name, seconds * 1e3, 100 * bytes / seconds / copy);
      };
      const double row_bytes = distinct * dim * 4;
      report("forward", row_bytes, MedianSeconds([&] { portolan::kernels::cpu::EmbeddingForward(bags); }));
      portolan::kernels::RowUpdate update;
      const std::pair<const char*, RowOptimizer> optimizers[] = {{"sgd", RowOptimizer::kSgd},
                                                                 {"rowwise_adagrad", RowOptimizer::kRowwiseAdagrad},
                                                                 {"adagrad", RowOptimizer::kAdagrad}};
      for (const auto& [name, optimizer] : optimizers) {
        update.optimizer = optimizer;
        const double state = distinct * 4 * static_cast<double>(portolan::kernels::RowStateFloats(optimizer, dim));
        report(name, 2 * (row_bytes + state),
               MedianSeconds([&] { portolan::kernels::cpu::EmbeddingBackward(bags, update, workspace); }));
      }
      std::free(table.rows);
      std::free(table.state);
      std::free(feature.output);
      std::free(workspace);
    }
  }
  return 0;
}
