#pragma once

#include <string_view>

namespace portolan {

// What a shim's header says of itself, for ReadShim.
constexpr std::string_view kShimAliasMark = "// Names.";   // a line; behind it every #define is a name of CUDA's
constexpr std::string_view kShimLeftMark = "// Left: ";    // ... COUNT KIND in FILE
constexpr std::string_view kShimMacroMark = "// Macro: ";  // ... NAME
constexpr const char* kShimOffName = "portolan/off.h";
constexpr std::string_view kShimCopyFolder = "copies/";
constexpr const char* kShimOverlayName = "overlay.yaml";
constexpr const char* kShimOnName = "portolan/on.h";

}  // namespace portolan
