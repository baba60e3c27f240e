#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/accelerator.h"
#include "hw/fabric.h"

namespace portolan {

// A set of equal devices: nodes x devices_per_node, one accelerator, a scale-up and a scale-out fabric.
struct Cluster {
  Accelerator accelerator;
  Fabric scale_up;
  Fabric scale_out;
  int devices = 1;
  int devices_per_node = 8;  // the scale-up domain
  int nodes() const { return (devices + devices_per_node - 1) / devices_per_node; }
};

// All accelerators and fabrics found under one or more data directories; a later directory overrides an id.
class Catalogue {
 public:
  // Reads <dir>/accelerators/*.yaml and <dir>/fabrics/*.yaml of each directory and resolves inherited values
  // (hw/resolve.h). A directory with neither folder may hold the files themselves, and one file may stand for a
  // directory: a map with `topology` is a fabric, one with `hbm_bytes` or `compute_units` an accelerator. An
  // accelerator inherits from its own and earlier directories only, so that a user's chip never changes the others.
  // Errors: a path that does not exist or holds nothing of the kind; any invalid file (the message names it); an id
  // twice in one directory; a fabric that no directory defines.
  static Result<Catalogue> Load(const std::vector<std::string>& data_dirs);

  // An unknown id is an error that lists the known ones.
  Result<const Accelerator*> FindAccelerator(const std::string& id) const;
  Result<const Fabric*> FindFabric(const std::string& id) const;
  const std::map<std::string, Accelerator>& accelerators() const { return accelerators_; }
  const std::map<std::string, Fabric>& fabrics() const { return fabrics_; }

  // Parses "mi350x", "8xmi350x" (the count first) or "2x4xh100" (two nodes of four). Without a node count, more than 8
  // devices are nodes of 8 (or of the scale-up domain's size when `scale_up_fabric` names a larger one); the count must
  // then be a multiple of it. Empty fabric names mean the accelerator's own.
  Result<Cluster> ParseCluster(const std::string& text, const std::string& scale_up_fabric = "",
                               const std::string& scale_out_fabric = "") const;

 private:
  // Reads one directory, or one file, over what is there already and resolves its accelerators.
  Status AddDirectory(const std::string& dir);

  std::map<std::string, Accelerator> accelerators_;
  std::map<std::string, Fabric> fabrics_;
};

}  // namespace portolan
