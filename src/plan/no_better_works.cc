#include "plan/no_better_works.h"

#include <algorithm>

namespace portolan {
namespace {

constexpr size_t kRemembered = 256;
constexpr double kRounding = 1e-12;

template <typename Parts>
bool AtMost(const Parts& a, const Parts& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i] * (1 + kRounding)) return false;
  }
  return true;
}

}  // namespace

NoBetterWorks::Parts NoBetterWorks::PartsOf(const EmbeddingWork& w) {
  // A task takes launch + factor x (total - launch).
  const auto busy = [](const Estimate& e) { return (e.total - e.launch).value; };
  return {busy(w.forward),
          busy(w.index_sort),
          busy(w.backward),
          w.forward_exchange_bytes,
          w.backward_exchange_bytes,
          w.node_reduce_elements,
          w.forward.launch.value,
          w.index_sort.launch.value,
          w.backward.launch.value,
          w.index_exchange_bytes,
          w.owner_unpooled_elements,
          w.dense_gradient_elements,
          w.local_output_elements,
          w.local_unique_elements,
          w.host_row_bytes,
          w.host_find.total.value,
          w.input_bytes,
          w.sync_row_bytes,
          w.sync_state_bytes};
}

bool NoBetterWorks::Cover(const EmbeddingWork& work) const {
  const Parts parts = PartsOf(work);
  return std::any_of(works_.begin(), works_.end(), [&](const Parts& known) { return AtMost(known, parts); });
}

void NoBetterWorks::Add(const EmbeddingWork& work) {
  const Parts parts = PartsOf(work);
  works_.erase(std::remove_if(works_.begin(), works_.end(), [&](const Parts& known) { return AtMost(parts, known); }),
               works_.end());
  if (works_.size() < kRemembered) {
    works_.push_back(parts);
  } else {
    works_[next_++ % kRemembered] = parts;
  }
}

}  // namespace portolan
