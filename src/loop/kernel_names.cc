#include "loop/kernel_names.h"

namespace portolan {

const char* FormatName(kernels::RowFormat format) {
  switch (format) {
    case kernels::RowFormat::kFp32:
      return "fp32";
    case kernels::RowFormat::kFp16:
      return "fp16";
    case kernels::RowFormat::kBf16:
      return "bf16";
    case kernels::RowFormat::kInt8:
      return "int8";
  }
  return "";
}

const char* OptimizerName(kernels::RowOptimizer optimizer) {
  switch (optimizer) {
    case kernels::RowOptimizer::kSgd:
      return "sgd";
    case kernels::RowOptimizer::kAdagrad:
      return "adagrad";
    case kernels::RowOptimizer::kRowwiseAdagrad:
      return "rowwise_adagrad";
    case kernels::RowOptimizer::kAdam:
      return "adam";
    case kernels::RowOptimizer::kRowwiseAdam:
      return "rowwise_adam";
  }
  return "";
}

const char* DenseName(kernels::DenseUpdateKind kind) {
  switch (kind) {
    case kernels::DenseUpdateKind::kSgd:
      return "sgd";
    case kernels::DenseUpdateKind::kMomentum:
      return "momentum";
    case kernels::DenseUpdateKind::kAdagrad:
      return "adagrad";
    case kernels::DenseUpdateKind::kAdam:
      return "adam";
  }
  return "";
}

}  // namespace portolan
