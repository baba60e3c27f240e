#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace portolan {

// The safetensors format (github.com/huggingface/safetensors): u64 length of a JSON header, the header {name: {dtype,
// shape, data_offsets}, "__metadata__": {text: text}}, then the tensors, little-endian, C order, without holes.
struct TensorView {
  std::string name;
  std::string dtype;  // F32, F16, BF16, U8, I64
  std::vector<int64_t> shape;
  void* data = nullptr;  // host memory; only read when writing
  int64_t bytes = 0;
};

// Writes and fsyncs `path`; a file that cannot be completed (disk full) is removed again. Blocks.
Status WriteSafetensors(const std::string& path, const std::vector<TensorView>& tensors,
                        const std::map<std::string, std::string>& metadata);

// An open file: its header, checked against the file's size.
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> Open(const std::string& path);
  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;
  ~SafetensorsFile();

  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool Has(const std::string& name) const { return entries_.count(name) > 0; }
  // Empty where there is none of that name.
  std::vector<int64_t> Shape(const std::string& name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? std::vector<int64_t>{} : found->second.shape;
  }
  // Reads a tensor into view.data; its dtype and shape must be the view's. Errors name file and tensor.
  Status Read(const TensorView& view) const;

 private:
  struct Entry {
    std::string dtype;
    std::vector<int64_t> shape;
    int64_t begin = 0, end = 0;
  };
  SafetensorsFile() = default;
  std::string path_;
  int descriptor_ = -1;
  int64_t data_start_ = 0;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

// fsync of a folder, so that names made in it survive a crash.
Status SyncFolder(const std::string& path);

}  // namespace portolan
