#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "hw/catalogue.h"

namespace portolan {
namespace {

constexpr int kMaxDevices = 1 << 20;
constexpr int kUsualNode = 8;
constexpr const char* kAccepted =
    "accepted: ID, NxID or RxNxID with the counts first, for example mi350x, 8xmi350x or 2x4xh100 (two nodes of four), "
    "at most 1048576 devices";

tl::unexpected<Error> ClusterError(const std::string& text, const std::string& why) {
  return MakeError(ErrorCode::kUsage, fmt::format("'{}' is not a cluster: {}; {}", text.substr(0, 80), why, kAccepted));
}

struct ClusterText {
  std::optional<int> nodes;
  std::optional<int> devices;  // of one node where `nodes` is given, else of all
  std::string id;
};

// A text such as "8x..." or "-1x..." or "1e9x...": something that begins like a number and has an 'x'.
bool LooksLikeCount(const std::string& text) {
  return !text.empty() && text.find('x') != std::string::npos &&
         ((text[0] >= '0' && text[0] <= '9') || text[0] == '-' || text[0] == '+' || text[0] == '.');
}

Result<ClusterText> Split(const std::string& text) {
  ClusterText parsed;
  std::string rest = text;
  std::vector<int> counts;
  while (LooksLikeCount(rest)) {
    const size_t x = rest.find('x');
    const std::string digits = rest.substr(0, x);
    long long count = 0;
    const bool plain = digits.find_first_not_of("0123456789") == std::string::npos;
    if (!plain || digits.size() > 7 || !ParseInt64(digits, &count) || count < 1 || count > kMaxDevices) {
      return ClusterError(text, "the count '" + digits.substr(0, 40) + "' is not a whole number from 1 to 1048576");
    }
    counts.push_back(static_cast<int>(count));
    rest = rest.substr(x + 1);
  }
  if (counts.size() > 2) return ClusterError(text, "it has more than two counts");
  if (rest.empty()) return ClusterError(text, "the accelerator's id is missing");
  if (rest.find_first_of(" \t\r\n") != std::string::npos) return ClusterError(text, "it contains a blank");
  if (counts.size() == 2) parsed.nodes = counts[0];
  if (!counts.empty()) parsed.devices = counts.back();
  parsed.id = rest;
  return parsed;
}

Status CheckScaleOut(const std::string& text, const Cluster& cluster) {
  if (cluster.nodes() <= 1 || cluster.scale_out.max_devices >= cluster.devices) return {};
  return ClusterError(text, fmt::format("the scale-out fabric {} joins at most {} devices, not {}",
                                        cluster.scale_out.id, cluster.scale_out.max_devices, cluster.devices));
}

}  // namespace

Result<Cluster> Catalogue::ParseCluster(const std::string& text, const std::string& scale_up_fabric,
                                        const std::string& scale_out_fabric) const {
  PORTOLAN_ASSIGN_OR_RETURN(const ClusterText parsed, Split(text));
  Result<const Accelerator*> accelerator = FindAccelerator(parsed.id);
  if (!accelerator) {
    Error error = accelerator.error();
    error.message += std::string("; ") + kAccepted;
    return tl::make_unexpected(std::move(error));
  }
  Cluster cluster;
  cluster.accelerator = **accelerator;
  const Accelerator& device = cluster.accelerator;
  PORTOLAN_ASSIGN_OR_RETURN(const Fabric* up,
                            FindFabric(scale_up_fabric.empty() ? device.scale_up_fabric : scale_up_fabric));
  PORTOLAN_ASSIGN_OR_RETURN(const Fabric* out,
                            FindFabric(scale_out_fabric.empty() ? device.scale_out_fabric : scale_out_fabric));
  cluster.scale_up = *up;
  cluster.scale_out = *out;

  if (parsed.nodes) {
    if (*parsed.devices > up->max_devices) {
      return ClusterError(text, fmt::format("the scale-up fabric {} joins at most {} devices of one node, not {}",
                                            up->id, up->max_devices, *parsed.devices));
    }
    const int64_t total = static_cast<int64_t>(*parsed.nodes) * *parsed.devices;
    if (total > kMaxDevices) return ClusterError(text, fmt::format("{} devices are too many", total));
    cluster.devices = static_cast<int>(total);
    cluster.devices_per_node = *parsed.devices;
    PORTOLAN_RETURN_IF_ERROR(CheckScaleOut(text, cluster));
    return cluster;
  }
  cluster.devices = parsed.devices.value_or(1);
  // Nodes of 8 although the fabric could join more (16 V100), unless it is a rack-scale domain that replaces the node.
  const int domain = up->max_devices > 2 * kUsualNode ? up->max_devices : std::min(kUsualNode, up->max_devices);
  cluster.devices_per_node = std::min(cluster.devices, domain);
  if (cluster.devices % cluster.devices_per_node != 0) {
    const int below = cluster.devices / domain * domain;
    return ClusterError(text, fmt::format("{} devices are more than one node of {} and not a multiple of it (nearest: "
                                          "{} or {}; RxNxID gives other node sizes)",
                                          cluster.devices, domain, below, below + domain));
  }
  PORTOLAN_RETURN_IF_ERROR(CheckScaleOut(text, cluster));
  return cluster;
}

}  // namespace portolan
