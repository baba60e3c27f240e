// HIP cannot launch a kernel from device code.

#include "porting/rules/rules.h"

namespace portolan {

void ApplyDynamicParallelism(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.Is(i, "<<<") || source.tokens()[i].kind != TokenKind::kPunctuator || input.IsDead(i)) continue;
    const DeviceFunction* function = source.EnclosingDeviceFunction(i);
    if (function == nullptr) continue;
    output->Find(source, i, FindingLevel::kError, "dynamic-parallelism", "HIP has no launch from device code",
                 "launch from the host, or make the work a loop");
  }
}

}  // namespace portolan
