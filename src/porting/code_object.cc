#include "porting/code_object.h"

#include <cxxabi.h>
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

namespace portolan {
namespace {

constexpr uint32_t kMetadataNote = 32;  // NT_AMDGPU_METADATA; LLVM, User Guide for AMDGPU Backend

template <typename T>
bool ReadAt(std::string_view bytes, uint64_t offset, T* value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(value, bytes.data() + offset, sizeof(T));
  return true;
}

bool Slice(std::string_view bytes, uint64_t offset, uint64_t size, std::string_view* part) {
  if (offset > bytes.size() || bytes.size() - offset < size) return false;
  *part = bytes.substr(offset, size);
  return true;
}

// A number of the metadata; 0 where it is missing or no number.
int64_t Number(const nlohmann::json& kernel, const char* key) {
  const auto found = kernel.find(key);
  return found != kernel.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

int Count(const nlohmann::json& kernel, const char* key) {
  return static_cast<int>(std::clamp<int64_t>(Number(kernel, key), 0, std::numeric_limits<int>::max()));
}

// "void scale<float>(float*, int)" is scale<float>.
std::string HumanName(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  if (status != 0 || text == nullptr) return symbol;
  std::string name = text.get();
  // The argument list is the last bracket at the outermost level.
  int depth = 0;
  size_t end = name.size();
  for (size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')' || name[i] == '>') ++depth;
    if (name[i] != '(' && name[i] != '<') continue;
    if (--depth == 0 && name[i] == '(') {
      end = i;
      break;
    }
  }
  name.resize(end);
  depth = 0;
  size_t begin = 0;  // behind the return type
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' || name[i] == '(') ++depth;
    if (name[i] == '>' || name[i] == ')') --depth;
    if (name[i] == ' ' && depth == 0) begin = i + 1;
  }
  return name.substr(begin);
}

Status ReadMetadata(std::string_view description, CodeObject* object) {
  const nlohmann::json metadata = nlohmann::json::from_msgpack(description.begin(), description.end(), true, false);
  if (!metadata.is_object()) return MakeError(ErrorCode::kParse, "the metadata of the code object are no map");
  const auto kernels = metadata.find("amdhsa.kernels");
  if (kernels == metadata.end() || !kernels->is_array()) return {};
  for (const nlohmann::json& kernel : *kernels) {
    if (!kernel.is_object()) continue;
    KernelResources resources;
    const auto name = kernel.find(".name");
    if (name != kernel.end() && name->is_string()) resources.symbol = name->get<std::string>();
    resources.name = HumanName(resources.symbol);
    resources.vector_registers = Count(kernel, ".vgpr_count");
    resources.accumulation_registers = Count(kernel, ".agpr_count");
    resources.scalar_registers = Count(kernel, ".sgpr_count");
    resources.vector_spills = Count(kernel, ".vgpr_spill_count");
    resources.scalar_spills = Count(kernel, ".sgpr_spill_count");
    resources.shared_bytes = std::max<int64_t>(0, Number(kernel, ".group_segment_fixed_size"));
    resources.scratch_bytes = std::max<int64_t>(0, Number(kernel, ".private_segment_fixed_size"));
    resources.largest_block = Count(kernel, ".max_flat_workgroup_size");
    const auto stack = kernel.find(".uses_dynamic_stack");
    resources.dynamic_stack = stack != kernel.end() && stack->is_boolean() && stack->get<bool>();
    object->kernels.push_back(std::move(resources));
  }
  return {};
}

// A note is three words (sizes of name and description, type), the name and the description, each padded to 4 bytes.
Status ReadNotes(std::string_view notes, CodeObject* object) {
  while (!notes.empty()) {
    Elf64_Nhdr header = {};
    if (!ReadAt(notes, 0, &header)) break;
    const uint64_t name_size = (uint64_t{header.n_namesz} + 3) / 4 * 4;
    const uint64_t description_size = (uint64_t{header.n_descsz} + 3) / 4 * 4;
    std::string_view name;
    std::string_view description;
    if (!Slice(notes, sizeof(header), header.n_namesz, &name) ||
        !Slice(notes, sizeof(header) + name_size, header.n_descsz, &description)) {
      return MakeError(ErrorCode::kParse, "a note of the code object reaches past its section");
    }
    if (header.n_type == kMetadataNote && name.substr(0, 6) == "AMDGPU") {
      PORTOLAN_RETURN_IF_ERROR(ReadMetadata(description, object));
    }
    notes.remove_prefix(std::min<uint64_t>(notes.size(), sizeof(header) + name_size + description_size));
  }
  return {};
}

void ReadUndefined(std::string_view symbols, std::string_view strings, CodeObject* object) {
  std::set<std::string> undefined;
  for (uint64_t at = sizeof(Elf64_Sym); at < symbols.size(); at += sizeof(Elf64_Sym)) {
    Elf64_Sym symbol = {};
    if (!ReadAt(symbols, at, &symbol)) break;
    if (symbol.st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) == STB_WEAK || symbol.st_name >= strings.size()) {
      continue;
    }
    const std::string_view rest = strings.substr(symbol.st_name);
    const std::string_view name = rest.substr(0, rest.find('\0'));
    if (!name.empty()) undefined.emplace(name);
  }
  object->undefined.assign(undefined.begin(), undefined.end());
}

}  // namespace

Result<CodeObject> ReadCodeObject(std::string_view bytes) {
  Elf64_Ehdr header = {};
  if (!ReadAt(bytes, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_shentsize != sizeof(Elf64_Shdr)) {
    return MakeError(ErrorCode::kParse, "not a code object: no 64-bit little-endian ELF header");
  }
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  for (size_t i = 0; i < sections.size(); ++i) {
    const uint64_t place = i * sizeof(Elf64_Shdr);
    if (header.e_shoff > bytes.size() || !ReadAt(bytes, header.e_shoff + place, &sections[i])) {
      return MakeError(ErrorCode::kParse, "the section table of the code object reaches past its end");
    }
  }
  CodeObject object;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_NOTE && section.sh_type != SHT_SYMTAB) continue;
    std::string_view content;
    if (!Slice(bytes, section.sh_offset, section.sh_size, &content)) {
      return MakeError(ErrorCode::kParse, "a section of the code object reaches past its end");
    }
    if (section.sh_type == SHT_NOTE) {
      PORTOLAN_RETURN_IF_ERROR(ReadNotes(content, &object));
    } else if (section.sh_link < sections.size()) {
      const Elf64_Shdr& strings = sections[section.sh_link];
      std::string_view names;
      if (Slice(bytes, strings.sh_offset, strings.sh_size, &names)) ReadUndefined(content, names, &object);
    }
  }
  return object;
}

}  // namespace portolan
