// weft/planner/search/distribution/distribution_space.h -- the search space of distributions.
//
//   seeds         per mesh: the batch everywhere; or the batch outside and model indices inside; or one
//                 model index where possible and the batch elsewhere
//   neighbours    one axis changes: another list of indices, or other sharding; instead of gathering
//                 keys for attention, ring attention, or attention by heads (Ulysses)
//   refinements   one index is added to, removed from, or moved in the list of one axis
//
// All of them satisfy the hints: a hinted axis is not split into factors, and hinted indices come
// first in its list. If hints fix degrees of parallelism, seeds and their neighbours have them.
#pragma once
#include <string>
#include <vector>

#include "weft/parallel/distribute/distribution.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/search/distribution/fixed_part.h"
#include "weft/planner/search/distribution/meshes.h"

namespace weft::search {

class DistributionSpace {
 public:
  // Fails if a hint names an axis that the cluster does not have, and lists those it has.
  static Result<DistributionSpace> make(const cluster::Cluster& cluster, distribute::IndexRoles roles,
                                        FixedPart fixed);

  const std::vector<MeshOption>& meshes() const { return meshes_; }
  // Exceptions for parts would violate the degrees.
  bool fixes_degrees() const { return !fixed_.degrees.empty(); }

  std::vector<distribute::Distribution> seeds(const MeshOption& option) const;
  std::vector<distribute::Distribution> neighbours(const distribute::Distribution& distribution) const;
  std::vector<distribute::Distribution> refinements(const distribute::Distribution& distribution) const;

  // Index lists that an axis of that name may slice, the simplest first.
  using List = std::vector<std::string>;
  std::vector<List> lists_for(std::string_view axis) const;

  // The families that EXPLAIN shows beside the choice, with all members. They ignore hints.
  std::vector<distribute::Distribution> data_parallel() const;
  std::vector<distribute::Distribution> megatron() const;
  std::vector<distribute::Distribution> zero_3() const;

 private:
  DistributionSpace(const cluster::Cluster& cluster, distribute::IndexRoles roles, FixedPart fixed);
  List batch() const;
  List further() const;
  bool cuts_queries(const List& list) const;
  std::vector<distribute::Distribution> seeds_with_degrees(const MeshOption& option) const;
  std::vector<distribute::Distribution> kept(std::vector<distribute::Distribution> found) const;
  distribute::Distribution by_heads(distribute::Distribution distribution, std::size_t axis) const;
  bool is_by_heads(const distribute::Exception& exception, std::string_view axis) const;
  List fixed_on(std::string_view axis) const;
  List led_by_hints(std::string_view axis, List list) const;
  distribute::Distribution on(const plan::Mesh& mesh, std::vector<distribute::AxisUse> uses) const;
  std::vector<List> changed(const List& list, std::size_t fixed) const;

  distribute::IndexRoles roles_;
  FixedPart fixed_;
  cluster::Cluster cluster_;
  std::int64_t devices_ = 1;
  std::vector<MeshOption> meshes_, free_meshes_;  // with hints, without
};

}  // namespace weft::search
