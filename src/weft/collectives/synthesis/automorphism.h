// weft/collectives/synthesis/automorphism.h -- extends device permutations to graph symmetries.
//
//   devices first, then the other nodes: switches, or the edges and limits of a step network
//
//   0 --(2)-- [a] --(2)-- 1        0<->1, 2<->3   keeps all arcs, and exchanges the switches with it
//   2 --(2)-- [b] --(2)-- 3        0<->2 alone    does not: 0 and 1 would no longer share a switch
//
// The caller proposes a permutation of the devices. The images of other nodes follow from their
// neighbours; among several candidates the first is taken.
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

  // Marks of parallel arcs add up.
  // REQUIRES: mark > 0
  void add(std::int32_t from, std::int32_t to, std::int64_t mark);
  // Call it after all arcs were added, before extend().
  void close();

  // Extends the map `devices` to all nodes; -1 for isolated nodes. Empty if the map does not keep
  // every arc and its mark.
  std::vector<std::int32_t> extend(const std::vector<std::int32_t>& devices) const;

  std::int32_t devices() const { return devices_; }

 private:
  using Signature = std::vector<std::pair<std::int32_t, std::int64_t>>;  // negative mark: an incoming arc

  bool keeps_arcs(const std::vector<std::int32_t>& image) const;

  std::int32_t devices_, nodes_;
  std::unordered_map<std::int64_t, std::int64_t> marks_;  // by ends
  std::vector<Signature> around_;
};

}  // namespace weft::synthesis
