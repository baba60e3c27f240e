#pragma once

#include "porting/rule.h"

namespace portolan {

// One function a rule; each says in its own file what it looks for.
void ApplyIncludes(const RuleInput& input, RuleOutput* output);
void ApplyRenameApi(const RuleInput& input, RuleOutput* output);
void ApplyLaunchCalls(const RuleInput& input, RuleOutput* output);
void ApplySymbolArguments(const RuleInput& input, RuleOutput* output);
void ApplyKernelPointerArguments(const RuleInput& input, RuleOutput* output);
void ApplyCallArguments(const RuleInput& input, RuleOutput* output);
void ApplyCompilerGuards(const RuleInput& input, RuleOutput* output);
void ApplyWarpSync(const RuleInput& input, RuleOutput* output);
void ApplyShuffleWidth(const RuleInput& input, RuleOutput* output);
void ApplyBallotNarrowed(const RuleInput& input, RuleOutput* output);
void ApplyWarpSize(const RuleInput& input, RuleOutput* output);
void ApplyLaneArithmetic(const RuleInput& input, RuleOutput* output);
void ApplyLaunchBounds(const RuleInput& input, RuleOutput* output);
void ApplyMissingLaunchBounds(const RuleInput& input, RuleOutput* output);
void ApplyInlinePtx(const RuleInput& input, RuleOutput* output);
void ApplyDeviceIntrinsics(const RuleInput& input, RuleOutput* output);
void ApplyCub(const RuleInput& input, RuleOutput* output);
void ApplyThrustPolicy(const RuleInput& input, RuleOutput* output);
void ApplyCooperativeGroups(const RuleInput& input, RuleOutput* output);
void ApplyTensorCores(const RuleInput& input, RuleOutput* output);
void ApplyTextures(const RuleInput& input, RuleOutput* output);
void ApplySharedMemory(const RuleInput& input, RuleOutput* output);
void ApplyLibcudacxx(const RuleInput& input, RuleOutput* output);
void ApplyFp8(const RuleInput& input, RuleOutput* output);
void ApplyWarpSynchronous(const RuleInput& input, RuleOutput* output);
void ApplySpinLock(const RuleInput& input, RuleOutput* output);
void ApplyDynamicParallelism(const RuleInput& input, RuleOutput* output);
void ApplyQualifiers(const RuleInput& input, RuleOutput* output);
void ApplyHostMath(const RuleInput& input, RuleOutput* output);
void ApplyTransitiveIncludes(const RuleInput& input, RuleOutput* output);
void ApplyDependentTemplate(const RuleInput& input, RuleOutput* output);
void ApplyAtomicOverloads(const RuleInput& input, RuleOutput* output);
void ApplyVectorOperators(const RuleInput& input, RuleOutput* output);
void ApplyHalfConversion(const RuleInput& input, RuleOutput* output);
void ApplyHalfPrecision(const RuleInput& input, RuleOutput* output);

}  // namespace portolan
