#pragma once

#include "base/yaml_enum.h"
#include "ops/embedding.h"
#include "ops/optimizer.h"

namespace portolan {

// The names that model and recipe files use.
inline constexpr NamedValue<DenseOptimizer> kDenseOptimizerNames[] = {{"sgd", DenseOptimizer::kSgd},
                                                                      {"momentum", DenseOptimizer::kMomentum},
                                                                      {"adagrad", DenseOptimizer::kAdagrad},
                                                                      {"adam", DenseOptimizer::kAdam}};
inline constexpr NamedValue<EmbeddingOptimizer> kEmbeddingOptimizerNames[] = {
    {"sgd", EmbeddingOptimizer::kSgd},
    {"adagrad", EmbeddingOptimizer::kAdagrad},
    {"rowwise_adagrad", EmbeddingOptimizer::kRowwiseAdagrad},
    {"adam", EmbeddingOptimizer::kAdam},
    {"rowwise_adam", EmbeddingOptimizer::kRowwiseAdam}};

}  // namespace portolan
