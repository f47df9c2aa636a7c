// weft/planner/search/distribution/distribution_space.h -- the distributions a search may look at, and which lie next to which.
//
//   seeds         on a mesh: batches everywhere, or batches outside and the model's own indices inside,
//                 or one of those indices where there is one and batches elsewhere
//   neighbours    one axis does something else: another list, other sharding; where keys of attention would be
//                 gathered, they go around (ring attention), or attention alone is cut by heads (Ulysses)
//   refinements   one index more or less, or elsewhere, in the list of one axis
//
// What hints fix stands in all of them: a hinted axis is not cut in factors, and hinted indices
// lead its list. Where hints fix degrees of parallelism, seeds have them, and so have all that lie next to these.
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
  // Fails on a hint about an axis that the cluster lacks, naming those it has.
  static Result<DistributionSpace> make(const cluster::Cluster& cluster, distribute::IndexRoles roles,
                                        FixedPart fixed);

  const std::vector<MeshOption>& meshes() const { return meshes_; }
  // Parts that differ would not have them.
  bool fixes_degrees() const { return !fixed_.degrees.empty(); }

  std::vector<distribute::Distribution> seeds(const MeshOption& option) const;
  std::vector<distribute::Distribution> neighbours(const distribute::Distribution& distribution) const;
  std::vector<distribute::Distribution> refinements(const distribute::Distribution& distribution) const;

  // What an axis of that name may be for, the plainest first.
  using List = std::vector<std::string>;
  std::vector<List> lists_for(std::string_view axis) const;

  // The families that EXPLAIN sets beside the choice, every member of each. Hints are not heeded.
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
  std::vector<MeshOption> meshes_, free_meshes_;  // under hints, and whatever hints say
};

}  // namespace weft::search
