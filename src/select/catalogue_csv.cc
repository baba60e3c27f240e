#include "select/catalogue_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "select/all_families.h"

namespace portolan {
namespace {

constexpr IntegerBounds kSize{1, int64_t{1} << 40};
constexpr size_t kMostGroups = 65536;
constexpr std::pair<const char*, GemmEpilogue> kEpilogues[] = {
    {"none", GemmEpilogue::kNone},
    {"bias", GemmEpilogue::kBias},
    {"bias_activation", GemmEpilogue::kBiasActivation},
    {"activation_gradient", GemmEpilogue::kActivationGradient},
    {"add", GemmEpilogue::kAdd}};
constexpr const char* kLayoutNames[] = {"TN", "NN", "NT"};

DType ReadDType(CsvRow& row, const std::string& column, DType fallback) {
  if (!row.Has(column)) return fallback;
  const std::string name = row.Text(column, "");
  const auto dtype = ParseTableDType(name);
  if (!dtype) row.Fail(column, fmt::format("'{}' is no number format; known: {}", name, Join(DTypeNames(), ", ")));
  return dtype.value_or(fallback);
}

void ReadTypes(CsvRow& row, GemmProblem* p) {
  const DType main = row.Has("dtype") ? ReadDType(row, "dtype", DType::kBf16) : ReadDType(row, "type", DType::kBf16);
  const bool eight_bits = SizeOf(main).value <= 1.2;
  const DType stored = main == DType::kTf32 ? DType::kFp32 : main;
  p->a = ReadDType(row, "a_type", stored);
  p->b = ReadDType(row, "b_type", p->a == stored ? stored : p->a);
  const DType out = SizeOf(p->a).value <= 1.2 || eight_bits ? DType::kBf16 : p->a;
  p->d = row.Has("d_type") ? ReadDType(row, "d_type", out) : ReadDType(row, "out_type", out);
  p->c = p->d;
  p->compute = row.Has("a_type") ? p->a : main;
  if (row.Text("compute_type", "").find("xf32") != std::string::npos ||
      row.Text("compute_type", "").find("tf32") != std::string::npos) {
    p->compute = DType::kTf32;
  }
}

bool NamesSizes(const CsvTable& table) {
  return (table.Column("M") >= 0 && table.Column("N") >= 0 && table.Column("K") >= 0) ||
         (table.Column("m") >= 0 && table.Column("n") >= 0 && table.Column("k") >= 0);
}

// Elements between rows, 0 = packed.
int64_t ReadStride(CsvRow& row, const char* column, int64_t packed) {
  const int64_t stride = row.Integer(column, {0, kSize.max}, 0);
  if (stride > 0 && stride < packed) {
    row.Fail(column, fmt::format("{} is less than a row, which has {} elements; 0 = packed", stride, packed));
  }
  return stride;
}

// "128;0;64": rows of each product of a grouped call; empty for a plain product.
std::vector<int64_t> ReadGroups(CsvRow& row, int64_t m) {
  std::vector<int64_t> rows;
  if (!row.Has("group_rows")) return rows;
  const std::string text = row.Text("group_rows", "");
  int64_t sum = 0;
  for (const std::string& part : Split(text, ';')) {
    long long count = 0;
    if (!ParseInt64(part, &count) || count < 0 || count > m || rows.size() >= kMostGroups) {
      row.Fail("group_rows",
               fmt::format("'{}' is not a list of at most {} whole numbers from 0 to M = {}, like 128;0;64", text,
                           kMostGroups, m));
      return {};
    }
    rows.push_back(count);
    sum += count;
  }
  if (sum != m) row.Fail("group_rows", fmt::format("the groups have {} rows in all, but M is {}", sum, m));
  return rows;
}

GemmEpilogue ReadEpilogue(CsvRow& row) {
  const std::string name = row.Text("epilogue", "none");
  if (const auto epilogue = ParseGemmEpilogue(name)) return *epilogue;
  row.Fail("epilogue", fmt::format("'{}' is not one of {}", name, kGemmEpilogueNames));
  return GemmEpilogue::kNone;
}

GemmProblem ReadProblem(CsvRow& row, std::vector<int64_t>* groups = nullptr) {
  GemmProblem p;
  std::string layout = row.Text("layout", "TN");
  if (row.Has("M") || !row.Has("m")) {
    p.m = row.Integer("M", kSize);
    p.n = row.Integer("N", kSize);
    p.k = row.Integer("K", kSize);
  } else {
    p.m = row.Integer("m", kSize);
    p.n = row.Integer("n", kSize);
    p.k = row.Integer("k", kSize);
    if (row.Has("transA")) {
      std::swap(p.m, p.n);
      layout = row.Text("transA", "T") + row.Text("transB", "N");
    }
  }
  const auto* const found = std::find(std::begin(kLayoutNames), std::end(kLayoutNames), layout);
  if (found == std::end(kLayoutNames)) {
    row.Fail("layout", fmt::format("'{}' is not one of TN, NN, NT", layout));
  } else {
    p.layout = static_cast<GemmLayout>(found - std::begin(kLayoutNames));
  }
  p.batch = row.Integer("batch", kSize, 1);
  ReadTypes(row, &p);
  p.lda = ReadStride(row, "lda", p.layout == GemmLayout::kNT ? p.m : p.k);
  p.ldb = ReadStride(row, "ldb", p.layout == GemmLayout::kTN ? p.k : p.n);
  p.ldc = ReadStride(row, "ldc", p.n);
  p.ldd = ReadStride(row, "ldd", p.n);
  p.pointer_alignment_bytes = static_cast<int32_t>(row.Integer("alignment", {1, 1 << 20}, 16));
  if ((p.pointer_alignment_bytes & (p.pointer_alignment_bytes - 1)) != 0) {
    row.Fail("alignment", fmt::format("{} is not a power of two", p.pointer_alignment_bytes));
  }
  p.epilogue = ReadEpilogue(row);
  if (groups != nullptr) {
    *groups = ReadGroups(row, p.m);
    if (!groups->empty()) {
      p.group_m = groups->data();
      p.groups = static_cast<int32_t>(groups->size());
    }
  }
  if (!IsPriceable(p)) row.Fail(row.Has("M") ? "M" : "m", "M x N x batch is more than 2^48 outputs");
  const char* const units = row.Has("usable_units") ? "usable_units" : "cu_num";
  p.usable_units = static_cast<int32_t>(row.Integer(units, {0, 1 << 20}, 0));
  const std::string cache = row.Text("cache", "cold");
  if (cache != "cold" && cache != "warm") row.Fail("cache", fmt::format("'{}' is not one of cold, warm", cache));
  p.inputs = cache == "warm" ? InputResidency::kJustProduced : InputResidency::kCold;
  return p;
}

std::string ProblemIdColumn(const CsvTable& table) {
  if (table.Column("problem_id") >= 0) return "problem_id";
  return table.Column("shape_id") >= 0 ? "shape_id" : "";
}

std::vector<std::string> IgnoredColumns(const CsvTable& table, const std::map<std::string, int>& used) {
  std::vector<std::string> ignored;
  for (const std::string& column : table.columns) {
    if (used.count(column) == 0) ignored.push_back(column);
  }
  return ignored;
}

// Names of aiter's kernels by their number in its tuning tables, which lie in a file of their own.
Status AddAiterNames(CsvTable* table) {
  if (table->Column("lib") < 0 || table->Column("kernel_id") < 0 || table->Column("kernel") >= 0) return {};
  const std::string path = (std::filesystem::path(table->path).parent_path() / "amd_aiter_kernels.csv").string();
  if (!std::filesystem::exists(path)) return {};
  PORTOLAN_ASSIGN_OR_RETURN(const CsvTable names, CsvTable::Load(path));
  std::map<std::string, int> used;
  std::unordered_map<std::string, std::string> by_id;
  for (size_t i = 0; i < names.rows.size(); ++i) {
    CsvRow row(names, i, &used);
    by_id.emplace(row.Text("kernel_id", ""), row.Text("kernel", ""));
  }
  const auto column = static_cast<size_t>(table->Column("kernel_id"));
  table->columns.emplace_back("kernel");
  for (auto& fields : table->rows) {
    const auto found = by_id.find(fields[column]);
    fields.push_back(found == by_id.end() ? "" : found->second);
  }
  return {};
}

// All fields that tell problems apart, as one text.
std::string Signature(const GemmProblem& p) {
  std::string groups;
  for (int i = 0; i < p.groups && p.group_m != nullptr; ++i) groups += fmt::format(";{}", p.group_m[i]);
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", p.m, p.n, p.k, p.batch,
                     static_cast<int>(p.layout), p.lda, p.ldb, p.ldc, p.ldd, static_cast<int>(p.a),
                     static_cast<int>(p.b), static_cast<int>(p.c), static_cast<int>(p.d), static_cast<int>(p.compute),
                     p.usable_units, static_cast<int>(p.inputs), p.pointer_alignment_bytes,
                     static_cast<int>(p.epilogue), groups);
}

}  // namespace

std::optional<DType> ParseTableDType(const std::string& name) {
  static const std::unordered_map<std::string, DType> kAliases = {
      {"f64", DType::kFp64},     {"f32", DType::kFp32},     {"f16", DType::kFp16},     {"xf32", DType::kTf32},
      {"fp8", DType::kFp8E4m3},  {"f8", DType::kFp8E4m3},   {"bf8", DType::kFp8E5m2},  {"f8_e4m3", DType::kFp8E4m3},
      {"i8", DType::kInt8},      {"fp4", DType::kMxFp4},    {"fp4x2", DType::kMxFp4},  {"fp6", DType::kMxFp6},
      {"e4m3", DType::kFp8E4m3}, {"e5m2", DType::kFp8E5m2}, {"float32", DType::kFp32}, {"float16", DType::kFp16},
      {"bfloat16", DType::kBf16}};
  const std::string lower = LowerCase(name);
  if (const auto dtype = ParseDType(lower)) return dtype;
  const auto found = kAliases.find(lower);
  if (found == kAliases.end()) return std::nullopt;
  return found->second;
}

Result<ProblemList> ReadProblems(const CsvTable& table) {
  if (!NamesSizes(table)) {
    return tl::make_unexpected(
        Error{ErrorCode::kMissingField, "problems need columns M, N, K or m, n, k", table.path, 1, ""});
  }
  ProblemList list;
  std::map<std::string, int> used;
  const std::string id_column = ProblemIdColumn(table);
  std::set<std::string> seen;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    CsvRow row(table, i, &used);
    std::vector<int64_t> groups;
    const GemmProblem problem = ReadProblem(row, &groups);
    const std::string id = id_column.empty() ? "" : row.Text(id_column, "");
    if (!id_column.empty() && id.empty()) row.Fail(id_column, "empty");
    PORTOLAN_RETURN_IF_ERROR(row.Finish());
    if (!seen.insert(id_column.empty() ? Signature(problem) : id).second) continue;
    list.ids.push_back(id_column.empty() ? std::to_string(list.problems.size()) : id);
    list.problems.push_back(problem);
    if (!groups.empty()) list.group_rows.push_back(std::move(groups));  // moving keeps the address in group_m
  }
  list.ignored = IgnoredColumns(table, used);
  return list;
}

Result<ProblemList> ReadProblems(const std::string& path) {
  PORTOLAN_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Load(path));
  return ReadProblems(table);
}

Result<KernelList> ReadKernels(const std::string& path, DType compute) {
  PORTOLAN_ASSIGN_OR_RETURN(CsvTable table, CsvTable::Load(path));
  PORTOLAN_RETURN_IF_ERROR(AddAiterNames(&table));
  return ReadKernels(table, compute);
}

Result<KernelList> ReadKernels(const CsvTable& table, DType compute) {
  const FamilyEntry* family = nullptr;
  std::vector<std::string> markers;
  for (const FamilyEntry* entry : AllFamilies()) {
    markers.push_back(fmt::format("{} ({})", entry->marker_column, KernelFamilyName(entry->family)));
    if (family == nullptr && table.Column(entry->marker_column) >= 0) family = entry;
  }
  if (family == nullptr && table.Column("kernel") >= 0) family = FindFamily(KernelFamily::kAiter);
  if (family == nullptr) {
    return tl::make_unexpected(
        Error{ErrorCode::kMissingField,
              "no column tells the kernel family; one of these is needed: " + Join(markers, ", "), table.path, 1, ""});
  }
  KernelList list;
  const std::string id_column = ProblemIdColumn(table);
  list.tied_by_id = !id_column.empty();
  list.tied_by_size = !list.tied_by_id && NamesSizes(table);
  const bool typed = table.Column("dtype") >= 0 || table.Column("type") >= 0 || table.Column("a_type") >= 0;
  std::map<std::string, int> used;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    CsvRow row(table, i, &used);
    GemmKernel kernel;
    kernel.family = family->family;
    kernel.compute = compute;
    if (typed) {
      GemmProblem types;
      ReadTypes(row, &types);
      kernel.compute = types.compute;
    }
    family->read(row, &kernel);
    const std::string id = row.Text("kernel_id", std::to_string(i));
    if (list.tied_by_id) list.tied_id.push_back(row.Text(id_column, ""));
    if (list.tied_by_size) list.tied_problem.push_back(ReadProblem(row));
    if (!list.tied_by_id && !list.tied_by_size) ForgetProblem(&kernel);
    PORTOLAN_RETURN_IF_ERROR(row.Finish());
    if (kernel.family == KernelFamily::kTriton && kernel.tile_m == 0) {
      ++list.left_out;
      if (list.tied_by_id) list.tied_id.pop_back();
      if (list.tied_by_size) list.tied_problem.pop_back();
      continue;
    }
    list.catalogue.kernels.push_back(kernel);
    list.catalogue.ids.push_back(id);
  }
  list.ignored = IgnoredColumns(table, used);
  return list;
}

std::optional<GemmEpilogue> ParseGemmEpilogue(const std::string& name) {
  for (const auto& [known, epilogue] : kEpilogues) {
    if (name == known) return epilogue;
  }
  return std::nullopt;
}

}  // namespace portolan
