#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/input_file.h"

namespace portolan {

// A member of a zip archive that lies in it uncompressed.
struct ZipMember {
  std::string name;
  int64_t offset = 0;  // of its bytes in the file
  int64_t size = 0;
};

// The members of a zip archive (PKWARE APPNOTE 6.3: end of central directory 4.3.16, zip64 4.3.14 and 4.3.15, central
// directory 4.3.12, local header 4.3.7). Errors: no zip, a compressed or encrypted member (by name), sizes and places
// that contradict each other or the file.
Result<std::vector<ZipMember>> ReadZipMembers(const InputFile& file);

}  // namespace portolan
