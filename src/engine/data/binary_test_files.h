#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace portolan {

// The bytes of `values`, one after another, little-endian.
template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// A .npy file of format 1.0, padded as NumPy does.
inline std::string NpyText(const std::string& descr, const std::string& shape, const std::string& data,
                           const std::string& fortran = "False") {
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran, shape);
  dict.append(63 - (10 + dict.size()) % 64, ' ');
  dict += '\n';
  const uint16_t length = static_cast<uint16_t>(dict.size());
  return std::string("\x93NUMPY\x01\x00", 8) + BytesOf<uint16_t>({length}) + dict + data;
}

// A zip archive of stored members; `method` is what the headers claim. With zip64 the sizes and places stand in extra
// fields, as in archives of more than 4 GiB.
struct ZipTextOptions {
  uint16_t method = 0;
  enum class Sizes { k32, k64 } sizes = Sizes::k32;
  uint32_t claimed_extra_bytes = 0;  // added to the size of every member in the directory
};
inline std::string ZipText(const std::vector<std::pair<std::string, std::string>>& members,
                           ZipTextOptions options = {}) {
  std::string text, directory;
  const bool wide = options.sizes == ZipTextOptions::Sizes::k64;
  const auto put16 = [](std::string* to, uint16_t value) { *to += BytesOf<uint16_t>({value}); };
  const auto put32 = [](std::string* to, uint32_t value) { *to += BytesOf<uint32_t>({value}); };
  for (const auto& [name, data] : members) {
    const uint32_t size = static_cast<uint32_t>(data.size()) + options.claimed_extra_bytes;
    const uint64_t offset = text.size();
    const uint16_t name_bytes = static_cast<uint16_t>(name.size());
    put32(&text, 0x04034b50);
    for (const uint16_t value : {uint16_t{20}, uint16_t{0}, options.method, uint16_t{0}, uint16_t{0}})
      put16(&text, value);
    for (const uint32_t value : {uint32_t{0}, size, size}) put32(&text, value);
    put16(&text, name_bytes);
    put16(&text, 4);  // an extra field of the local header alone, as aligned archives have
    text += name + std::string(4, '\0') + data;
    put32(&directory, 0x02014b50);
    for (const uint16_t value : {uint16_t{20}, uint16_t{20}, uint16_t{0}, options.method, uint16_t{0}, uint16_t{0}}) {
      put16(&directory, value);
    }
    put32(&directory, 0);
    put32(&directory, wide ? 0xffffffff : size);
    put32(&directory, wide ? 0xffffffff : size);
    put16(&directory, name_bytes);
    put16(&directory, wide ? 28 : 0);
    for (int i = 0; i < 3; ++i) put16(&directory, 0);
    put32(&directory, 0);
    put32(&directory, wide ? 0xffffffff : static_cast<uint32_t>(offset));
    directory += name;
    if (wide) {
      put16(&directory, 1);
      put16(&directory, 24);
      directory += BytesOf<uint64_t>({size, size, offset});
    }
  }
  const uint64_t begin = text.size();
  const uint64_t bytes = directory.size();
  text += directory;
  if (wide) {
    const uint64_t end64 = text.size();
    put32(&text, 0x06064b50);
    text += BytesOf<uint64_t>({44});
    text += std::string(12, '\0') + BytesOf<uint64_t>({members.size(), members.size(), bytes, begin});
    put32(&text, 0x07064b50);
    put32(&text, 0);
    text += BytesOf<uint64_t>({end64});
    put32(&text, 1);
  }
  put32(&text, 0x06054b50);
  for (int i = 0; i < 2; ++i) put16(&text, 0);
  for (int i = 0; i < 2; ++i) put16(&text, static_cast<uint16_t>(members.size()));
  put32(&text, wide ? 0xffffffff : static_cast<uint32_t>(bytes));
  put32(&text, wide ? 0xffffffff : static_cast<uint32_t>(begin));
  put16(&text, 0);
  return text;
}

}  // namespace portolan
