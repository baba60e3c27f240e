#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace portolan {

// What a kernel takes, from the notes of a code object. Registers are counted per lane (vector) or wave (scalar).
struct KernelResources {
  std::string symbol;              // as the linker knows it
  std::string name;                // as a human does, without argument types
  int vector_registers = 0;        // VGPRs and AGPRs together, as they are taken from the file that both share
  int accumulation_registers = 0;  // AGPRs among them
  int scalar_registers = 0;
  int vector_spills = 0;  // registers moved to scratch
  int scalar_spills = 0;
  int64_t shared_bytes = 0;    // LDS of a block that the compiler knows of; what a launch adds is not in it
  int64_t scratch_bytes = 0;   // of a lane
  int largest_block = 0;       // threads of a block that it was compiled for
  bool dynamic_stack = false;  // recursion, or a call whose callee was not seen: registers and scratch are guesses
};

struct CodeObject {
  std::vector<KernelResources> kernels;  // in the order of the notes
  std::vector<std::string> undefined;    // symbols that it uses and does not define, sorted
};

// Reads an AMDGPU ELF file, relocatable or linked: the MessagePack map in its NT_AMDGPU_METADATA note (LLVM, User Guide
// for AMDGPU Backend, "Code Object V3 and above Metadata") and its symbol table. A code object without kernels has no
// note. Errors: not a 64-bit little-endian ELF file, sections or notes that reach past its end, metadata that is no
// MessagePack map.
Result<CodeObject> ReadCodeObject(std::string_view bytes);

}  // namespace portolan
