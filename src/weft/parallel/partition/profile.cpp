#include "weft/parallel/partition/profile.h"

namespace weft::partition {

IdealSums sums_of(const Profile& profile, const Ideals& ideals) {
  const auto count = slot(ideals.count());
  IdealSums sums;
  for (std::vector<double>* list : {&sums.forward, &sums.backward, &sums.parameters, &sums.crossing})
    list->resize(count);
  std::vector<std::vector<std::int32_t>> readers(profile.nodes.size());
  for (const auto& [from, to] : profile.edges) readers[slot(from)].push_back(to);
  for (std::int32_t ideal = 0; ideal < ideals.count(); ++ideal) {
    const auto own = slot(ideal);
    for (std::int32_t node = 0; node < static_cast<std::int32_t>(profile.nodes.size()); ++node) {
      if (!ideals.has(ideal, node)) continue;
      const ProfileNode& layer = profile.nodes[slot(node)];
      sums.forward[own] += layer.forward;
      sums.backward[own] += layer.backward;
      sums.parameters[own] += layer.parameters;
      for (const std::int32_t reader : readers[slot(node)]) {
        if (ideals.has(ideal, reader)) continue;
        sums.crossing[own] += layer.activations;
        break;
      }
    }
  }
  return sums;
}

Profile without_inputs(const Profile& profile) {
  std::vector<bool> reads(profile.nodes.size()), read(profile.nodes.size());
  for (const auto& [from, to] : profile.edges) read[slot(from)] = reads[slot(to)] = true;
  std::vector<std::int32_t> number(profile.nodes.size(), -1);
  Profile left;
  for (std::size_t i = 0; i < profile.nodes.size(); ++i) {
    const ProfileNode& node = profile.nodes[i];
    if (!reads[i] && node.description.starts_with("Input")) continue;
    if (!read[i] && node.description.starts_with("__getitem__")) continue;
    number[i] = static_cast<std::int32_t>(left.nodes.size());
    left.nodes.push_back(node);
  }
  for (const auto& [from, to] : profile.edges)
    if (number[slot(from)] >= 0 && number[slot(to)] >= 0)
      left.edges.emplace_back(number[slot(from)], number[slot(to)]);
  return left;
}

}  // namespace weft::partition
