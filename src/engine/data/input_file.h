#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace portolan {

// A regular file that is read by place. It is read, never mapped: a file that somebody truncates while it is read gives
// an error, not a signal.
class InputFile {
 public:
  // Errors: not found, a folder or device, no permission, empty, a gzip or zstd file (named as such).
  static Result<InputFile> Open(const std::string& path);

  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }  // bytes, when it was opened
  // Reads exactly `bytes` at `offset`. Error: I/O, or the file has become shorter.
  Status ReadAt(int64_t offset, int64_t bytes, char* to) const;
  // Reads up to `bytes` at `offset`; fewer only at the end of the file. Returns their number.
  Result<int64_t> ReadSome(int64_t offset, int64_t bytes, char* to) const;

 private:
  InputFile(std::string path, int descriptor, int64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

  std::string path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

// Bytes [begin, end) of a file.
struct FilePart {
  std::string path;
  int64_t begin = 0;
  int64_t end = 0;
};

}  // namespace portolan
