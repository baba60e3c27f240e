#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/yaml.h"

namespace portolan {

// How a hardware number came to be known.
enum class FactKind {
  kDatasheet,  // the vendor publishes it
  kMeasured,   // a micro-benchmark of this device; never a training step
  kDerived,    // arithmetic on other facts; the source says which
  kAssumed,    // a stated guess
};

// One number with its provenance. In YAML: {value: 8.0e12, kind: datasheet, source: "...", date: 2026-11-30}.
struct Fact {
  double value = 0.0;
  FactKind kind = FactKind::kAssumed;
  std::string source;
  std::string date;  // ISO 8601: when the source was read or the measurement made
};

const char* FactKindName(FactKind kind);
// Reads the map above. A missing or empty source, an unknown kind or a value outside `range` is an error.
Result<Fact> ReadFact(const YamlValue& value, Range range);

}  // namespace portolan
