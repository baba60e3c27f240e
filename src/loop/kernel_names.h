#pragma once

#include "kernels/embedding/embedding.h"
#include "kernels/optimizer/optimizer.h"

namespace portolan {

// What these kinds are called in the names of a calibration's grids: "fp32", "rowwise_adagrad", "momentum".
const char* FormatName(kernels::RowFormat format);
const char* OptimizerName(kernels::RowOptimizer optimizer);
const char* DenseName(kernels::DenseUpdateKind kind);

}  // namespace portolan
