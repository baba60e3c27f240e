// Any bytes as training data: the first byte picks the format and the policy, the rest is the file. The reader ends;
// what it gives lies within the schema; and from a position in the middle it gives the same again.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/open_reader.h"
#include "fuzz_file.h"

namespace portolan {
namespace {

constexpr int64_t kRows = 50;
constexpr int64_t kBatch = 5;

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz_data: %s\n", what);
  std::abort();
}

BatchSchema Schema(int64_t dense, const std::vector<std::string>& features) {
  BatchSchema schema;
  schema.dense_width = dense;
  for (const std::string& name : features) schema.features.push_back({name, kRows});
  return schema;
}

BatchSchema CriteoSchema() {
  std::vector<std::string> names;
  for (int i = 1; i <= 26; ++i) names.push_back("C" + std::to_string(i));
  return Schema(13, names);
}

struct Case {
  std::string section;  // FILE stands for the file
  BatchSchema schema;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"{format: criteo_tsv, files: [FILE]", CriteoSchema()},
      {"{format: criteo_tsv, files: [FILE], ids: exact, transform: signed_log1p, shuffle: {window: 7}", CriteoSchema()},
      {"{format: csv, files: [FILE], columns: [{name: l, kind: label}, {name: d, kind: dense, transform: log1p},"
       " {name: a, kind: categorical}, {name: b, kind: multi_hot, ids: hash}]",
       Schema(1, {"a", "b"})},
      {"{format: csv, files: [FILE], header: false, separator: \";\", columns: [{name: l, kind: label, threshold: 3},"
       " {name: a, kind: categorical, ids: modulo, digits: hexadecimal}]",
       Schema(0, {"a"})},
      {"{format: npy, files: [{labels: FILE, dense: FILE, sparse: FILE}]", Schema(1, {"a"})},
      {"{format: npy, files: [{labels: LABELS, sparse: FILE.npz}]", Schema(0, {"a"})},
      {"{format: dlrm_binary, files: [FILE]", Schema(1, {"a"})},
      {"{format: hugectr_raw, files: [FILE], hotness: [2, 0]", Schema(1, {"a", "b"})},
      {"{format: movie_tweetings, files: [FILE], movies: FILE, dense: [hour, weekday, year]",
       Schema(3, {"user", "item", "genres"})},
  };
  return cases;
}

constexpr const char* kPolicies[] = {
    "}",
    ", policy: {missing: clamp, negative: clamp, bad_value: clamp, out_of_range: clamp, bad_line: clamp}}",
    ", policy: {missing: skip, negative: skip, bad_value: skip, out_of_range: skip, bad_line: skip}}",
    (", eval_fraction: 0.4, policy: {missing: clamp, negative: clamp, bad_value: skip, out_of_range: clamp, bad_line: "
     "skip}}"),
};

void Check(const Batch& batch, const BatchSchema& schema) {
  const int64_t bags = batch.size * std::ssize(schema.features);
  Require(batch.size >= 1 && batch.size <= kBatch, "size");
  Require(std::ssize(batch.labels) == batch.size, "labels");
  Require(std::ssize(batch.dense) == batch.size * schema.dense_width, "dense");
  Require(std::ssize(batch.offsets) == bags + 1 && batch.offsets[0] == 0, "offsets");
  Require(batch.offsets[bags] == std::ssize(batch.ids), "the last offset");
  Require(std::is_sorted(batch.offsets.begin(), batch.offsets.end()), "order of offsets");
  for (const int64_t id : batch.ids) Require(id >= 0 && id < kRows, "id");
  for (const float x : batch.dense) Require(std::isfinite(x), "dense value");
  for (const float label : batch.labels) Require(label >= 0 && label <= 1, "label");
}

void Replace(std::string* text, const std::string& what, const std::string& with) {
  for (size_t at = text->find(what); at != std::string::npos; at = text->find(what, at + with.size())) {
    text->replace(at, what.size(), with);
  }
}

// Seven labels that an archive's arrays can agree with.
const FuzzFile& Labels() {
  static const FuzzFile file("labels.npy");
  static const bool written = [] {
    std::string text("\x93NUMPY\x01\x00\x76\x00", 10);
    text += "{'descr': '<i4', 'fortran_order': False, 'shape': (7,), }";
    text.resize(128, ' ');
    text.resize(128 + 7 * 4, '\0');
    file.Write(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    return true;
  }();
  Require(written, "labels");
  return file;
}

void Read(const Case& tested, const char* policy, const std::string& path) {
  std::string section = tested.section + policy;
  Replace(&section, "LABELS", Labels().path());
  Replace(&section, "FILE", path);
  const auto value = YamlValue::Parse(section, "");
  Require(value.has_value(), "the section");
  const auto map = value->Map();
  const auto reader = OpenReader(*map, tested.schema);
  if (!reader) {
    Require(!reader.error().message.empty(), "a silent error");
    return;
  }
  std::string middle;
  std::vector<Batch> batches;
  while (true) {
    Batch batch;
    const auto outcome = (*reader)->Next(kBatch, &batch);
    if (!outcome) {
      Require(batch.size == 0 && !outcome.error().message.empty(), "an error with samples or without a text");
      break;
    }
    if (*outcome == ReadOutcome::kEnd) break;
    Check(batch, tested.schema);
    if (batches.empty()) middle = (*reader)->Position();
    batches.push_back(std::move(batch));
    if (batches.size() > 1000) break;  // npy of no columns: many samples in few bytes
  }
  if (batches.size() < 2) return;
  Require((*reader)->Restore(middle).has_value(), "restore");
  Batch again;
  Require((*reader)->Next(kBatch, &again).has_value(), "after restore");
  Require(again.ids == batches[1].ids && again.labels == batches[1].labels && again.dense == batches[1].dense &&
              again.offsets == batches[1].offsets,
          "another batch after restore");
}

}  // namespace
}  // namespace portolan

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const portolan::FuzzFile file("data");
  static const portolan::FuzzFile archive("data.npz");
  if (size < 2) return 0;
  const auto& cases = portolan::Cases();
  const auto& tested = cases[data[0] % cases.size()];
  file.Write(data + 1, size - 1);
  if (tested.section.find(".npz") != std::string::npos) archive.Write(data + 1, size - 1);
  portolan::Read(tested, portolan::kPolicies[data[0] / cases.size() % std::size(portolan::kPolicies)], file.path());
  return 0;
}
