#include "base/error.h"

#include <array>

#include "base/check.h"

namespace portolan {
namespace {

struct ErrorRow {
  ErrorCode code;
  const char* name;
  int exit_code;
};

// The one table of codes, texts and exit codes. Exit 0: an answer (also "does not fit"); 1: an answer that a check
// found wrong (`validate`, `verify`); 2: the user's input; 3: the environment; an aborted process is our own bug.
constexpr std::array kErrors = {
    ErrorRow{ErrorCode::kUsage, "usage", 2},
    ErrorRow{ErrorCode::kNotFound, "not found", 2},
    ErrorRow{ErrorCode::kParse, "parse error", 2},
    ErrorRow{ErrorCode::kInvalidValue, "invalid value", 2},
    ErrorRow{ErrorCode::kUnknownField, "unknown field", 2},
    ErrorRow{ErrorCode::kMissingField, "missing field", 2},
    ErrorRow{ErrorCode::kUnsupported, "unsupported", 2},
    ErrorRow{ErrorCode::kIo, "input/output", 3},
};

const ErrorRow& Row(ErrorCode code) {
  for (const ErrorRow& row : kErrors) {
    if (row.code == code) return row;
  }
  PORTOLAN_CHECK(false, "error code without a row");
}

}  // namespace

const char* ErrorCodeName(ErrorCode code) { return Row(code).name; }
int ExitCode(ErrorCode code) { return Row(code).exit_code; }

std::string FormatError(const Error& error) {
  std::string text;
  if (!error.file.empty()) {
    text += error.file;
    if (error.line > 0) text += ":" + std::to_string(error.line);
    text += ": ";
  }
  if (!error.field.empty()) text += error.field + ": ";
  return text + error.message;
}

}  // namespace portolan
