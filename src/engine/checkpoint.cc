#include "engine/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/text.h"
#include "engine/safetensors.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;
constexpr char kPrefix[] = "step_";
constexpr char kStateFile[] = "state.safetensors";
constexpr char kDoneFile[] = "DONE";

std::vector<TensorView> Views(TrainableNetwork* network, bool (*wanted)(const TrainableNetwork::State&)) {
  std::vector<TensorView> views;
  for (const TrainableNetwork::State& state : network->States()) {
    if (wanted(state)) views.push_back({state.name, state.dtype, state.shape, state.data, state.bytes});
  }
  return views;
}
bool Any(const TrainableNetwork::State& /*state*/) { return true; }
bool IsParameter(const TrainableNetwork::State& state) {
  return state.kind == TrainableNetwork::State::Kind::kParameter;
}

tl::unexpected<Error> FolderError(const std::string& path, const std::error_code& code) {
  return tl::make_unexpected(Error{ErrorCode::kIo, "cannot be written: " + code.message(), path, 0, {}});
}

// Step numbers of whole checkpoints, ascending.
std::vector<int64_t> WholeSteps(const std::string& folder) {
  std::vector<int64_t> steps;
  std::error_code ignored;
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored)) {
    const std::string name = it->path().filename().string();
    long long step = 0;
    if (name.compare(0, std::strlen(kPrefix), kPrefix) != 0 || !ParseInt64(name.substr(std::strlen(kPrefix)), &step))
      continue;
    if (fs::exists(it->path() / kDoneFile, ignored)) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

// DONE goes first: a folder half removed is then no whole checkpoint.
void Remove(const std::string& checkpoint) {
  std::error_code ignored;
  fs::remove(checkpoint + "/" + kDoneFile, ignored);
  fs::remove_all(checkpoint, ignored);
}

std::string StepFolder(const std::string& folder, int64_t step) {
  return fmt::format("{}/{}{:09d}", folder, kPrefix, step);
}

Status WriteDone(const std::string& path) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool good = descriptor >= 0 && fsync(descriptor) == 0;
  if (descriptor >= 0) close(descriptor);
  if (good) return {};
  return tl::make_unexpected(
      Error{ErrorCode::kIo, std::string("cannot be written: ") + std::strerror(errno), path, 0, {}});
}

}  // namespace

Status CheckpointFolder::Save(TrainableNetwork* network, const Progress& progress) const {
  std::error_code code;
  fs::create_directories(folder_, code);
  if (code) return FolderError(folder_, code);
  const std::string final_path = StepFolder(folder_, progress.step), temporary = final_path + ".tmp";
  fs::remove_all(temporary, code);
  fs::create_directory(temporary, code);
  if (code) return FolderError(temporary, code);
  Status written = WriteSafetensors(temporary + "/" + kStateFile, Views(network, Any),
                                    {{"step", std::to_string(progress.step)},
                                     {"samples", std::to_string(progress.samples)},
                                     {"position", progress.position},
                                     {"job", progress.job}});
  network->FinishStates(TrainableNetwork::StateUse::kRead);
  if (written) written = WriteDone(temporary + "/" + kDoneFile);
  if (written) written = SyncFolder(temporary);
  if (!written) {
    fs::remove_all(temporary, code);
    return written;
  }
  Remove(final_path);  // of an earlier run that went further than this one started
  fs::rename(temporary, final_path, code);
  if (code) return FolderError(final_path, code);
  PORTOLAN_RETURN_IF_ERROR(SyncFolder(folder_));
  std::vector<int64_t> steps = WholeSteps(folder_);
  while (static_cast<int64_t>(steps.size()) > keep_) {
    Remove(StepFolder(folder_, steps.front()));
    steps.erase(steps.begin());
  }
  return {};
}

Result<std::optional<Progress>> CheckpointFolder::LoadNewest(TrainableNetwork* network, const std::string& job) const {
  const std::vector<int64_t> steps = WholeSteps(folder_);
  if (steps.empty()) return std::nullopt;
  const std::string path = StepFolder(folder_, steps.back()) + "/" + kStateFile;
  PORTOLAN_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  const auto text = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  Progress progress;
  long long step = 0, samples = 0;
  if (!ParseInt64(text("step"), &step) || !ParseInt64(text("samples"), &samples) || step < 0 || samples < 0) {
    return tl::make_unexpected(Error{ErrorCode::kParse, "has no step and samples: not a checkpoint", path, 0, {}});
  }
  progress.step = step;
  progress.samples = samples;
  progress.position = text("position");
  progress.job = text("job");
  if (progress.job != job) {
    return tl::make_unexpected(Error{ErrorCode::kInvalidValue,
                                     "belongs to another job (" + progress.job.substr(0, 200) + "; this one is " + job +
                                         "): name another checkpoint folder, or remove it",
                                     path,
                                     0,
                                     {}});
  }
  for (const TensorView& view : Views(network, Any)) PORTOLAN_RETURN_IF_ERROR(file.Read(view));
  network->FinishStates(TrainableNetwork::StateUse::kChanged);
  return progress;
}

Status ExportParameters(TrainableNetwork* network, const std::string& path) {
  Status written = WriteSafetensors(path, Views(network, IsParameter), {{"format", "pt"}});
  network->FinishStates(TrainableNetwork::StateUse::kRead);
  return written;
}

Status ImportParameters(TrainableNetwork* network, const std::string& path) {
  PORTOLAN_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  for (const TensorView& view : Views(network, IsParameter)) PORTOLAN_RETURN_IF_ERROR(file.Read(view));
  network->FinishStates(TrainableNetwork::StateUse::kChanged);
  return {};
}

}  // namespace portolan
