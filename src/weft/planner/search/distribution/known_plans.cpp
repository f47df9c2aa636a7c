#include "weft/planner/search/distribution/known_plans.h"

namespace weft::search {

std::optional<Evaluation> KnownPlans::find_estimate(const Digest& key) const {
  const std::lock_guard lock(mutex_);
  const Evaluation* found = estimates_.find(key);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

void KnownPlans::keep_estimate(const Digest& key, const Evaluation& evaluation) {
  const std::lock_guard lock(mutex_);
  estimates_.keep(key, evaluation, kMostEstimates);
}

std::shared_ptr<const ChosenDistribution> KnownPlans::find_choice(const Digest& key) const {
  const std::lock_guard lock(mutex_);
  const auto* found = choices_.find(key);
  return found == nullptr ? nullptr : *found;
}

void KnownPlans::keep_choice(const Digest& key, const ChosenDistribution& choice) {
  auto kept = std::make_shared<const ChosenDistribution>(choice);
  const std::lock_guard lock(mutex_);
  choices_.keep(key, std::move(kept), kMostChoices);
}

namespace {

void add_device(Hasher& hasher, const cluster::Device& device) {
  hasher.text(device.name);
  for (const double rate : device.flops_per_second) hasher.real(rate);
  for (const double rate : device.kernels) hasher.real(rate);
  hasher.real(device.memory_bytes).real(device.memory_bytes_per_second).real(device.launch_seconds);
  hasher.real(device.reach);
}

}  // namespace

Digest digest_of(const cluster::Cluster& cluster) {
  Hasher hasher;
  hasher.text(cluster.name);
  add_device(hasher, cluster.device);
  for (const cluster::DeviceKind& kind : cluster.kinds) {
    hasher.number(static_cast<std::uint64_t>(kind.nodes));
    add_device(hasher, kind.device);
  }
  for (const cluster::Axis& axis : cluster.axes) {
    const cluster::Link& link = axis.link;
    hasher.text(axis.name).number(static_cast<std::uint64_t>(axis.size)).text(link.name);
    hasher.real(link.bytes_per_second).real(link.latency_seconds).real(link.oversubscribed);
    hasher.number(static_cast<std::uint64_t>(link.shape)).number(link.sides.size());
    for (const std::int64_t side : link.sides) hasher.number(static_cast<std::uint64_t>(side));
  }
  return hasher.digest();
}

}  // namespace weft::search
