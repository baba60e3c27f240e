// nvcc's flags in a setup.py. PyTorch's BuildExtension itself calls hipcc for CUDAExtension where PyTorch is built for
// ROCm, gives it PYTORCH_ROCM_ARCH's architectures and the flags under "nvcc"; it does not translate them.

#include <fmt/format.h>

#include "porting/build_words.h"
#include "porting/job/rules.h"

namespace portolan {

void ApplyExtensionFlags(const JobInput& input, JobOutput* output) {
  const JobFile& file = input.file;
  if (file.kind() != JobFileKind::kSetup) return;
  for (size_t i = 0; i < file.tokens().size(); ++i) {
    if (!file.IsString(i)) continue;
    const std::string_view content = PythonStringContent(file.Text(i));
    const uint32_t begin = file.tokens()[i].begin;
    const uint32_t end = file.tokens()[i].end;
    const bool element = file.Text(i + 1) == "," || file.Text(i + 1) == "]" || file.Text(i + 1) == ")";
    std::string_view hip;
    if (content == "-gencode" || content.substr(0, 9) == "-gencode=" || content.substr(0, 6) == "-arch=" ||
        content.substr(0, 13) == "arch=compute_") {
      output->Find(file, begin, FindingLevel::kError, "extension-flags", fmt::format("hipcc refuses '{}'", content),
                   fmt::format("take it away; PYTORCH_ROCM_ARCH={} says the architecture", input.target.gfx));
    } else if (content == "-Xptxas" || content.substr(0, 8) == "-Xptxas=" || content.substr(0, 7) == "--ptxas") {
      output->Find(file, begin, FindingLevel::kError, "extension-flags", fmt::format("hipcc refuses '{}'", content),
                   "take it and its value away");
    } else if (element && content.size() > 1 && content[0] == '-' && FindHipWord(content, &hip)) {
      if (hip.empty()) {
        // The element goes with the comma behind it; the last one leaves the comma before it, which Python allows.
        uint32_t stop = end;
        if (file.Text(i + 1) == ",") {
          stop = file.tokens()[i + 1].end;
          while (stop < file.text().size() && file.text()[stop] == ' ') ++stop;
        }
        output->edits.push_back({begin, stop, ""});
      } else {
        const uint32_t inner = begin + static_cast<uint32_t>(content.data() - file.Text(i).data());
        output->edits.push_back({inner, inner + static_cast<uint32_t>(content.size()), std::string(hip)});
      }
      output->Find(file, begin, FindingLevel::kError, "extension-flags", fmt::format("hipcc refuses '{}'", content),
                   hip.empty() ? "port: taken away" : fmt::format("port: '{}'", hip));
    } else if (element && (content == "cublas" || content == "cublasLt" || content == "curand" ||
                           content == "cusparse" || content == "cufft" || content == "cusolver" ||
                           content == "cudart" || content == "cuda" || content == "nccl")) {
      // libraries=["cublas"]
      size_t open = i;
      while (open > 0 && i - open < 60 && file.Text(open) != "[") --open;
      if (open < 2 || file.Text(open - 1) != "=" || file.Text(open - 2) != "libraries") continue;
      const std::string flag = "-l" + std::string(content);
      if (!FindHipWord(flag, &hip) || hip.size() < 3) continue;
      output->edits.push_back({begin + 1, end - 1, std::string(hip.substr(2))});
      output->Find(file, begin, FindingLevel::kError, "extension-flags", fmt::format("ROCm has no '{}'", content),
                   fmt::format("port: '{}'", hip.substr(2)));
    }
  }
}

}  // namespace portolan
