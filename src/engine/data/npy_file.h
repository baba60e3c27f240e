#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/input_file.h"

namespace portolan {

enum class ElementType { kInt32, kInt64, kFloat32, kFloat64 };
int64_t ElementBytes(ElementType type);
const char* ElementName(ElementType type);

// A two-dimensional array inside a file: little-endian, row-major.
struct ArrayInFile {
  std::string path;
  std::string member;  // of the zip archive; empty for a plain file
  int64_t offset = 0;  // of the first element, in bytes
  ElementType type = ElementType::kInt32;
  int64_t rows = 0, columns = 0;
};

// The header of NumPy's format 1.0, 2.0 and 3.0 (numpy/lib/format.py): magic, version, length, a Python dict with
// 'descr', 'fortran_order', 'shape'. `text` begins at the magic and holds the header whole. `data_offset`: where the
// elements begin in it. A one-dimensional array has one column. Errors: no npy, big-endian or other types, Fortran
// order, other shapes.
struct NpyHeader {
  ElementType type = ElementType::kInt32;
  int64_t rows = 0, columns = 0;
  int64_t data_offset = 0;
};
Result<NpyHeader> ParseNpyHeader(std::string_view text);
// No header may be longer; NumPy's own limit is 10,000 characters.
constexpr int64_t kMaxNpyHeaderBytes = 16 << 10;

// The array of a .npy file, or of `member` of a .npz file. Errors: as above, and a file too short for its shape.
Result<ArrayInFile> OpenNpy(const std::string& path);
Result<ArrayInFile> OpenNpzMember(const std::string& path, const std::string& member);

}  // namespace portolan
