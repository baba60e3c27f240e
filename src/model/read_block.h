#pragma once

#include <string>

#include "base/yaml.h"
#include "model/model.h"

namespace portolan {

// Bounds that the whole model file shares.
inline constexpr Range kWidth{1, 1e7};
inline constexpr Range kTokens{1e-3, 1e8};

// The fields of one block of type `type` (a name that BlockTypeName gives); `place` is the block, for messages.
Result<BlockBody> ReadBlockBody(const std::string& type, YamlMap& map, const YamlValue& place);

// Layers of a block; 1 where the type has none.
int64_t LayersOf(const BlockBody& body);

}  // namespace portolan
