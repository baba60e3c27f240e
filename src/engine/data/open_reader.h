#pragma once

#include <memory>

#include "base/yaml.h"
#include "engine/batch.h"
#include "engine/data/movie_tweetings.h"

namespace portolan {

// The reader that the `data:` section of a job describes, for a model that takes batches of `schema`; docs/data.md
// names the keys. File names are relative to the file of the section. The eval split is read once, in the order of its
// files. Errors: keys, files, and a description that does not fill the schema. Opening reads the files' headers (of
// movie_tweetings: everything).
Result<std::unique_ptr<Reader>> OpenReader(const YamlMap& data, const BatchSchema& schema,
                                           DataSplit split = DataSplit::kTrain);
// Whether the section describes an eval split.
Result<bool> HasEvalSplit(const YamlMap& data);

}  // namespace portolan
