#pragma once

#include <memory>
#include <string>

#include "base/yaml.h"
#include "engine/batch.h"

namespace portolan {

// {type: batches, file: F}: the batches that `portolan train --export-batches F` (or another program) wrote, over and
// over. Checked against the schema when it is opened; held in memory. A batch larger than asked for is cut to the
// size asked for.
Result<std::unique_ptr<Reader>> OpenReplay(const YamlValue& data, const BatchSchema& schema);

}  // namespace portolan
