// weft/collectives/synthesis/automorphism.h -- whether devices can change places without the wires noticing.
//
//   devices first, then what lies between them: switches, or the edges and limits of a step network
//
//   0 --(2)-- [a] --(2)-- 1        0<->1, 2<->3   keeps all arcs, and exchanges the switches with it
//   2 --(2)-- [b] --(2)-- 3        0<->2 alone    does not: 0 and 1 would no longer share a switch
//
// Who looks for symmetries proposes where devices go; what is not a device goes where what it is joined to goes,
// and of several that would do the first in order.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft::synthesis {

class ArcGraph {
 public:
  // Nodes [0, devices) are devices.
  ArcGraph(std::int32_t devices, std::int32_t nodes);

  // Marks of arcs with the same ends add up. REQUIRES: mark > 0
  void add(std::int32_t from, std::int32_t to, std::int64_t mark);
  // Once all arcs are there, before extend().
  void close();

  // Where every node goes when devices go to `devices`, -1 for what no arc joins; empty where that does not keep
  // every arc with its mark.
  std::vector<std::int32_t> extend(const std::vector<std::int32_t>& devices) const;

  std::int32_t devices() const { return devices_; }

 private:
  using Signature = std::vector<std::pair<std::int32_t, std::int64_t>>;  // negative: comes from there

  bool keeps_arcs(const std::vector<std::int32_t>& image) const;

  std::int32_t devices_, nodes_;
  std::unordered_map<std::int64_t, std::int64_t> marks_;  // by ends
  std::vector<Signature> around_;
};

}  // namespace weft::synthesis
