#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/input_file.h"

namespace portolan {

// The lines of several files, one after another, through one buffer.
class LineSource {
 public:
  // A longer line is reported as overlong and passed over: the longest Criteo line is below 500 bytes, and a reader
  // must not take memory for whatever a damaged file calls a line.
  static constexpr int64_t kMaxLineBytes = 1 << 20;
  // Bytes around Lines() that may be read (but mean nothing), so that a parser can load whole words.
  static constexpr int64_t kPadding = 64;

  // Every part begins at the start of a line. Opens the first file; errors as InputFile::Open, for each file.
  static Result<LineSource> Open(std::vector<FilePart> parts);

  // Whole lines from the place where the source stands, each ending in '\n' (the last line of a file too, even when the
  // file has none); empty at the end. Valid until the next call. At least one line, all of one file.
  Result<std::string_view> Lines();
  // True when Lines() is the beginning of one line that is longer than kMaxLineBytes.
  bool overlong() const { return overlong_; }
  // Passes over the first `bytes` of Lines(): whole lines.
  void Advance(int64_t bytes);
  // The first of Lines() without its end (LF or CRLF); false at the end of all files.
  Result<bool> Peek(std::string_view* line);
  // Passes over the line that Peek gave.
  void Pass();

  // Where Lines() begins: the file's index in `parts` and the byte in it.
  int64_t part() const { return part_; }
  int64_t offset() const { return offset_; }
  bool AtStartOfFile() const { return offset_ == 0; }
  Status Seek(int64_t part, int64_t offset);
  // The first line of the file at hand, without its end, wherever the source stands: a table's header. Error: longer
  // than kMaxLineBytes.
  Result<std::string> FirstLineOfFile() const;
  tl::unexpected<Error> ErrorAtStartOfFile(const std::string& message) const;

  // An error at byte `ahead` of Lines(), with file and line. Reads the file up to there to count lines: only a faulty
  // line pays for its number.
  tl::unexpected<Error> ErrorAt(int64_t ahead, ErrorCode code, const std::string& field,
                                const std::string& message) const;

 private:
  explicit LineSource(std::vector<FilePart> parts);
  Status OpenPart();
  Status Fill();

  std::vector<FilePart> parts_;
  std::unique_ptr<InputFile> file_;
  std::vector<char> buffer_;  // kPadding, lines, kPadding
  int64_t begin_ = 0;         // in buffer_, after the padding: unread bytes [begin_, end_)
  int64_t end_ = 0;
  int64_t whole_ = 0;  // the end of the last whole line
  int64_t part_ = 0;
  int64_t offset_ = 0;   // in the file, of begin_
  int64_t read_to_ = 0;  // in the file, of end_
  int64_t hidden_ = 0;   // bytes of the overlong line that the buffer does not hold
  int64_t peeked_ = 0;   // bytes that Pass passes over
  bool overlong_ = false;
};

// Parts for all of `paths`, and, when `eval_fraction` > 0, for the two sides of a cut that leaves the last
// `eval_fraction` of the bytes behind it, moved to the next start of a line. Errors as InputFile::Open.
struct SplitParts {
  std::vector<FilePart> train, eval;
};
Result<SplitParts> SplitTextFiles(const std::vector<std::string>& paths, double eval_fraction);

}  // namespace portolan
