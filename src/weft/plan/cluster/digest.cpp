#include "weft/plan/cluster/digest.h"

namespace weft::cluster {
namespace {

void add_device(Hasher& hasher, const Device& device) {
  hasher.text(device.name);
  for (const double rate : device.flops_per_second) hasher.real(rate);
  for (const double rate : device.kernels) hasher.real(rate);
  hasher.real(device.memory_bytes).real(device.memory_bytes_per_second).real(device.launch_seconds);
  hasher.real(device.reach).real(device.step_error).digest_of(device.rates_digest);
}

}  // namespace

Digest digest_of(const Cluster& cluster) {
  Hasher hasher;
  hasher.text(cluster.name);
  add_device(hasher, cluster.device);
  for (const DeviceKind& kind : cluster.kinds) {
    hasher.number(static_cast<std::uint64_t>(kind.nodes));
    add_device(hasher, kind.device);
  }
  for (const Axis& axis : cluster.axes) {
    const Link& link = axis.link;
    hasher.text(axis.name).number(static_cast<std::uint64_t>(axis.size)).text(link.name);
    hasher.number(static_cast<std::uint64_t>(axis.per_node));
    hasher.real(link.bytes_per_second).real(link.latency_seconds).real(link.oversubscribed);
    hasher.number(static_cast<std::uint64_t>(link.shape)).number(link.sides.size());
    for (const std::int64_t side : link.sides) hasher.number(static_cast<std::uint64_t>(side));
    for (const LinkShare& at : link.scaling)
      hasher.number(static_cast<std::uint64_t>(at.nodes)).real(at.share);
  }
  add_to(hasher, cluster.stack);
  return hasher.digest();
}

}  // namespace weft::cluster
