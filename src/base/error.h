#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace portolan {

// Every way in which a user, a file or a device can make an answer impossible. Texts and exit codes: error.cc.
enum class ErrorCode {
  kUsage,         // a command line that cannot be understood
  kNotFound,      // a file, id or name that does not exist; the message lists what does
  kParse,         // a file that is not the format it should be
  kInvalidValue,  // a value outside its bounds, or of the wrong kind
  kUnknownField,  // a key that nothing reads
  kMissingField,  // a key that is required
  kUnsupported,   // well-formed, but Portolan does not model it
  kIo,            // reading or writing failed
};

struct Error {
  ErrorCode code = ErrorCode::kInvalidValue;
  std::string message;  // names the value and what would be accepted
  std::string file;     // empty when the value did not come from a file
  int line = 0;         // 1-based; 0 when unknown
  std::string field;    // dotted path, for example embeddings[3].rows
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

// Short name of a code, for example "invalid value".
const char* ErrorCodeName(ErrorCode code);
// Process exit code: 2 for what the user can mend (usage, names, values), 3 for the environment (I/O).
int ExitCode(ErrorCode code);
// One line: "file:line: field: message".
std::string FormatError(const Error& error);

inline tl::unexpected<Error> MakeError(ErrorCode code, std::string message) {
  return tl::make_unexpected(Error{code, std::move(message), {}, 0, {}});
}

}  // namespace portolan

// Returns the error of a Result or Status from the enclosing function.
#define PORTOLAN_RETURN_IF_ERROR(expression)                          \
  do {                                                                \
    auto portolan_status = (expression);                              \
    if (!portolan_status) {                                           \
      return tl::make_unexpected(std::move(portolan_status).error()); \
    }                                                                 \
  } while (false)

#define PORTOLAN_CONCAT_INNER(a, b) a##b
#define PORTOLAN_CONCAT(a, b) PORTOLAN_CONCAT_INNER(a, b)
// Declares or assigns `target` from a Result, or returns its error.
#define PORTOLAN_ASSIGN_OR_RETURN(target, expression) \
  PORTOLAN_ASSIGN_OR_RETURN_IMPL(PORTOLAN_CONCAT(portolan_result_, __LINE__), target, expression)
#define PORTOLAN_ASSIGN_OR_RETURN_IMPL(result, target, expression)    \
  auto result = (expression);                                         \
  if (!result) return tl::make_unexpected(std::move(result).error()); \
  target = std::move(*result)
