#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/yaml.h"
#include "loop/optimize_cuda.h"
#include "loop/read_grid.h"

namespace portolan {
namespace {

constexpr Range kTimeOrRate{1e-15, 1e18};

// A step of almost no work: what is left when its kernels' times are taken off.
Result<double> StepBesideKernels(const CudaCalibration& calibration) {
  const char* const text = R"(
model:
  model: tiny
  dense_features: 16
  tables:
    - {name: t, rows: 1000, dim: 16, lookups: 2, count: 2}
  blocks:
    - {name: joined, type: concat, inputs: [dense, embeddings]}
    - {name: top, type: mlp, input: joined, widths: [64, 1], last_activation: none}
recipe: {recipe: r, local_batch: 65536, precision: {gemm: bf16, activation: bf16}}
data: {type: synthetic}
device: cuda
steps: 1
)";
  PORTOLAN_ASSIGN_OR_RETURN(const YamlValue value, YamlValue::Parse(text, "the calibration's job"));
  PORTOLAN_ASSIGN_OR_RETURN(const Job job,
                            ReadJob(value, [](const std::string&, const std::string& name) -> Result<std::string> {
                              return MakeError(ErrorCode::kNotFound, name);
                            }));
  PORTOLAN_ASSIGN_OR_RETURN(const std::vector<Batch> batches, ReadSomeBatches(job, 1));
  PORTOLAN_ASSIGN_OR_RETURN(const CudaStepPrice price, PriceCudaRecipe(job, job.recipe, batches, calibration));
  PORTOLAN_ASSIGN_OR_RETURN(const auto timed, TimedCudaNetwork::Make(job, job.recipe));
  constexpr int kRounds = 6, kSteps = 50;
  for (int round = 0; round < kRounds; ++round) PORTOLAN_RETURN_IF_ERROR(timed->Round(kSteps));
  return std::max(timed->StepSeconds() - price.step_s, 1e-6);
}

std::string Numbers(const std::vector<double>& numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i) text += fmt::format("{}{:.5g}", i > 0 ? ", " : "", numbers[i]);
  return text + "]";
}

}  // namespace

Result<CudaCalibration> CalibrateCuda(const std::function<void(const std::string&, double)>& progress) {
  PORTOLAN_ASSIGN_OR_RETURN(CudaKernelTimes times, MeasureCudaKernels(progress));
  CudaCalibration calibration;
  calibration.device = times.device;
  calibration.l2_bytes = times.l2_bytes;
  calibration.copy_bytes_per_s = times.copy_bytes_per_s;
  char date[16];
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::strftime(date, sizeof date, "%Y-%m-%d", &utc);
  calibration.date = date;
  for (CudaKernelGrid& grid : times.grids) {
    calibration.grids[grid.name] = {std::move(grid.axes), std::move(grid.seconds)};
  }
  progress("a small step", 0.95);
  PORTOLAN_ASSIGN_OR_RETURN(calibration.step_s, StepBesideKernels(calibration));
  return calibration;
}

Status WriteCudaCalibration(const CudaCalibration& c, const std::string& folder) {
  std::string text = fmt::format(
      "# Times of this GPU's kernels by `portolan calibrate --device cuda` (docs/calibrate.md); written again by the "
      "next "
      "run.\ndevice: '{}'\ndate: {}\nl2_bytes: {:.10g}\ncopy_bytes_per_s: {:.5g}\nstep_s: {:.4g}\ngrids:\n",
      c.device, c.date, c.l2_bytes, c.copy_bytes_per_s, c.step_s);
  for (const auto& [name, grid] : c.grids) {
    text += fmt::format("  {}:\n    axes:\n", name);
    for (const std::vector<double>& axis : grid.axes) text += fmt::format("    - {}\n", Numbers(axis));
    text += fmt::format("    seconds: {}\n", Numbers(grid.seconds));
  }
  const std::filesystem::path path = std::filesystem::path(folder) / "calibration" / "cuda.yaml";
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) return tl::make_unexpected(Error{ErrorCode::kIo, "cannot be written", path.string(), 0, {}});
  return {};
}

Result<CudaCalibration> ReadCudaCalibration(const std::string& folder) {
  PORTOLAN_ASSIGN_OR_RETURN(const YamlValue value, YamlValue::Load(folder + "/calibration/cuda.yaml"));
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
  CudaCalibration c;
  c.device = map.String("device");
  c.date = map.String("date");
  c.l2_bytes = map.Number("l2_bytes", kTimeOrRate);
  c.copy_bytes_per_s = map.Number("copy_bytes_per_s", kTimeOrRate);
  c.step_s = map.Number("step_s", kTimeOrRate);
  map.Visit("grids", [&](const YamlValue& grids) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(YamlMap names, grids.Map());
    for (const auto& [name, entry] : names.Entries()) {
      PORTOLAN_ASSIGN_OR_RETURN(c.grids[name], ReadMeasuredGrid(entry, kTimeOrRate));
    }
    return {};
  });
  PORTOLAN_RETURN_IF_ERROR(map.Finish());
  return c;
}

Result<CudaCalibration> CudaCalibrationOfThisMachine(const std::string& folder,
                                                     const std::function<void(const std::string&, double)>& progress) {
  PORTOLAN_ASSIGN_OR_RETURN(const CudaMemory memory, CudaMemoryAvailable());
  if (!folder.empty()) {
    Result<CudaCalibration> kept = ReadCudaCalibration(folder);
    if (kept && kept->device == memory.device) return kept;
  }
  PORTOLAN_ASSIGN_OR_RETURN(CudaCalibration made, CalibrateCuda(progress));
  if (!folder.empty()) PORTOLAN_RETURN_IF_ERROR(WriteCudaCalibration(made, folder));
  return made;
}

}  // namespace portolan
