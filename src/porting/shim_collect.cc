// What a project needs of a shim: one pass over the tokens of each source. The names come from the tables that rewrite
// mode uses (names.inc, headers.inc, compat.cc); what a macro cannot say in the place of a name is left to
// ShimFindings.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <unordered_map>

#include "porting/compat.h"
#include "porting/port.h"
#include "porting/rules/fp8.h"
#include "porting/rules/textures.h"
#include "porting/rules/transitive_includes.h"
#include "porting/shim.h"

namespace portolan {
namespace {

struct Wrapper {
  std::string_view text;
  std::string_view part;
};

// Functions that keep their arguments and change their meaning, so that an alias does not do.
const std::unordered_map<std::string_view, Wrapper>& Wrappers() {
  static const auto* wrappers = new std::unordered_map<std::string_view, Wrapper>{
      {"cudaFuncSetAttribute", {"portolan::func_set_attribute", "kernel_pointer"}},
      {"cudaFuncSetCacheConfig", {"portolan::func_set_cache_config", "kernel_pointer"}},
      {"cudaFuncSetSharedMemConfig", {"portolan::func_set_shared_mem_config", "kernel_pointer"}},
      {"cudaFuncGetAttributes", {"portolan::func_get_attributes", "kernel_pointer"}},
      {"cudaMemPrefetchAsync", {"portolan::mem_prefetch_async", "memory_location"}},
      {"cudaMemAdvise", {"portolan::mem_advise", "memory_location"}},
      {"cudaMemLocationTypeHost", {"portolan::kMemLocationTypeHost", "memory_location"}},
      {"cudaMemLocationTypeHostNuma", {"portolan::kMemLocationTypeHostNuma", "memory_location"}},
      {"cudaMemLocationTypeHostNumaCurrent", {"portolan::kMemLocationTypeHostNumaCurrent", "memory_location"}},
  };
  return *wrappers;
}

// Names that the shim defines in a way of its own.
bool IsShimMacro(std::string_view name) {
  constexpr std::array<std::string_view, 9> kNames = {"__CUDA_ARCH__", "__CUDACC__",           "__NVCC__",
                                                      "CUDA_VERSION",  "CUDART_VERSION",       "__grid_constant__",
                                                      "__nv_pure__",   "__CUDACC_VER_MAJOR__", "__CUDACC_VER_MINOR__"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::string_view FileName(std::string_view path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

// Whether a file of this name can be made below the shim's folder.
bool IsFileName(std::string_view name) {
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && std::string_view("_-+./").find(c) == std::string_view::npos) return false;
  }
  return !name.empty() && name.front() != '/' && name.back() != '/' && name.find("..") == std::string_view::npos &&
         name.find("//") == std::string_view::npos;
}

bool OfRocm(std::string_view header) {
  for (const std::string_view folder : {"hip/", "hipcub/", "rocprim/", "hiprand/", "rocrand/", "rocwmma/", "thrust/"}) {
    if (StartsWith(header, folder)) return true;
  }
  return false;
}

class Collector {
 public:
  Collector(const RuleInput& input, Shim* shim, std::vector<ShimNeed>* needs)
      : input_(input), source_(input.source), shim_(shim), needs_(needs) {}

  void Run() {
    for (size_t i = 0; i < source_.size(); ++i) {
      if (input_.IsDead(i)) continue;
      if (source_.tokens()[i].kind == TokenKind::kHash && source_.Is(i + 1, "include")) Include(i);
      if (source_.IsIdentifier(i)) Name(i);
    }
    for (const std::string_view macro : AssumedBuildMacros(source_)) Macro(0, std::string(macro));
    for (const DeviceFunction& function : source_.device_functions()) OwnAtomic(function);
    MoreOfThrust();
  }

 private:
  void Need(size_t token, std::string what) {
    needs_->push_back({std::move(what), source_.path(),
                       token < source_.size() ? source_.PositionOf(source_.tokens()[token].begin) : Position()});
  }

  void Alias(size_t token, std::string_view name, std::string text) {
    if (shim_->aliases.emplace(std::string(name), std::move(text)).second) Need(token, "name " + std::string(name));
  }
  void Part(size_t token, std::string_view part) {
    if (shim_->parts.emplace(part).second) Need(token, "part " + std::string(part));
  }
  void Macro(size_t token, const std::string& name) {
    if (shim_->macros.insert(name).second) Need(token, "macro " + name);
  }
  ShimHeader& Header(size_t token, std::string_view name) {
    const auto [it, added] = shim_->headers.emplace(std::string(name), ShimHeader());
    if (added) Need(token, "header " + std::string(name));
    return it->second;
  }

  void Include(size_t hash) {
    const size_t i = hash + 2;
    if (i >= source_.size()) return;
    const TokenKind kind = source_.tokens()[i].kind;
    const std::string_view spelled = source_.Text(i);
    if ((kind != TokenKind::kHeaderName && kind != TokenKind::kString) || spelled.size() < 3) return;
    const std::string_view name = spelled.substr(1, spelled.size() - 2);
    if (!IsFileName(name)) return;
    if (kind == TokenKind::kString && input_.project.file_names.count(FileName(name)) > 0) return;
    if (name == "cooperative_groups/reduce.h") {
      ShimHeader& header = Header(i, name);
      header.hip = "hip/hip_cooperative_groups.h";
      header.parts.insert("cg_reduce");
      Part(i, "warp_shuffle");
      return;
    }
    if (name == "mma.h") {
      ShimHeader& header = Header(i, name);
      header.hip = "rocwmma/rocwmma.hpp";
      header.epilogs.insert("wmma");
      return;
    }
    const NameMapping mapping = MapHeader(name);
    if (mapping.fate == NameFate::kMapped) {
      ShimHeader& header = Header(i, name);
      header.hip = mapping.text;
      if (StartsWith(mapping.text, "hipcub/")) header.epilogs.insert("cub");
      if (StartsWith(mapping.text, "thrust/system/hip")) header.epilogs.insert("thrust_cuda");
    } else if (OfRocm(name)) {
      ShimHeader& header = Header(i, name);
      header.hip = name;
      header.next = true;
    }
  }

  void Name(size_t i) {
    const std::string_view name = source_.Text(i);
    if (name.size() < 3 || input_.project.own_names.count(name) > 0) return;
    if (i > 0 && (source_.Is(i - 1, ".") || source_.Is(i - 1, "->"))) return;
    if (name == "register") {
      if (source_.IsIdentifier(i + 1) && !source_.tokens()[i].in_directive) Macro(i, "register");
      return;
    }
    if (IsShimMacro(name)) {
      if (!source_.Is(i - 1, "define")) Macro(i, std::string(name));
      return;
    }
    if (name == "__launch_bounds__") {
      const auto arguments = source_.Arguments(i + 1);
      if (arguments.size() < 2 || source_.LivenessOf(i) == Liveness::kHipOnly) return;
      Macro(i, "__launch_bounds__");
      Part(i, "launch_bounds");
      return;
    }
    if (name == "warpSize") {
      const bool device = source_.EnclosingDeviceFunction(i) != nullptr || source_.tokens()[i].in_directive;
      if (device && source_.LivenessOf(i) != Liveness::kHipOnly && !source_.Is(i - 1, "::")) Macro(i, "warpSize");
      return;
    }
    if (name == "cuda" && i >= 2 && source_.Is(i - 1, "::") &&
        (source_.Is(i - 2, "thrust") || source_.Is(i - 2, "system"))) {
      Macro(i, "thrust::cuda");
      return;
    }
    if (name == "cub" && source_.Is(i + 1, "::") &&
        (source_.Is(i + 2, "WarpReduce") || source_.Is(i + 2, "WarpScan"))) {
      Macro(i, "cub::" + std::string(source_.Text(i + 2)));
      return;
    }
    if (const auto wrapper = Wrappers().find(name); wrapper != Wrappers().end()) {
      Alias(i, name, std::string(wrapper->second.text));
      Part(i, wrapper->second.part);
      return;
    }
    if (std::string texture = SoftwareTexture(name, input_.target); !texture.empty()) {
      if (source_.LivenessOf(i) == Liveness::kHipOnly || (!source_.Is(i + 1, "(") && !source_.Is(i + 1, "<"))) return;
      Alias(i, name, std::move(texture));
      Part(i, "texture");
      return;
    }
    const std::string_view part = CompatPartOf(name);
    if (!part.empty()) {
      if (source_.LivenessOf(i) == Liveness::kHipOnly) return;
      if (!StartsWith(name, "__") && !source_.Is(i + 1, "(")) return;
      if (source_.Is(i - 1, "::") && source_.IsIdentifier(i - 2)) return;  // of another namespace
      Alias(i, name, "portolan::" + std::string(name.substr(name.find_first_not_of('_'))));
      Part(i, part);
      return;
    }
    if (const std::string fp8 = HipFp8Name(name, input_.target); !fp8.empty()) {
      Alias(i, name, fp8);
      return;
    }
    const NameMapping mapping = MapName(name);
    if (mapping.fate != NameFate::kMapped || mapping.text == name) return;
    const bool of_hip = StartsWith(mapping.text, "hip") || StartsWith(mapping.text, "HIP");
    if (of_hip && input_.declarations.found() && !input_.declarations.Has(mapping.text)) return;
    Alias(i, name, mapping.text);
    if ((name == "cudaGetErrorString" || name == "cudaGetErrorName") && source_.EnclosingDeviceFunction(i) != nullptr) {
      Part(i, "device_runtime");
    }
  }

  // The first header of Thrust's that a source includes brings those that CUDA's includes by the way.
  void MoreOfThrust() {
    const ThrustIncludes includes = FindThrustIncludes(input_);
    if (includes.missing.empty()) return;
    const std::string_view spelled = source_.Text(includes.first + 2);
    const std::string_view name = spelled.substr(1, spelled.size() - 2);
    if (!IsFileName(name)) return;
    const auto header = shim_->headers.find(name);
    if (header == shim_->headers.end()) return;
    for (const std::string& missing : includes.missing) {
      std::string extra = missing.substr(1, missing.size() - 2);
      if (header->second.extras.insert(extra).second) Need(includes.first, fmt::format("extra {} {}", name, extra));
    }
  }

  // A project's own atomicMax(float *, float) and the like: HIP's become templates, which lose against them.
  void OwnAtomic(const DeviceFunction& function) {
    if (input_.IsDead(function.name_token) || source_.LivenessOf(function.name_token) == Liveness::kHipOnly) return;
    for (const char* name : {"atomicAdd", "atomicMax", "atomicMin"}) {
      if (function.name == name) Macro(function.name_token, name);
    }
  }

  const RuleInput& input_;
  const SourceFile& source_;
  Shim* shim_;
  std::vector<ShimNeed>* needs_;
};

}  // namespace

void CollectShim(const RuleInput& input, Shim* shim, std::vector<ShimNeed>* needs) {
  Collector(input, shim, needs).Run();
}

namespace {

std::string CopyHead(const std::string& path) {
  return fmt::format("// Generated by Portolan: clang compiles this in the place of {} (overlay.yaml).", path);
}

}  // namespace

std::string LeftKey(const Finding& finding) {
  std::string file = finding.file;
  for (char& c : file) c = static_cast<unsigned char>(c) < ' ' ? '?' : c;  // it stands in a comment
  return fmt::format("{} in {}", finding.kind, file);
}

bool IsLeft(const Finding& finding) {
  return !StartsWith(finding.action, "shim:") && finding.level != FindingLevel::kNote;
}

std::vector<Finding> ShimFindings(const RuleInput& input, Shim* shim, std::vector<ShimNeed>* needs) {
  // Rules whose repairs need the source itself.
  constexpr std::array<std::string_view, 4> kNeedTheSource = {"inline-ptx", "dependent-template", "vector-operator",
                                                              "half-conversion"};
  const SourceFile& source = input.source;
  RuleOutput output;
  RuleOutput copied;
  for (const PortingRule& rule : AllPortingRules()) {
    const bool needs_source = std::find(kNeedTheSource.begin(), kNeedTheSource.end(), rule.id) != kNeedTheSource.end();
    rule.apply(input, needs_source ? &copied : &output);
  }
  const auto add_part = [&](const std::string& part) {
    if (shim->parts.insert(part).second) needs->push_back({"part " + part, source.path(), {}});
  };
  for (const std::string& part : output.compat) {
    // These stand for what the shim does with macros, or in a forwarding header.
    if (part == "cuda_arch" || part == "cuda_version" || part == "warp_size" || part == "cg_reduce") continue;
    add_part(part);
  }
  for (Finding& finding : output.findings) {
    if (!StartsWith(finding.action, "port:")) continue;
    finding.action.replace(0, 5, "shim:");
    if (finding.kind == "missing-launch-bounds") {
      finding.action = "no shim can do this: write " + finding.action.substr(6) + " at the kernel";
    } else if (finding.kind == "launch-bounds") {
      finding.action = "shim: its __launch_bounds__ converts blocks a unit to waves a SIMD";
    } else if (finding.kind == "atomic-overload") {
      finding.action = "shim: HIP's become templates, which the project's own function beats";
    }
  }
  const bool copies = !copied.edits.empty() && IsFileName(source.path());
  if (copies) {
    for (const std::string& part : copied.compat) add_part(part);
    std::string text = ApplyEdits(source.text(), std::move(copied.edits));
    if (StartsWith(text, "\xEF\xBB\xBF")) text.erase(0, 3);
    // Diagnostics go on to name the source.
    shim->copies[source.path()] =
        fmt::format("{0}\n#line 1 \"{1}\"\n{2}", CopyHead(source.path()), source.path(), text);
  }
  for (Finding& finding : copied.findings) {
    if (!StartsWith(finding.action, "port:")) continue;
    finding.action = copies ? "shim: compiled from a changed copy of the file (overlay.yaml)"
                            : "no shim can do this: change the source, or port without --shim-only";
  }
  std::move(copied.findings.begin(), copied.findings.end(), std::back_inserter(output.findings));
  for (const Finding& finding : output.findings) {
    if (IsLeft(finding)) ++shim->left[LeftKey(finding)];
  }
  std::stable_sort(output.findings.begin(), output.findings.end(), [](const Finding& a, const Finding& b) {
    return std::pair(a.position.line, a.position.column) < std::pair(b.position.line, b.position.column);
  });
  return std::move(output.findings);
}

}  // namespace portolan
