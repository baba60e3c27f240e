#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/fact.h"
#include "units/dtype.h"
#include "units/quantity.h"

namespace portolan {

constexpr int kDTypeCount = static_cast<int>(DType::kInt64) + 1;

// Rates by number format; zero where the device has no such path.
class FlopsByDType {
 public:
  FlopsPerSecond& operator[](DType dtype) { return rates_[static_cast<size_t>(dtype)]; }
  FlopsPerSecond operator[](DType dtype) const { return rates_[static_cast<size_t>(dtype)]; }

 private:
  std::array<FlopsPerSecond, kDTypeCount> rates_{};
};

// One accelerator, or the CPU. The typed members are the numbers that the cost models read: per device unless the name
// says per unit (compute unit, SM or core) or per die. Members marked "resolved" come from the device's own file where
// it states them and otherwise from its nearest relatives (Catalogue::Resolve says how); `facts` holds what the file
// states, by its YAML key ("hbm_bytes", "peak_matrix_flops_per_s.bf16"), for printing and provenance.
struct Accelerator {
  std::string id;                // "mi350x"
  std::string name;              // "AMD Instinct MI350X"
  std::string vendor;            // "amd", "nvidia", "intel", "cpu", or whatever the file says
  std::string family;            // "cdna4", "hopper"
  std::string isa;               // "gfx950", "sm_90"
  std::string scale_up_fabric;   // fabric id of the links between devices of one node
  std::string scale_out_fabric;  // fabric id of the NIC, one a device
  std::string file;

  int compute_units = 0;
  int dies = 1;
  int wave_size = 32;
  Hertz clock_boost;
  FlopsByDType peak_matrix;       // dense, no sparsity
  FlopsByDType sustained_matrix;  // resolved: what the best large GEMM reaches (clock under load, issue limits)
  FlopsPerSecond peak_vector_fp32;
  double transcendental_per_s = 0.0;  // resolved: exp2-like special-function results a second
  Bytes shared_memory_per_unit;
  Bytes registers_per_unit;
  Bytes l2;                  // all dies
  Bytes mall;                // memory-side cache; zero where there is none
  BytesPerSecond l2_rate;    // resolved: sustained reads that hit the L2
  BytesPerSecond mall_rate;  // resolved
  Bytes hbm;
  BytesPerSecond hbm_peak;
  BytesPerSecond hbm_sustained;  // resolved: large copy, bytes read plus bytes written
  Bytes memory_line;             // resolved: granularity of a random access to memory
  Seconds kernel_fixed;          // resolved: shortest useful kernel in a stream or graph, start to start
  Seconds host_launch;           // resolved: host time to enqueue one kernel without a graph
  BytesPerSecond host_link;      // per direction, to host memory
  double power_w = 0.0;

  std::map<std::string, Fact> facts;
  // YAML keys of the resolved members that came from relatives, with one line saying from which.
  std::map<std::string, std::string> inherited;
};

// Reads one accelerator file (docs/hardware.md lists its keys) and checks it; nothing is inherited yet: members marked
// "resolved" that the file leaves out are zero. The id defaults to the file's name. Errors name file, line, field,
// value and what would be accepted.
Result<Accelerator> ReadAccelerator(const std::string& path);

// Sets the typed members from `facts` (what ReadAccelerator does last).
void SetMembersFromFacts(Accelerator* accelerator);

// The product compute_units x matrix_flops_per_clock_per_unit x clock_tensor_hz against the stated peak, for every
// number format for which the file states all of them.
struct PeakCheck {
  DType dtype = DType::kBf16;
  FlopsPerSecond product;
  FlopsPerSecond stated;
};
std::vector<PeakCheck> CheckPeaks(const Accelerator& accelerator);

}  // namespace portolan
