#include "engine/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace portolan {
namespace {

constexpr int64_t kMaxHeader = int64_t{100} << 20;  // the format's own limit
constexpr int64_t kChunk = int64_t{64} << 20;       // of one system call

tl::unexpected<Error> IoError(const std::string& path, const std::string& what) {
  return tl::make_unexpected(Error{ErrorCode::kIo, what, path, 0, {}});
}
tl::unexpected<Error> SystemError(const std::string& path, const char* what) {
  return IoError(path, fmt::format("{}: {}", what, std::strerror(errno)));
}
tl::unexpected<Error> NotSafetensors(const std::string& path, const std::string& what) {
  return tl::make_unexpected(Error{ErrorCode::kParse, "not a safetensors file: " + what, path, 0, {}});
}

int64_t ElementBytes(const std::string& dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "U8" || dtype == "I8" || dtype == "BOOL") return 1;
  return 0;
}

std::string ShowShape(const std::vector<int64_t>& shape) {
  std::vector<std::string> extents;
  for (const int64_t extent : shape) extents.push_back(std::to_string(extent));
  return "[" + Join(extents, ", ") + "]";
}

bool WriteAll(int descriptor, const char* data, int64_t bytes) {
  while (bytes > 0) {
    const ssize_t written = write(descriptor, data, static_cast<size_t>(std::min(bytes, kChunk)));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    data += written;
    bytes -= written;
  }
  return true;
}

bool ReadAll(int descriptor, int64_t offset, char* data, int64_t bytes) {
  while (bytes > 0) {
    const ssize_t count = pread(descriptor, data, static_cast<size_t>(std::min(bytes, kChunk)), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    data += count;
    offset += count;
    bytes -= count;
  }
  return true;
}

// A non-negative whole number of JSON, or -1.
int64_t Whole(const nlohmann::json& value) {
  if (!value.is_number_integer() && !value.is_number_unsigned()) return -1;
  if (value.is_number_unsigned() && value.get<uint64_t>() > (uint64_t{1} << 62)) return -1;
  return std::max<int64_t>(value.get<int64_t>(), -1);
}

}  // namespace

Status SyncFolder(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return SystemError(path, "cannot be opened");
  const int failed = fsync(descriptor);
  close(descriptor);
  if (failed != 0) return SystemError(path, "cannot be synchronised");
  return {};
}

Status WriteSafetensors(const std::string& path, const std::vector<TensorView>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + tensor.bytes}}};
    offset += tensor.bytes;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');  // tensors start aligned
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) return SystemError(path, "cannot be written");
  uint64_t length = text.size();
  bool good = WriteAll(descriptor, reinterpret_cast<const char*>(&length), sizeof length) &&
              WriteAll(descriptor, text.data(), static_cast<int64_t>(text.size()));
  for (size_t i = 0; good && i < tensors.size(); ++i) {
    good = WriteAll(descriptor, static_cast<const char*>(tensors[i].data), tensors[i].bytes);
  }
  good = good && fsync(descriptor) == 0;
  const int error = errno;
  if (close(descriptor) == 0 && good) return {};
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) unlink(path.c_str());
  errno = error;
  return SystemError(path, "cannot be written");
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      data_start_(other.data_start_),
      entries_(std::move(other.entries_)),
      metadata_(std::move(other.metadata_)) {}

SafetensorsFile::~SafetensorsFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  SafetensorsFile file;
  file.path_ = path;
  file.descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file.descriptor_ < 0) {
    if (errno == ENOENT) return tl::make_unexpected(Error{ErrorCode::kNotFound, "does not exist", path, 0, {}});
    return SystemError(path, "cannot be opened");
  }
  struct stat status {};
  if (fstat(file.descriptor_, &status) != 0) return SystemError(path, "cannot be read");
  if (!S_ISREG(status.st_mode)) return IoError(path, "is not a file");
  uint64_t length = 0;
  if (status.st_size < 8 || !ReadAll(file.descriptor_, 0, reinterpret_cast<char*>(&length), 8)) {
    return NotSafetensors(path, "shorter than 8 bytes");
  }
  if (length > static_cast<uint64_t>(std::min<int64_t>(kMaxHeader, status.st_size - 8))) {
    return NotSafetensors(path, fmt::format("a header of {} bytes does not fit", length));
  }
  std::string text(length, '\0');
  if (!ReadAll(file.descriptor_, 8, text.data(), static_cast<int64_t>(length)))
    return SystemError(path, "cannot be read");
  const nlohmann::json header = nlohmann::json::parse(text, nullptr, false);
  if (!header.is_object()) return NotSafetensors(path, "its header is not a JSON object");
  file.data_start_ = 8 + static_cast<int64_t>(length);
  const int64_t data_bytes = status.st_size - file.data_start_;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) return NotSafetensors(path, "__metadata__ is not an object");
      for (const auto& [key, item] : value.items()) {
        if (item.is_string()) file.metadata_[key] = item.get<std::string>();
      }
      continue;
    }
    const bool whole = value.is_object() && value.contains("dtype") && value["dtype"].is_string() &&
                       value.contains("shape") && value["shape"].is_array() && value.contains("data_offsets") &&
                       value["data_offsets"].is_array() && value["data_offsets"].size() == 2;
    if (!whole) return NotSafetensors(path, "tensor '" + name.substr(0, 80) + "' has no dtype, shape and data_offsets");
    Entry entry;
    entry.dtype = value["dtype"].get<std::string>();
    entry.begin = Whole(value["data_offsets"][0]);
    entry.end = Whole(value["data_offsets"][1]);
    int64_t bytes = ElementBytes(entry.dtype);
    bool good = bytes > 0 && entry.begin >= 0 && entry.end >= entry.begin && entry.end <= data_bytes;
    for (const nlohmann::json& extent : value["shape"]) {
      entry.shape.push_back(Whole(extent));
      good = good && entry.shape.back() >= 0 && !__builtin_mul_overflow(bytes, entry.shape.back(), &bytes);
    }
    if (!good || bytes != entry.end - entry.begin) {
      return NotSafetensors(
          path, "tensor '" + name.substr(0, 80) + "' has a size, dtype or place that does not fit the file");
    }
    file.entries_[name] = std::move(entry);
  }
  return file;
}

Status SafetensorsFile::Read(const TensorView& view) const {
  const auto found = entries_.find(view.name);
  if (found == entries_.end()) {
    return tl::make_unexpected(Error{ErrorCode::kNotFound, "has no tensor '" + view.name + "'", path_, 0, {}});
  }
  const Entry& entry = found->second;
  if (entry.dtype != view.dtype || entry.shape != view.shape) {
    return tl::make_unexpected(Error{ErrorCode::kInvalidValue,
                                     fmt::format("is {} {}, the model needs {} {}", entry.dtype, ShowShape(entry.shape),
                                                 view.dtype, ShowShape(view.shape)),
                                     path_, 0, view.name});
  }
  if (!ReadAll(descriptor_, data_start_ + entry.begin, static_cast<char*>(view.data), view.bytes)) {
    return SystemError(path_, "cannot be read");
  }
  return {};
}

}  // namespace portolan
