#pragma once

#include <vector>

#include "model/model.h"

namespace portolan {

// Output shape of a block from its inputs' shapes, or an error that says what the block needs (without file and line:
// the caller adds them).
Result<TensorShape> InferShape(const BlockBody& body, const std::vector<TensorShape>& inputs);

}  // namespace portolan
