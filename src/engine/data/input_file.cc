#include "engine/data/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace portolan {
namespace {

tl::unexpected<Error> FileError(ErrorCode code, std::string message, const std::string& path) {
  return tl::make_unexpected(Error{code, std::move(message), path, 0, {}});
}

// First bytes of compressed files: RFC 1952 section 2.3.1 and RFC 8878 section 3.1.1.
constexpr unsigned char kGzip[] = {0x1f, 0x8b};
constexpr unsigned char kZstd[] = {0x28, 0xb5, 0x2f, 0xfd};

}  // namespace

Result<InputFile> InputFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return FileError(ErrorCode::kNotFound, "no such file", path);
    return FileError(ErrorCode::kIo, fmt::format("cannot be opened: {}", std::strerror(errno)), path);
  }
  InputFile file(path, descriptor, 0);
  struct stat status;
  if (fstat(descriptor, &status) != 0) return FileError(ErrorCode::kIo, "cannot be examined", path);
  if (S_ISDIR(status.st_mode)) return FileError(ErrorCode::kIo, "is a folder, not a file", path);
  if (!S_ISREG(status.st_mode)) return FileError(ErrorCode::kIo, "is not a regular file", path);
  if (status.st_size == 0) return FileError(ErrorCode::kParse, "is empty", path);
  file.size_ = status.st_size;
  char head[4] = {};
  PORTOLAN_ASSIGN_OR_RETURN(const int64_t read, file.ReadSome(0, sizeof(head), head));
  if (read >= 2 && std::memcmp(head, kGzip, sizeof(kGzip)) == 0) {
    return FileError(ErrorCode::kUnsupported, "is gzip-compressed; unpack it first (gunzip)", path);
  }
  if (read >= 4 && std::memcmp(head, kZstd, sizeof(kZstd)) == 0) {
    return FileError(ErrorCode::kUnsupported, "is zstd-compressed; unpack it first (unzstd)", path);
  }
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<int64_t> InputFile::ReadSome(int64_t offset, int64_t bytes, char* to) const {
  int64_t done = 0;
  while (done < bytes) {
    const ssize_t read = pread(descriptor_, to + done, static_cast<size_t>(bytes - done), offset + done);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return FileError(ErrorCode::kIo, fmt::format("reading failed: {}", std::strerror(errno)), path_);
    if (read == 0) break;
    done += read;
  }
  return done;
}

Status InputFile::ReadAt(int64_t offset, int64_t bytes, char* to) const {
  PORTOLAN_ASSIGN_OR_RETURN(const int64_t read, ReadSome(offset, bytes, to));
  if (read == bytes) return {};
  return FileError(ErrorCode::kIo,
                   fmt::format("ends at byte {}, where {} more were expected", offset + read, bytes - read), path_);
}

}  // namespace portolan
