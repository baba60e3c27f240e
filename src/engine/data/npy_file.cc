#include "engine/data/npy_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "engine/data/shown_field.h"
#include "engine/data/zip_members.h"

namespace portolan {
namespace {

struct NamedElement {
  ElementType type;
  const char* name;
  const char* descr;  // NumPy's
  int64_t bytes;
};
constexpr NamedElement kElements[] = {{ElementType::kInt32, "int32", "<i4", 4},
                                      {ElementType::kInt64, "int64", "<i8", 8},
                                      {ElementType::kFloat32, "float32", "<f4", 4},
                                      {ElementType::kFloat64, "float64", "<f8", 8}};
constexpr std::string_view kMagic("\x93NUMPY", 6);

tl::unexpected<Error> Fail(const std::string& message, ErrorCode code = ErrorCode::kParse) {
  return MakeError(code, message);
}

// What follows "'key':" in the header's dict, without blanks; empty when the key is not there.
std::string_view AfterKey(std::string_view dict, std::string_view key) {
  const std::string quoted = fmt::format("'{}'", key);
  const size_t at = dict.find(quoted);
  if (at == std::string_view::npos) return {};
  dict.remove_prefix(at + quoted.size());
  const size_t value = dict.find_first_not_of(": ");
  return value == std::string_view::npos ? std::string_view() : dict.substr(value);
}

// The numbers of "(4, 3)", "(4,)" or "()"; false on anything else.
bool ParseShape(std::string_view text, std::vector<long long>* shape) {
  const size_t close = text.find(')');
  if (!text.starts_with('(') || close == std::string_view::npos) return false;
  std::string inside(text.substr(1, close - 1));
  std::erase(inside, ' ');
  if (inside.ends_with(',')) inside.pop_back();
  if (inside.empty()) return true;
  for (const std::string& word : Split(inside, ',')) {
    if (!ParseInt64(word, &shape->emplace_back())) return false;
  }
  return true;
}

// Names the file and member in an error of ParseNpyHeader.
Error Placed(Error error, const std::string& path, const std::string& member) {
  error.file = path;
  if (!member.empty()) error.message = fmt::format("member '{}': {}", member, error.message);
  return error;
}

Result<ArrayInFile> ReadArray(const InputFile& file, const std::string& member, int64_t offset, int64_t bytes) {
  std::string head(static_cast<size_t>(std::min(bytes, kMaxNpyHeaderBytes)), '\0');
  PORTOLAN_RETURN_IF_ERROR(file.ReadAt(offset, std::ssize(head), head.data()));
  const Result<NpyHeader> header = ParseNpyHeader(head);
  if (!header) return tl::make_unexpected(Placed(header.error(), file.path(), member));
  const int64_t room = bytes - header->data_offset;
  const int64_t row_bytes = header->columns * ElementBytes(header->type);  // both bounded by ParseNpyHeader
  if (row_bytes > 0 && header->rows > room / row_bytes) {
    return tl::make_unexpected(
        Placed(Fail(fmt::format("is cut off: [{}, {}] of {} takes {} bytes a row, and {} bytes follow the header",
                                header->rows, header->columns, ElementName(header->type), row_bytes, room))
                   .value(),
               file.path(), member));
  }
  return ArrayInFile{file.path(), member, offset + header->data_offset, header->type, header->rows, header->columns};
}

}  // namespace

int64_t ElementBytes(ElementType type) { return kElements[static_cast<size_t>(type)].bytes; }
const char* ElementName(ElementType type) { return kElements[static_cast<size_t>(type)].name; }

Result<NpyHeader> ParseNpyHeader(std::string_view text) {
  if (!text.starts_with(kMagic) || text.size() < 10) return Fail("is not a npy file");
  const int version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3) return Fail(fmt::format("npy version {}; known: 1, 2, 3", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (text.size() < 8 + length_bytes) return Fail("is not a npy file: cut off");
  uint32_t length = 0;
  std::memcpy(&length, text.data() + 8, length_bytes);
  const size_t begin = 8 + length_bytes;
  if (length > text.size() - begin)
    return Fail(fmt::format("the npy header of {} bytes is cut off or too long", length));
  const std::string_view dict = text.substr(begin, length);

  NpyHeader header;
  header.data_offset = static_cast<int64_t>(begin + length);
  std::string_view descr = AfterKey(dict, "descr");
  if (!descr.starts_with('\'')) return Fail("the npy header has no simple 'descr'");
  descr = descr.substr(1, descr.find('\'', 1) == std::string_view::npos ? 0 : descr.find('\'', 1) - 1);
  const auto* element = std::find_if(std::begin(kElements), std::end(kElements),
                                     [&](const NamedElement& row) { return descr == row.descr; });
  if (element == std::end(kElements)) {
    return Fail(fmt::format("elements of type '{}'; accepted: <i4, <i8, <f4, <f8", ShownField(descr)),
                ErrorCode::kUnsupported);
  }
  header.type = element->type;
  const std::string_view order = AfterKey(dict, "fortran_order");
  if (!order.starts_with("False") && !order.starts_with("True")) return Fail("the npy header has no 'fortran_order'");
  std::vector<long long> shape;
  if (!ParseShape(AfterKey(dict, "shape"), &shape)) return Fail("the npy header has no readable 'shape'");
  if (shape.empty() || shape.size() > 2) {
    return Fail(fmt::format("an array of {} dimensions; accepted: 1 or 2", shape.size()), ErrorCode::kUnsupported);
  }
  header.rows = shape[0];
  header.columns = shape.size() == 2 ? shape[1] : 1;
  // One sample's values of one array: Criteo's largest has 214.
  constexpr int64_t kMaxColumns = 1 << 20;
  if (header.rows < 0 || header.columns < 0 || header.columns > kMaxColumns) {
    return Fail(fmt::format("shape ({}, {}); at most {} columns", header.rows, header.columns, kMaxColumns));
  }
  if (order.starts_with("True") && header.columns > 1 && header.rows > 1) {
    return Fail("is in Fortran order; save numpy.ascontiguousarray(x)", ErrorCode::kUnsupported);
  }
  return header;
}

Result<ArrayInFile> OpenNpy(const std::string& path) {
  PORTOLAN_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  return ReadArray(file, "", 0, file.size());
}

Result<ArrayInFile> OpenNpzMember(const std::string& path, const std::string& member) {
  PORTOLAN_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  PORTOLAN_ASSIGN_OR_RETURN(const std::vector<ZipMember> members, ReadZipMembers(file));
  std::vector<std::string> names;
  for (const ZipMember& entry : members) {
    if (entry.name == member || entry.name == member + ".npy") {
      return ReadArray(file, entry.name, entry.offset, entry.size);
    }
    names.push_back(ShownField(entry.name));
  }
  if (names.size() > 30) names.resize(30);
  return tl::make_unexpected(Error{ErrorCode::kNotFound,
                                   fmt::format("has no member '{}.npy'; there are: {}", member, Join(names, ", ")),
                                   path,
                                   0,
                                   {}});
}

}  // namespace portolan
