#include "base/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace portolan {
namespace {

constexpr ErrorCode kAllCodes[] = {
    ErrorCode::kUsage,        ErrorCode::kNotFound,     ErrorCode::kParse,       ErrorCode::kInvalidValue,
    ErrorCode::kUnknownField, ErrorCode::kMissingField, ErrorCode::kUnsupported, ErrorCode::kIo};

TEST(ErrorTest, EveryCodeHasAnOwnNameAndAFailingExitCode) {
  std::vector<std::string> names;
  for (const ErrorCode code : kAllCodes) {
    EXPECT_EQ(std::count(names.begin(), names.end(), ErrorCodeName(code)), 0);
    names.emplace_back(ErrorCodeName(code));
    // 0 is an answer and 1 an answer found wrong: no error uses them.
    EXPECT_GE(ExitCode(code), 2);
  }
  EXPECT_EQ(ExitCode(ErrorCode::kInvalidValue), 2);
  EXPECT_EQ(ExitCode(ErrorCode::kIo), 3);
}

TEST(ErrorTest, FormatLeavesOutWhatIsUnknown) {
  EXPECT_EQ(FormatError({ErrorCode::kUsage, "message", "", 0, ""}), "message");
  EXPECT_EQ(FormatError({ErrorCode::kUsage, "message", "a.yaml", 0, ""}), "a.yaml: message");
  EXPECT_EQ(FormatError({ErrorCode::kUsage, "message", "a.yaml", 7, ""}), "a.yaml:7: message");
  EXPECT_EQ(FormatError({ErrorCode::kUsage, "message", "a.yaml", 7, "x[3].y"}), "a.yaml:7: x[3].y: message");
  EXPECT_EQ(FormatError({ErrorCode::kUsage, "message", "", 7, "x"}), "x: message");
}

Result<int> Half(int value) {
  if (value % 2 != 0) return MakeError(ErrorCode::kInvalidValue, "odd");
  return value / 2;
}

Result<int> Quarter(int value) {
  PORTOLAN_ASSIGN_OR_RETURN(const int half, Half(value));
  PORTOLAN_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

Status CheckEven(int value) {
  PORTOLAN_RETURN_IF_ERROR(Half(value));
  return {};
}

TEST(ErrorTest, MacrosPassValuesAndErrorsOn) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(6).error().message, "odd");
  EXPECT_TRUE(CheckEven(2));
  EXPECT_EQ(CheckEven(3).error().code, ErrorCode::kInvalidValue);
}

}  // namespace
}  // namespace portolan
