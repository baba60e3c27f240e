#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "engine/trainer.h"

namespace portolan {
namespace {

// MemAvailable of Linux; 0 where it is not known.
double AvailableBytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  double kibibytes = 0;
  while (file >> key >> kibibytes) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kibibytes * 1024;
  }
  return 0;
}

std::string Gigabytes(double bytes) { return fmt::format("{:.2f} GB", bytes * 1e-9); }

using MemoryParts = std::vector<std::pair<std::string, double>>;
Result<MemoryParts> PartsWith(const Job& job, const CudaOptions& options) {
  PORTOLAN_ASSIGN_OR_RETURN(const NetworkPlan plan, PlanNetwork(job.model, options.network));
  return job.device == JobDevice::kCuda ? CudaMemoryParts(plan, options) : plan.MemoryParts();
}
double Sum(const MemoryParts& parts) {
  double sum = 0;
  for (const auto& [name, bytes] : parts) sum += bytes;
  return sum;
}

}  // namespace

Result<CudaOptions> ComputedAs(const Job& job, std::vector<std::string>* notes) {
  CudaOptions options;
  if (job.device == JobDevice::kCuda) {
    PORTOLAN_ASSIGN_OR_RETURN(options, CudaOptionsFromRecipe(job.model, job.recipe, notes));
    options.device_bytes = job.device_memory_bytes;
    return options;
  }
  PORTOLAN_ASSIGN_OR_RETURN(options.network, OptionsFromRecipe(job.model, job.recipe, notes));
  return options;
}

Result<MemoryForecast> ForecastMemory(const Job& job) {
  std::vector<std::string> notes;
  PORTOLAN_ASSIGN_OR_RETURN(const CudaOptions options, ComputedAs(job, &notes));
  MemoryForecast forecast;
  PORTOLAN_ASSIGN_OR_RETURN(forecast.parts, PartsWith(job, options));
  forecast.needed = Sum(forecast.parts);
  // A checkpoint's arrays of rows in host memory are copies of what the kernels read there.
  const bool copies = !job.checkpoint_folder.empty() || !job.import_file.empty() || !job.export_file.empty();
  const auto host_bytes = [&](const CudaOptions& with) {
    const Result<NetworkPlan> plan = PlanNetwork(job.model, with.network);
    return plan ? CudaHostBytes(*plan, with) * (copies ? 2 : 1) : 0;
  };
  if (job.device == JobDevice::kCuda) {
    PORTOLAN_ASSIGN_OR_RETURN(const CudaMemory memory, CudaMemoryAvailable());
    forecast.available = memory.free_bytes;
    if (options.device_bytes > 0) forecast.available = std::min(forecast.available, options.device_bytes);
    forecast.device = memory.device;
    forecast.host_bytes = host_bytes(options);
    const double host_available = AvailableBytes();
    if (forecast.host_bytes > host_available && host_available > 0) {
      forecast.what_would_fit =
          fmt::format("the tables in host memory take {} there{}, {} are available", Gigabytes(forecast.host_bytes),
                      copies ? ", those of a checkpoint included" : "", Gigabytes(host_available));
      return forecast;
    }
  } else {
    forecast.available = AvailableBytes();
  }
  if (forecast.available == 0 || forecast.needed <= forecast.available) return forecast;
  std::vector<std::string> fits;
  if (job.device == JobDevice::kCuda && options.device_bytes == 0) {
    CudaOptions cached = options;
    cached.device_bytes = forecast.available;
    const Result<MemoryParts> need = PartsWith(job, cached);
    if (need && Sum(*need) <= forecast.available && host_bytes(cached) <= AvailableBytes()) {
      fits.push_back(fmt::format("--device-memory {:.0f}GB, with {} of tables in host memory",
                                 std::floor(forecast.available * 1e-9), Gigabytes(host_bytes(cached))));
    }
  }
  const auto consider = [&](const std::string& what, const CudaOptions& changed) {
    const Result<MemoryParts> need = PartsWith(job, changed);
    if (need && Sum(*need) <= forecast.available) fits.push_back(fmt::format("{} ({})", what, Gigabytes(Sum(*need))));
  };
  CudaOptions changed = options;
  changed.network.row = kernels::RowFormat::kBf16;
  consider("precision.embedding_row bf16", changed);
  changed.network.row_optimizer = kernels::RowOptimizer::kRowwiseAdagrad;
  consider("bf16 rows with embedding.optimizer rowwise_adagrad", changed);
  changed.network.row = options.network.row;
  consider("embedding.optimizer rowwise_adagrad", changed);
  changed = options;
  int64_t& batch = changed.network.batch;
  for (batch = options.network.batch / 2; batch >= 1; batch /= 2) {
    const Result<MemoryParts> need = PartsWith(job, changed);
    if (!need || Sum(*need) > forecast.available) continue;
    fits.push_back(fmt::format("a batch of {} ({})", batch, Gigabytes(Sum(*need))));
    break;
  }
  forecast.what_would_fit = fits.empty() ? "the largest part is " : "would fit: ";
  if (fits.empty()) {
    auto largest = forecast.parts.front();
    for (const auto& part : forecast.parts) {
      if (part.second > largest.second) largest = part;
    }
    forecast.what_would_fit += fmt::format("{}, {}", largest.first, Gigabytes(largest.second));
  }
  for (size_t i = 0; i < fits.size(); ++i) forecast.what_would_fit += (i > 0 ? "; " : "") + fits[i];
  return forecast;
}

}  // namespace portolan
