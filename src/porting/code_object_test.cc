#include "porting/code_object.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

namespace portolan {
namespace {

// An ELF file with a note section, a symbol table and its strings, as LLVM lays it out.
std::string MakeObject(const nlohmann::json& metadata) {
  const std::vector<uint8_t> packed = nlohmann::json::to_msgpack(metadata);
  std::string note;
  const Elf64_Nhdr header = {7, static_cast<Elf64_Word>(packed.size()), 32};
  note.append(reinterpret_cast<const char*>(&header), sizeof(header));
  note.append("AMDGPU\0\0", 8);
  note.append(reinterpret_cast<const char*>(packed.data()), packed.size());
  while (note.size() % 4 != 0) note.push_back('\0');
  const std::string strings("\0external\0inside\0", 17);
  std::string symbols(sizeof(Elf64_Sym), '\0');
  Elf64_Sym symbol = {};
  symbol.st_name = 1;
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE);
  symbols.append(reinterpret_cast<const char*>(&symbol), sizeof(symbol));
  symbol.st_name = 10;
  symbol.st_shndx = 1;
  symbols.append(reinterpret_cast<const char*>(&symbol), sizeof(symbol));
  Elf64_Ehdr elf = {};
  std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
  elf.e_ident[EI_CLASS] = ELFCLASS64;
  elf.e_ident[EI_DATA] = ELFDATA2LSB;
  elf.e_shentsize = sizeof(Elf64_Shdr);
  elf.e_shnum = 4;
  elf.e_shoff = sizeof(elf);
  std::array<Elf64_Shdr, 4> sections = {};
  uint64_t at = sizeof(elf) + sizeof(sections);
  const auto place = [&](size_t index, uint32_t type, const std::string& content) {
    sections[index].sh_type = type;
    sections[index].sh_offset = at;
    sections[index].sh_size = content.size();
    at += content.size();
  };
  place(1, SHT_NOTE, note);
  place(2, SHT_SYMTAB, symbols);
  sections[2].sh_link = 3;
  place(3, SHT_STRTAB, strings);
  std::string bytes(reinterpret_cast<const char*>(&elf), sizeof(elf));
  bytes.append(reinterpret_cast<const char*>(sections.data()), sizeof(sections));
  return bytes + note + symbols + strings;
}

nlohmann::json OneKernel() {
  return {{"amdhsa.kernels",
           {{{".name", "_Z5scaleIfEvPfi"},
             {".vgpr_count", 42},
             {".agpr_count", 8},
             {".sgpr_count", 20},
             {".vgpr_spill_count", 3},
             {".group_segment_fixed_size", 1024},
             {".private_segment_fixed_size", 16},
             {".max_flat_workgroup_size", 256},
             {".uses_dynamic_stack", true}}}}};
}

TEST(CodeObject, ReadsWhatTheNotesSay) {
  const auto object = ReadCodeObject(MakeObject(OneKernel()));
  ASSERT_TRUE(object) << object.error().message;
  ASSERT_EQ(object->kernels.size(), 1u);
  const KernelResources& kernel = object->kernels[0];
  EXPECT_EQ(kernel.symbol, "_Z5scaleIfEvPfi");
  EXPECT_EQ(kernel.name, "scale<float>");
  EXPECT_EQ(kernel.vector_registers, 42);
  EXPECT_EQ(kernel.accumulation_registers, 8);
  EXPECT_EQ(kernel.scalar_registers, 20);
  EXPECT_EQ(kernel.vector_spills, 3);
  EXPECT_EQ(kernel.shared_bytes, 1024);
  EXPECT_EQ(kernel.scratch_bytes, 16);
  EXPECT_EQ(kernel.largest_block, 256);
  EXPECT_TRUE(kernel.dynamic_stack);
  EXPECT_EQ(object->undefined, std::vector<std::string>{"external"});
}

TEST(CodeObject, OddMetadataIsNoCrash) {
  nlohmann::json odd = OneKernel();
  odd["amdhsa.kernels"][0][".vgpr_count"] = -5;
  odd["amdhsa.kernels"][0][".sgpr_count"] = "many";
  odd["amdhsa.kernels"].push_back(7);
  const auto object = ReadCodeObject(MakeObject(odd));
  ASSERT_TRUE(object);
  ASSERT_EQ(object->kernels.size(), 1u);
  EXPECT_EQ(object->kernels[0].vector_registers, 0);
  EXPECT_EQ(object->kernels[0].scalar_registers, 0);
  EXPECT_FALSE(ReadCodeObject(MakeObject(nlohmann::json::array({1, 2}))));
  EXPECT_TRUE(ReadCodeObject(MakeObject(nlohmann::json::object())));
}

// Law: every beginning of a file, and every file with one byte changed, is read or refused, never a crash.
TEST(CodeObject, CutAndDamagedFilesAreRefusedOrRead) {
  const std::string whole = MakeObject(OneKernel());
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto object = ReadCodeObject(std::string_view(whole).substr(0, size));
    EXPECT_TRUE(size >= sizeof(Elf64_Ehdr) || !object) << size;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {0x80, 0xff, 0x01}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      (void)ReadCodeObject(damaged);
    }
  }
}

}  // namespace
}  // namespace portolan
