// Base images of NVIDIA and the ways in which a container is given NVIDIA's devices.

#include <fmt/format.h>

#include "base/text.h"
#include "porting/job/rules.h"

namespace portolan {
namespace {

constexpr const char* kDevices = "--device=/dev/kfd --device=/dev/dri --group-add video";

void Report(const JobInput& input, const JobLine& line, size_t at, const std::string& message,
            const std::string& action, JobOutput* output) {
  output->Find(input.file, line.begin + at, FindingLevel::kError, "container", message, action);
}

// The image of a FROM line of a Dockerfile or an image: line of YAML.
void JudgeImage(const JobInput& input, const JobLine& line, size_t at, JobOutput* output) {
  const size_t end = line.text.find_first_of(" \t\"'", at);
  const std::string image(line.text.substr(at, end == std::string_view::npos ? end : end - at));
  const std::string release = fmt::format("{}.{}", input.target.rocm / 100, input.target.rocm % 100);
  if (image.rfind("nvidia/cuda", 0) == 0 || image.rfind("docker.io/nvidia/cuda", 0) == 0 ||
      image.rfind("nvcr.io/nvidia/cuda", 0) == 0) {
    Report(input, line, at, fmt::format("'{}' holds CUDA", image),
           fmt::format("rocm/dev-ubuntu-22.04:{}-complete or its like", release), output);
  } else if (image.rfind("nvcr.io/", 0) == 0) {
    Report(input, line, at, fmt::format("'{}' is an image of NVIDIA's", image),
           image.find("pytorch") != std::string::npos ? fmt::format("rocm/pytorch for ROCm {}", release)
                                                      : "an image with ROCm",
           output);
  } else if (image.rfind("pytorch/pytorch", 0) == 0 && image.find("cuda") != std::string::npos) {
    Report(input, line, at, fmt::format("'{}' holds CUDA", image), fmt::format("rocm/pytorch for ROCm {}", release),
           output);
  }
}

}  // namespace

void ApplyContainers(const JobInput& input, JobOutput* output) {
  const JobFile& file = input.file;
  if (file.kind() == JobFileKind::kRequirements) return;
  for (const JobLine& line : file.lines()) {
    const std::string lower = LowerCase(line.text);
    if (file.kind() == JobFileKind::kContainer) {
      size_t at = lower.find_first_not_of(" \t");
      if (at != std::string::npos && lower.compare(at, 5, "from ") == 0) {
        at = lower.find_first_not_of(' ', at + 5);
        while (at != std::string::npos && lower.compare(at, 2, "--") == 0) {  // --platform=...
          at = lower.find(' ', at);
          if (at != std::string::npos) at = lower.find_first_not_of(' ', at);
        }
        if (at != std::string::npos) JudgeImage(input, line, at, output);
      }
    } else if (file.kind() == JobFileKind::kYaml) {
      const size_t image = lower.find("image:");
      if (image != std::string::npos && lower.find_first_not_of(" \t-") == image) {
        const size_t at = lower.find_first_not_of(" \t\"'", image + 6);
        if (at != std::string::npos) JudgeImage(input, line, at, output);
      }
      for (const char* resource : {"nvidia.com/gpu", "runtime: nvidia", "driver: nvidia"}) {
        const size_t at = lower.find(resource);
        if (at == std::string::npos) continue;
        const bool kubernetes = resource[6] == '.';
        Report(input, line, at, fmt::format("'{}' asks for NVIDIA's devices", resource),
               kubernetes ? "amd.com/gpu" : "devices: /dev/kfd and /dev/dri", output);
      }
    } else if (file.kind() == JobFileKind::kShell) {
      const bool runs = lower.find("docker run") != std::string::npos || lower.find("podman run") != std::string::npos;
      for (const char* option : {"--gpus", "--runtime=nvidia", "--runtime nvidia", "--nv "}) {
        const size_t at = lower.find(option);
        const bool singularity = option[2] == 'n' && (lower.find("singularity ") != std::string::npos ||
                                                      lower.find("apptainer ") != std::string::npos);
        // srun --gpus is Slurm's, and means any.
        if (at == std::string::npos || !(singularity || (runs && option[2] != 'n'))) continue;
        Report(input, line, at, fmt::format("'{}' gives a container NVIDIA's devices", Split(option, ' ')[0]),
               singularity ? "--rocm" : kDevices, output);
      }
    }
  }
}

}  // namespace portolan
