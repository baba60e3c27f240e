#pragma once

#include <array>
#include <vector>

#include "plan/graph_builder.h"

namespace portolan {

// Embedding works whose steps were priced and are no shorter than the best step found so far. No task of a step that
// grows makes it shorter, so that a work which is in no part less than one of them need not be priced. Not part of the
// API.
class NoBetterWorks {
 public:
  // Whether some work here is in every part at most `work`.
  bool Cover(const EmbeddingWork& work) const;
  void Add(const EmbeddingWork& work);

 private:
  // What of a work depends on where tables are.
  using Parts = std::array<double, 19>;
  static Parts PartsOf(const EmbeddingWork& work);

  std::vector<Parts> works_;
  size_t next_ = 0;  // that an addition overwrites when there are many
};

}  // namespace portolan
