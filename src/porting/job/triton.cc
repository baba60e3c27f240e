// Triton: a warp is a wave, of 64 lanes on CDNA; stages of a loop live in LDS; tensor memory accelerators, clusters and
// warp specialisation are NVIDIA's. Looked up (2026-12-01): num_stages 2 and num_ctas 1 where nothing is said, in
// HIPOptions of triton-lang/triton, third_party/amd/backend/compiler.py. The rest not entry by entry; what to check
// against: that back end's passes, Triton's language reference.

#include <fmt/format.h>

#include "base/text.h"
#include "porting/job/rules.h"

namespace portolan {
namespace {

constexpr int kThreadsOfABlock = 1024;  // the most that HIP launches
constexpr int kStagesOfAmd = 2;         // what Triton's AMD back end takes when nothing is said

bool UsesTriton(const JobFile& file) {
  for (size_t i = 0; i < file.tokens().size(); ++i) {
    if (file.Text(i) != "import" && file.Text(i) != "from") continue;
    const std::string_view module = file.Text(i + 1);
    if (module == "triton") return true;
  }
  return false;
}

// The constant behind "name ="; false for anything else.
bool KeywordValue(const JobFile& file, size_t name, long long* value) {
  const std::string_view before = name > 0 ? file.Text(name - 1) : std::string_view();
  const std::string_view after = file.Text(name + 3);
  return (before == "(" || before == ",") && file.Text(name + 1) == "=" && (after == "," || after == ")") &&
         ParseInt64(std::string(file.Text(name + 2)), value);
}

// The bytes of an operand that the file's kernels are for: 1 where its names speak of 8-bit floats, otherwise 2.
long long OperandBytes(const JobFile& file) {
  for (size_t i = 0; i < file.tokens().size(); ++i) {
    if (file.tokens()[i].kind != PythonTokenKind::kName) continue;
    const std::string name = LowerCase(file.Text(i));
    if (name.find("fp8") != std::string::npos || name.find("float8") != std::string::npos) return 1;
  }
  return 2;
}

// The bytes in LDS of a matrix product's tiles [M, K] and [N, K], `stages` deep, by the sizes of the Config that token
// `i` stands in; 0 when they are not there.
long long TileBytes(const JobFile& file, size_t i, long long stages, long long operand_bytes) {
  constexpr size_t kLongest = 60;  // tokens of a Config before its options
  long long m = 0, n = 0, k = 0;
  for (size_t at = i; at > 0 && i - at < kLongest; --at) {
    const std::string_view text = file.Text(at);
    if (text == "{") break;
    long long size = 0;
    if (!file.IsString(at) || file.Text(at + 1) != ":" || !ParseInt64(std::string(file.Text(at + 2)), &size)) continue;
    const std::string_view key = PythonStringContent(text);
    if (key == "BLOCK_M" || key == "BLOCK_SIZE_M" || key == "BM") m = size;
    if (key == "BLOCK_N" || key == "BLOCK_SIZE_N" || key == "BN") n = size;
    if (key == "BLOCK_K" || key == "BLOCK_SIZE_K" || key == "BK") k = size;
  }
  constexpr long long kLargest = 1 << 12;
  if (m <= 0 || n <= 0 || k <= 0 || m > kLargest || n > kLargest || k > kLargest) return 0;
  return (m + n) * k * operand_bytes * (stages - 1);
}

}  // namespace

void ApplyTriton(const JobInput& input, JobOutput* output) {
  const JobFile& file = input.file;
  const PortTarget& target = input.target;
  if (!file.is_python() || !UsesTriton(file)) return;
  const long long operand_bytes = OperandBytes(file);
  for (size_t i = 0; i < file.tokens().size(); ++i) {
    if (file.tokens()[i].kind != PythonTokenKind::kName) continue;
    const std::string_view name = file.Text(i);
    const uint32_t place = file.tokens()[i].begin;
    long long value = 0;
    const auto find = [&](FindingLevel level, std::string message, std::string action) {
      output->Find(file, place, level, "triton", std::move(message), std::move(action));
    };
    if (name == "num_warps" && KeywordValue(file, i, &value) && value > 0 && value < 1 << 20) {
      const long long threads = value * target.wave_size;
      if (threads > kThreadsOfABlock) {
        find(FindingLevel::kError,
             fmt::format("num_warps={} is {} threads with waves of {}; a block has at most {}", value, threads,
                         target.wave_size, kThreadsOfABlock),
             fmt::format("num_warps={}", kThreadsOfABlock / target.wave_size));
      } else if (value >= 8) {
        find(FindingLevel::kNote,
             fmt::format("num_warps={} is {} threads on {}, twice what it is with warps of 32", value, threads,
                         target.gfx),
             fmt::format("let the tuner try num_warps={} as well", value / 2));
      }
    } else if (name == "num_stages" && KeywordValue(file, i, &value) && value > kStagesOfAmd && value < 1 << 20) {
      const long long bytes = TileBytes(file, i, value, operand_bytes);
      if (bytes > 0 && 2 * bytes <= target.shared_memory_bytes) continue;  // two blocks a unit have room
      const bool much = bytes > 0 ? bytes > target.shared_memory_bytes : value >= 4;
      find(much ? FindingLevel::kWarning : FindingLevel::kNote,
           bytes > 0
               ? fmt::format("the tiles of {} stages take {} KiB in {} bits, of the {} KiB of LDS of a block of {}",
                             value, bytes / 1024, 8 * operand_bytes, target.shared_memory_bytes / 1024, target.gfx)
               : fmt::format("each of {} stages but one keeps its tiles in LDS, of which a block of {} has {} KiB",
                             value, target.gfx, target.shared_memory_bytes / 1024),
           fmt::format("num_stages={}, AMD's default, or let the tuner try it", kStagesOfAmd));
    } else if (name == "num_ctas" && KeywordValue(file, i, &value) && value > 1) {
      find(FindingLevel::kError, fmt::format("{} has no clusters of blocks", target.gfx), "num_ctas=1");
    } else if ((name == "num_consumer_groups" || name == "num_buffers_warp_spec" || name == "maxnreg") &&
               KeywordValue(file, i, &value)) {
      find(FindingLevel::kError, fmt::format("'{}' is an option of Triton's NVIDIA back end alone", name),
           "leave it out for AMD");
    } else if (name == "warp_specialize" && file.Reads(i + 1, {"=", "True"})) {
      find(FindingLevel::kWarning, fmt::format("{} has no warp specialisation: the loop runs as any other", target.gfx),
           "measure the plain loop, with another tile");
    } else if (name == "_experimental_descriptor_load" || name == "_experimental_descriptor_store" ||
               name == "_experimental_make_tensor_descriptor" || name == "create_2d_tma_descriptor" ||
               name == "create_1d_tma_descriptor") {
      find(FindingLevel::kError, fmt::format("'{}' needs NVIDIA's tensor memory accelerator", name),
           "tl.load and tl.store with pointers");
    } else if ((name == "make_tensor_descriptor" || name == "TensorDescriptor") && file.Text(i + 1) == "(") {
      find(FindingLevel::kNote,
           fmt::format("{} has no tensor memory accelerator: the descriptor becomes plain loads", target.gfx),
           "nothing; tune it again");
    } else if (name == "inline_asm_elementwise") {
      find(FindingLevel::kError, "the assembly is PTX", "Triton's own operations, or a version in AMDGPU assembly");
    } else if (name == "extra" && file.Reads(i + 1, {".", "cuda"})) {
      find(FindingLevel::kError, "triton.language.extra.cuda exists for NVIDIA alone",
           "triton.language.extra.libdevice chooses by target");
    }
  }
}

}  // namespace portolan
