#pragma once

#include <string>
#include <vector>

#include "porting/source.h"

namespace portolan {

// Headers outside the project that its sources include, through "../other/x.h" or the -I folders of its Makefiles:
// programs of one collection share files so. `root` is the project's folder, `makefiles` the texts of its Makefiles.
// Paths are relative to `root`; a header that is not found, or found inside it, is not among them.
std::vector<std::string> OutsideHeaders(const std::string& root, const std::vector<std::string>& makefiles,
                                        const std::vector<const SourceFile*>& sources);

}  // namespace portolan
