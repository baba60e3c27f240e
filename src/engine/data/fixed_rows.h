#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/batch.h"
#include "engine/data/npy_file.h"
#include "engine/data/sample_source.h"
#include "engine/data/value_map.h"

namespace portolan {

// Where a value of one sample lies: `width` elements at byte `offset` of the sample's row in array `array`.
struct FixedField {
  int array = 0;
  int64_t offset = 0;
  ElementType type = ElementType::kInt32;
  int64_t width = 1;
};

// Rows of one size in a file, from byte `offset`.
struct FixedArray {
  std::string path;
  int64_t offset = 0;
  int64_t row_bytes = 0;
};

// Samples whose values lie at fixed places of one or several arrays: little-endian binary files and npy.
struct FixedLayout {
  struct Part {
    std::vector<FixedArray> arrays;  // sample i is row i of each
    int64_t begin = 0, end = 0;      // samples
  };
  std::vector<Part> parts;
  FixedField label, dense;           // dense: width = the schema's
  std::vector<FixedField> features;  // width = ids a sample
};

struct FixedOptions {
  DenseTransform transform = DenseTransform::kNone;
  IdRule ids = IdRule::kExact;
};

// facebookresearch/dlrm's CriteoBinDataset: rows of int32 label, dense values, one id a feature; [N, 40] for Criteo.
// Errors: files, and a size that is no multiple of the row's.
Result<FixedLayout> DlrmBinaryLayout(const std::vector<std::string>& paths, const BatchSchema& schema);
// HugeCTR's Raw format: rows of label (int32 or float32), float32 dense values, int32 ids, `hotness[f]` of them for
// feature f; 912 bytes for MLPerf's DLRM-DCNv2.
Result<FixedLayout> HugeCtrRawLayout(const std::vector<std::string>& paths, const BatchSchema& schema,
                                     ElementType label, const std::vector<int64_t>& hotness);
// TorchRec's and MLPerf's arrays of a day: labels [N] or [N, 1], dense [N, dense width], sparse either a .npy [N,
// features] or a .npz of stored members 0.npy, 1.npy ... [N, ids of the feature].
struct NpyDay {
  std::string labels, dense, sparse;
};
Result<FixedLayout> NpyLayout(const std::vector<NpyDay>& days, const BatchSchema& schema);

// Leaves the first 1 - `eval_fraction` of the samples in `layout` and returns the rest.
FixedLayout SplitLayout(FixedLayout* layout, double eval_fraction);

// Columns label, dense0, dense1 ..., and the features by name.
PolicyBook FixedRowPolicies(const BatchSchema& schema);
Result<std::unique_ptr<SampleSource>> OpenFixedRows(FixedLayout layout, const FixedOptions& options,
                                                    const BatchSchema& schema, PolicyBook policies);

}  // namespace portolan
