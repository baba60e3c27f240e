#include "engine/data/line_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"

namespace portolan {
namespace {

// Stays in the second-level cache of every server core since 2017 (1 MiB and more), with room for what is parsed.
constexpr int64_t kBufferBytes = 256 << 10;
constexpr int64_t kSpareByte = 1;  // for the '\n' that the last line of a file may lack

// The first byte after a '\n' at or after `from`, or the file's size.
Result<int64_t> NextLineStart(const InputFile& file, int64_t from) {
  std::vector<char> block(64 << 10);
  while (from < file.size()) {
    PORTOLAN_ASSIGN_OR_RETURN(const int64_t read, file.ReadSome(from, std::ssize(block), block.data()));
    if (read == 0) break;
    const void* found = std::memchr(block.data(), '\n', static_cast<size_t>(read));
    if (found != nullptr) return from + (static_cast<const char*>(found) - block.data()) + 1;
    from += read;
  }
  return file.size();
}

}  // namespace

Result<SplitParts> SplitTextFiles(const std::vector<std::string>& paths, double eval_fraction) {
  PORTOLAN_CHECK(eval_fraction >= 0 && eval_fraction < 1, "a fraction of the data");
  SplitParts split;
  int64_t total = 0;
  for (const std::string& path : paths) {
    PORTOLAN_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
    split.train.push_back({path, 0, file.size()});
    total += file.size();
  }
  if (eval_fraction <= 0) return split;
  int64_t cut = total - std::min(total, static_cast<int64_t>(std::llround(eval_fraction * static_cast<double>(total))));
  const std::vector<FilePart> all = std::move(split.train);
  split.train.clear();
  for (const FilePart& part : all) {
    int64_t here = std::clamp<int64_t>(cut, 0, part.end);
    cut -= part.end;
    if (here > 0 && here < part.end) {
      PORTOLAN_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(part.path));
      PORTOLAN_ASSIGN_OR_RETURN(here, NextLineStart(file, here - 1));
    }
    if (here > 0) split.train.push_back({part.path, 0, here});
    if (here < part.end) split.eval.push_back({part.path, here, part.end});
  }
  return split;
}

LineSource::LineSource(std::vector<FilePart> parts)
    : parts_(std::move(parts)), buffer_(kBufferBytes + kSpareByte + 2 * kPadding) {}

Result<LineSource> LineSource::Open(std::vector<FilePart> parts) {
  for (const FilePart& part : parts) PORTOLAN_RETURN_IF_ERROR(InputFile::Open(part.path));
  LineSource source(std::move(parts));
  if (!source.parts_.empty()) PORTOLAN_RETURN_IF_ERROR(source.Seek(0, source.parts_[0].begin));
  return source;
}

Status LineSource::OpenPart() {
  file_.reset();
  if (part_ == std::ssize(parts_)) return {};
  PORTOLAN_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(parts_[part_].path));
  file_ = std::make_unique<InputFile>(std::move(file));
  return {};
}

Status LineSource::Seek(int64_t part, int64_t offset) {
  const bool end = part == std::ssize(parts_) && offset == 0;
  if (!end && (part < 0 || part >= std::ssize(parts_) || offset < parts_[part].begin || offset > parts_[part].end)) {
    return MakeError(ErrorCode::kInvalidValue, "the position lies outside the data files");
  }
  part_ = part;
  offset_ = read_to_ = offset;
  begin_ = end_ = whole_ = hidden_ = peeked_ = 0;
  overlong_ = false;
  return OpenPart();
}

Status LineSource::Fill() {
  char* const bytes = buffer_.data() + kPadding;
  std::memmove(bytes, bytes + begin_, static_cast<size_t>(end_ - begin_));
  end_ -= begin_;
  begin_ = whole_ = 0;
  const int64_t part_end = parts_[part_].end;
  while (true) {
    const int64_t capacity = std::ssize(buffer_) - 2 * kPadding - kSpareByte;
    const int64_t wanted = std::min(capacity - end_, part_end - read_to_);
    char* const to = buffer_.data() + kPadding + end_;
    PORTOLAN_RETURN_IF_ERROR(file_->ReadAt(read_to_, wanted, to));
    read_to_ += wanted;
    const void* last = memrchr(to, '\n', static_cast<size_t>(wanted));
    end_ += wanted;
    if (last != nullptr) {
      whole_ = static_cast<const char*>(last) - (buffer_.data() + kPadding) + 1;
      return {};
    }
    if (read_to_ == part_end) {  // the last line of the file has no end of its own
      if (end_ > 0) buffer_[kPadding + end_] = '\n';
      whole_ = end_ > 0 ? end_ + 1 : 0;
      return {};
    }
    if (end_ < kMaxLineBytes) {
      buffer_.resize(buffer_.size() + kBufferBytes);
      continue;
    }
    overlong_ = true;
    PORTOLAN_ASSIGN_OR_RETURN(int64_t next, NextLineStart(*file_, read_to_));
    next = std::min(next, part_end);
    hidden_ = next - read_to_;
    read_to_ = next;
    buffer_[kPadding + end_] = '\n';
    whole_ = end_ + 1;
    return {};
  }
}

Result<std::string_view> LineSource::Lines() {
  while (begin_ == whole_) {
    if (part_ == std::ssize(parts_)) return std::string_view();
    if (begin_ == end_ && read_to_ == parts_[part_].end) {
      const int64_t next = part_ + 1;
      PORTOLAN_RETURN_IF_ERROR(Seek(next, next < std::ssize(parts_) ? parts_[next].begin : 0));
      continue;
    }
    PORTOLAN_RETURN_IF_ERROR(Fill());
  }
  return std::string_view(buffer_.data() + kPadding + begin_, static_cast<size_t>(whole_ - begin_));
}

void LineSource::Advance(int64_t bytes) {
  PORTOLAN_CHECK(bytes >= 0 && bytes <= whole_ - begin_, "no more than Lines() gave");
  begin_ += bytes;
  if (begin_ > end_) begin_ = end_;  // past a '\n' that the file does not have
  offset_ = read_to_ - (end_ - begin_) - hidden_;
  if (begin_ == end_) {
    whole_ = begin_;
    offset_ = read_to_;
    hidden_ = 0;
    overlong_ = false;
  }
}

Result<bool> LineSource::Peek(std::string_view* line) {
  PORTOLAN_ASSIGN_OR_RETURN(const std::string_view lines, Lines());
  if (lines.empty()) return false;
  *line = lines.substr(0, lines.find('\n'));
  peeked_ = std::ssize(*line) + 1;
  if (line->ends_with('\r')) line->remove_suffix(1);
  return true;
}

void LineSource::Pass() { Advance(std::exchange(peeked_, 0)); }

Result<std::string> LineSource::FirstLineOfFile() const {
  std::string line(static_cast<size_t>(std::min(file_->size(), kMaxLineBytes)), '\0');
  PORTOLAN_RETURN_IF_ERROR(file_->ReadAt(0, std::ssize(line), line.data()));
  const size_t end = line.find('\n');
  if (end == std::string::npos && file_->size() > kMaxLineBytes) {
    return ErrorAtStartOfFile("the first line has more than 1 MiB; is this a table with a header?");
  }
  line.resize(std::min(end, line.size()));
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

tl::unexpected<Error> LineSource::ErrorAtStartOfFile(const std::string& message) const {
  return tl::make_unexpected(Error{ErrorCode::kParse, message, parts_[part_].path, 1, {}});
}

tl::unexpected<Error> LineSource::ErrorAt(int64_t ahead, ErrorCode code, const std::string& field,
                                          const std::string& message) const {
  Error error{code, message, parts_[part_].path, 0, field};
  std::vector<char> block(64 << 10);
  int64_t lines = 1;
  const int64_t to = offset_ + ahead;
  for (int64_t at = 0; at < to;) {
    const Result<int64_t> read = file_->ReadSome(at, std::min<int64_t>(std::ssize(block), to - at), block.data());
    if (!read || *read == 0) break;
    lines += std::count(block.begin(), block.begin() + *read, '\n');
    at += *read;
  }
  error.line = static_cast<int>(std::min<int64_t>(lines, std::numeric_limits<int>::max()));
  return tl::make_unexpected(std::move(error));
}

}  // namespace portolan
