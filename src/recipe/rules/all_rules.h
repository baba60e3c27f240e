#pragma once

#include <memory>

#include "recipe/rules/rule.h"

namespace portolan {

std::unique_ptr<Rule> MakeExchangeDtypeRule();
std::unique_ptr<Rule> MakeIndexDedupRule();
std::unique_ptr<Rule> MakeShardingRule();
std::unique_ptr<Rule> MakeSharding2dRule();
std::unique_ptr<Rule> MakeReplicateTablesRule();
std::unique_ptr<Rule> MakeReplicateHotRowsRule();
std::unique_ptr<Rule> MakeHostTablesRule();
std::unique_ptr<Rule> MakeBalanceRule();
std::unique_ptr<Rule> MakePipelineRule();
std::unique_ptr<Rule> MakeGradientOverlapRule();
std::unique_ptr<Rule> MakeCompileRule();
std::unique_ptr<Rule> MakeGraphCaptureRule();
std::unique_ptr<Rule> MakeMultiStreamRule();
std::unique_ptr<Rule> MakeAttentionRule();
std::unique_ptr<Rule> MakeRecomputeRule();
std::unique_ptr<Rule> MakeDenseParallelismRule();
std::unique_ptr<Rule> MakeAccumulationRule();
std::unique_ptr<Rule> MakeTableKernelsRule();
std::unique_ptr<Rule> MakeGroupedProductsRule();
std::unique_ptr<Rule> MakePadDimensionsRule();
std::unique_ptr<Rule> MakeMergeSharedInputRule();
std::unique_ptr<Rule> MakeJaggedPackingRule();
std::unique_ptr<Rule> MakeGradientDtypeRule();
std::unique_ptr<Rule> MakeRowDtypeRule();
std::unique_ptr<Rule> MakeEmbeddingOptimizerRule();
std::unique_ptr<Rule> MakeOptimizerStateRule();
std::unique_ptr<Rule> MakeGemmDtypeRule();
std::unique_ptr<Rule> MakeBatchRule();

}  // namespace portolan
