#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "porting/verify/co_run.h"
#include "porting/verify/code_places.h"
#include "porting/verify/verify.h"

namespace portolan {

// What makes a difference the same in another run: the kernel, launch or copy, the buffer.
using DifferenceKey = std::tuple<std::string, int, int>;
DifferenceKey KeyOf(const RunDifference& difference);

// One of the two programs, as findings name places in it.
struct ComparedProgram {
  std::string folder;  // its sources
  int wave_size = 0;
  std::unique_ptr<CodePlaces> places;
};

// Turns what runs of the original (0) and the port (1) showed into findings, appended to `findings`.
class FindingWriter {
 public:
  FindingWriter(ComparedProgram* programs, const PortTarget& target, std::vector<VerifyFinding>* findings)
      : programs_(programs), target_(target), findings_(findings) {}

  // The first of `differences`, which is not empty, with the others as details. `watched`: a run that looked who wrote
  // the first one's element; nullptr where it was seen in a copy. `suffix` says in which run.
  void AddDifferences(const std::vector<const RunDifference*>& differences, const PairResult* watched, const char* kind,
                      const std::string& suffix);
  // Another exit code, output, end or order of launches. Returns whether there was one. `own_output_differs`: the
  // original's output depends on the order of its waves.
  bool AddOutcome(const PairResult& pair, bool own_output_differs, const std::string& suffix);
  void AddOrderDependence(const RunDifference& first, size_t buffers);
  // The faults of both runs, each kind once for a place.
  void AddFaults(const PairResult& in_step, const PairResult& shuffled);
  // What is larger than the target allows.
  void AddLimits(const PairResult& pair);

 private:
  std::string RelativeFile(size_t program, const std::string& file) const;
  std::string WriterText(size_t program, const RunFault& writer);

  ComparedProgram* programs_;
  const PortTarget& target_;
  std::vector<VerifyFinding>* findings_;
};

}  // namespace portolan
