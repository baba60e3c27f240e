#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/batch.h"
#include "engine/data/line_source.h"
#include "engine/data/sample_source.h"
#include "engine/data/value_map.h"

namespace portolan {

// Criteo's click logs (Kaggle 2014 train.txt; 1TB day_0 .. day_23): TAB-separated lines without a header,
//   label I1 .. I13 C1 .. C26
// label 0 or 1, I whole numbers (empty: missing; may be negative), C 1 to 8 hexadecimal digits (empty: missing).
inline constexpr int64_t kCriteoDense = 13;
inline constexpr int64_t kCriteoCategories = 26;

struct CriteoOptions {
  std::vector<FilePart> parts;
  DenseTransform transform = DenseTransform::kLog1p;
  IdRule ids = IdRule::kModulo;  // kModulo or kHash or kExact, of the hexadecimal number
};

// Columns label, I1 .. I13, C1 .. C26. The format itself has missing fields and negative counts, so that for these the
// policy is kClamp unless told otherwise (missing: 0 and id 0, negative: 0); everything else is an error.
PolicyBook CriteoPolicies();

// Error: a schema without 13 dense values and 26 features; files as LineSource::Open.
Result<std::unique_ptr<SampleSource>> OpenCriteoTsv(const CriteoOptions& options, const BatchSchema& schema,
                                                    PolicyBook policies);

}  // namespace portolan
