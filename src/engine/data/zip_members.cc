#include "engine/data/zip_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/data/shown_field.h"

namespace portolan {
namespace {

// Signatures and fixed sizes, APPNOTE sections as in the header.
constexpr uint32_t kEndSignature = 0x06054b50, kEnd64Signature = 0x06064b50, kLocator64Signature = 0x07064b50;
constexpr uint32_t kCentralSignature = 0x02014b50, kLocalSignature = 0x04034b50;
constexpr int64_t kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20, kCentralBytes = 46, kLocalBytes = 30;
constexpr int64_t kMaxCommentBytes = 65535;
constexpr uint64_t kInExtraField = 0xffffffff;  // the value stands in the zip64 extra field
constexpr uint16_t kZip64Extra = 1;
// An npz of this project's formats has tens of members; a directory of more bytes is a mistake.
constexpr uint64_t kMaxDirectoryBytes = 16 << 20;

template <typename T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

class ZipReader {
 public:
  explicit ZipReader(const InputFile& file) : file_(file), size_(static_cast<uint64_t>(file.size())) {}

  Result<std::vector<ZipMember>> Read() {
    PORTOLAN_RETURN_IF_ERROR(FindDirectory());
    std::string directory(directory_bytes_, '\0');
    PORTOLAN_RETURN_IF_ERROR(
        file_.ReadAt(static_cast<int64_t>(directory_offset_), std::ssize(directory), directory.data()));
    std::vector<ZipMember> members;
    for (size_t at = 0; at < directory.size();) {
      PORTOLAN_ASSIGN_OR_RETURN(ZipMember member, ReadEntry(directory, &at));
      members.push_back(std::move(member));
    }
    return members;
  }

 private:
  tl::unexpected<Error> Fail(const std::string& message, ErrorCode code = ErrorCode::kParse) const {
    return tl::make_unexpected(Error{code, message, file_.path(), 0, {}});
  }

  Status FindDirectory() {
    if (file_.size() < kEndBytes) return Fail("is not a zip archive (npz): too short");
    const int64_t tail_bytes = std::min(file_.size(), kEndBytes + kMaxCommentBytes);
    std::string tail(static_cast<size_t>(tail_bytes), '\0');
    PORTOLAN_RETURN_IF_ERROR(file_.ReadAt(file_.size() - tail_bytes, tail_bytes, tail.data()));
    int64_t end = tail_bytes - kEndBytes;
    while (end >= 0 && Load<uint32_t>(tail.data() + end) != kEndSignature) --end;
    if (end < 0) return Fail("is not a zip archive (npz), or its end is missing");
    directory_bytes_ = Load<uint32_t>(tail.data() + end + 12);
    directory_offset_ = Load<uint32_t>(tail.data() + end + 16);
    const int64_t locator = file_.size() - tail_bytes + end - kLocator64Bytes;
    char bytes[kEnd64Bytes];
    if (locator >= 0) {
      PORTOLAN_RETURN_IF_ERROR(file_.ReadAt(locator, kLocator64Bytes, bytes));
      if (Load<uint32_t>(bytes) == kLocator64Signature) {
        const uint64_t end64 = Load<uint64_t>(bytes + 8);
        if (end64 > size_ - kEnd64Bytes) return Fail("zip64: the end of the directory lies outside the file");
        PORTOLAN_RETURN_IF_ERROR(file_.ReadAt(static_cast<int64_t>(end64), kEnd64Bytes, bytes));
        if (Load<uint32_t>(bytes) != kEnd64Signature) return Fail("zip64: no end of the directory where it should be");
        directory_bytes_ = Load<uint64_t>(bytes + 40);
        directory_offset_ = Load<uint64_t>(bytes + 48);
      }
    }
    if (directory_offset_ > size_ || directory_bytes_ > size_ - directory_offset_) {
      return Fail("zip: the directory lies outside the file (cut off?)");
    }
    if (directory_bytes_ > kMaxDirectoryBytes) return Fail("zip: the directory is larger than 16 MiB");
    return {};
  }

  Result<ZipMember> ReadEntry(const std::string& directory, size_t* at) const {
    const char* entry = directory.data() + *at;
    const size_t left = directory.size() - *at;
    if (left < kCentralBytes || Load<uint32_t>(entry) != kCentralSignature) return Fail("zip: damaged directory");
    const uint16_t flags = Load<uint16_t>(entry + 8);
    const uint16_t method = Load<uint16_t>(entry + 10);
    uint64_t packed = Load<uint32_t>(entry + 20);
    uint64_t size = Load<uint32_t>(entry + 24);
    const size_t name_bytes = Load<uint16_t>(entry + 28);
    const size_t extra_bytes = Load<uint16_t>(entry + 30);
    const size_t comment_bytes = Load<uint16_t>(entry + 32);
    uint64_t header = Load<uint32_t>(entry + 42);
    const size_t entry_bytes = kCentralBytes + name_bytes + extra_bytes + comment_bytes;
    if (left < entry_bytes) return Fail("zip: damaged directory");
    ZipMember member;
    member.name.assign(entry + kCentralBytes, name_bytes);
    const std::string shown = "member '" + ShownField(member.name) + "'";
    const char* extra = entry + kCentralBytes + name_bytes;
    const char* const extra_end = extra + extra_bytes;
    while (extra_end - extra >= 4) {
      const uint16_t kind = Load<uint16_t>(extra);
      const char* value = extra + 4;
      const char* const value_end = value + Load<uint16_t>(extra + 2);
      if (value_end > extra_end) return Fail(shown + ": damaged extra field");
      if (kind == kZip64Extra) {  // only the values that do not fit, in this order
        for (uint64_t* number : {&size, &packed, &header}) {
          if (*number != kInExtraField) continue;
          if (value_end - value < 8) return Fail(shown + ": the zip64 field is too short");
          *number = Load<uint64_t>(value);
          value += 8;
        }
      }
      extra = value_end;
    }
    *at += entry_bytes;
    if ((flags & 1) != 0) return Fail(shown + " is encrypted", ErrorCode::kUnsupported);
    if (method != 0) {
      return Fail(fmt::format("{} is compressed (zip method {}); write it with numpy.savez, not savez_compressed",
                              shown, method),
                  ErrorCode::kUnsupported);
    }
    if (packed != size) return Fail(fmt::format("{}: stored, but {} bytes become {}", shown, packed, size));
    if (header > size_ || size_ - header < kLocalBytes) return Fail(shown + " lies outside the file");
    char local[kLocalBytes];
    PORTOLAN_RETURN_IF_ERROR(file_.ReadAt(static_cast<int64_t>(header), kLocalBytes, local));
    if (Load<uint32_t>(local) != kLocalSignature) return Fail(shown + " does not begin where the directory says");
    const uint64_t begin = header + kLocalBytes + Load<uint16_t>(local + 26) + Load<uint16_t>(local + 28);
    if (begin > size_ || size > size_ - begin) {
      return Fail(fmt::format("{}: {} bytes at byte {} lie outside the file of {}", shown, size, begin, size_));
    }
    member.offset = static_cast<int64_t>(begin);
    member.size = static_cast<int64_t>(size);
    return member;
  }

  const InputFile& file_;
  uint64_t size_;
  uint64_t directory_offset_ = 0, directory_bytes_ = 0;
};

}  // namespace

Result<std::vector<ZipMember>> ReadZipMembers(const InputFile& file) { return ZipReader(file).Read(); }

}  // namespace portolan
