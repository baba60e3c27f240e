// if (tid < 32) { volatile sum[tid] += sum[tid + 32]; sum[tid] += sum[tid + 16]; ... }: the lanes of a warp were once
// lock-step; neither vendor promises it.

#include "porting/rules/rules.h"
#include "porting/rules/wave.h"

namespace portolan {

void ApplyWarpSynchronous(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (const DeviceFunction& function : source.device_functions()) {
    std::string_view name;  // a volatile array or pointer of this function
    for (size_t i = function.name_token; i < function.body_end; ++i) {
      if (source.Is(i, "volatile") && !input.IsDead(i) && !source.Is(i - 1, "asm") && !source.Is(i - 1, "__asm__")) {
        for (size_t t = i + 1; t < i + 6; ++t) {
          if (source.IsIdentifier(t) &&
              (source.Is(t + 1, "[") || source.Is(t + 1, "=") || source.Is(t + 1, ",") || source.Is(t + 1, ")"))) {
            name = source.Text(t);
            break;
          }
        }
      }
      // v[x] += v[x + 32], or v[x] = v[x] + v[x + 32]
      if (name.empty() || source.Text(i) != name || !source.Is(i + 1, "[") || i + 4 >= source.size()) continue;
      const size_t close = source.Closing(i + 1);
      if (!source.Is(close - 1, "32") || !source.Is(close - 2, "+")) continue;
      output->Find(source, i, FindingLevel::kWarning, "warp-synchronous",
                   "lanes exchange data through shared memory with no barrier: the order is not guaranteed",
                   "put __syncthreads() between the steps, or shuffle");
      break;
    }
  }
}

}  // namespace portolan
