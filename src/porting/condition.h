#pragma once

#include <cstdint>

#include "porting/source.h"

namespace portolan {

// Three-valued logic: the compiler's answer where it is known.
enum class Truth : uint8_t { kFalse, kTrue, kUnknown };

Truth Or(Truth a, Truth b);
Truth And(Truth a, Truth b);
Truth Not(Truth a);

// What HIP's compiler for AMD makes of a branch's condition when it compiles device code: integers and HIP's own macros
// are known, everything else is not. `branch` is an #if, #ifdef, #ifndef or #elif.
Truth EvaluateForHip(const SourceFile& source, const Conditional::Branch& branch);

}  // namespace portolan
