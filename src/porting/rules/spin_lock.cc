// while (atomicCAS(lock, 0, 1) != 0); taken by every lane of a wave: the lane that holds the lock waits for those that
// spin, because lanes of a wave make no progress of their own.

#include "porting/rules/rules.h"
#include "porting/rules/wave.h"

namespace portolan {

void ApplySpinLock(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || !source.Is(i, "while") || !source.Is(i + 1, "(") || input.IsDead(i)) continue;
    const size_t close = source.Closing(i + 1);
    if (close == source.size() || source.EnclosingDeviceFunction(i) == nullptr) continue;
    size_t call = 0;
    for (size_t t = i + 2; t < close; ++t) {
      if (source.Is(t, "atomicCAS") || source.Is(t, "atomicExch")) call = t;
    }
    // A loop that only tries: an empty body. A CAS loop that computes a new value makes progress in every turn.
    const bool empty = source.Is(close + 1, ";") || (source.Is(close + 1, "{") && source.Is(close + 2, "}"));
    const bool after_do = i > 0 && source.Is(i - 1, "}");
    if (call == 0 || !empty || after_do || RunsInOneThread(source, i)) continue;
    output->Find(source, call, FindingLevel::kWarning, "spin-lock",
                 "lanes of one wave that spin keep the lane that holds the lock from releasing it",
                 "let one lane of the wave take the lock, or loop over the lanes");
  }
}

}  // namespace portolan
