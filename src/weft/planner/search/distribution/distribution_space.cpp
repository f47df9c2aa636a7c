#include "weft/planner/search/distribution/distribution_space.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/nearest.h"

namespace weft::search {

using distribute::AxisUse;
using distribute::Distribution;
using distribute::Shard;

namespace {

using List = std::vector<std::string>;

List joined(List a, const List& b) {
  for (const std::string& index : b)
    if (std::ranges::find(a, index) == a.end()) a.push_back(index);
  return a;
}

Status check_axis(const cluster::Cluster& cluster, std::string_view axis) {
  std::vector<std::string_view> names;
  for (const cluster::Axis& here : cluster.axes) names.push_back(here.name);
  if (std::ranges::find(names, axis) != names.end()) return {};
  std::string hint = did_you_mean(axis, names);
  if (hint.empty()) hint = fmt::format("its axes are {}", fmt::join(names, ", "));
  return user_error(fmt::format("a hint names axis {}, which {} does not have", axis, cluster.name),
                    std::move(hint));
}

}  // namespace

Result<DistributionSpace> DistributionSpace::make(const cluster::Cluster& cluster,
                                                  distribute::IndexRoles roles, FixedPart fixed) {
  for (const FixedPart::Slice& slice : fixed.slices) WEFT_TRY_STATUS(check_axis(cluster, slice.axis));
  for (const distribute::Exception& exception : fixed.exceptions)
    WEFT_TRY_STATUS(check_axis(cluster, exception.axis));
  for (const FixedDegree& one : fixed.degrees)
    if (!one.axis.empty()) WEFT_TRY_STATUS(check_axis(cluster, one.axis));
  return DistributionSpace(cluster, std::move(roles), std::move(fixed));
}

DistributionSpace::DistributionSpace(const cluster::Cluster& cluster, distribute::IndexRoles roles,
                                     FixedPart fixed)
    : roles_(std::move(roles)),
      fixed_(std::move(fixed)),
      cluster_(cluster),
      devices_(cluster.devices()),
      free_meshes_(meshes_of(cluster)) {
  List whole;
  for (const FixedPart::Slice& slice : fixed_.slices) whole.push_back(slice.axis);
  for (const distribute::Exception& exception : fixed_.exceptions) whole.push_back(exception.axis);
  meshes_ = whole.empty() ? free_meshes_ : meshes_of(cluster, whole);
}

DistributionSpace::List DistributionSpace::batch() const {
  return roles_.batch.empty() ? List() : List{roles_.batch.front()};
}

// Further indices beside model indices that are smaller than the number of devices.
DistributionSpace::List DistributionSpace::further() const {
  List list;
  for (const distribute::FurtherIndex& one : roles_.further)
    if (one.beside_size < devices_) list.push_back(one.index);
  return list;
}

// Whether the sequence is sliced before any model index. When sliced by heads, no rank needs the
// keys of another.
bool DistributionSpace::cuts_queries(const List& list) const {
  const auto is_attended = [&](const std::string& index) {
    return std::ranges::find(roles_.attended, index, &distribute::AttendedIndex::index) !=
           roles_.attended.end();
  };
  const auto is_models = [&](const std::string& index) {
    return std::ranges::find(roles_.model, index) != roles_.model.end();
  };
  return std::ranges::find_if(list, is_attended) < std::ranges::find_if(list, is_models);
}

Distribution DistributionSpace::by_heads(Distribution distribution, std::size_t axis) const {
  for (const distribute::AttendedIndex& one : roles_.attended)
    if (!one.entry.empty() && !one.heads.empty())
      distribution.exceptions.push_back({one.entry, distribution.mesh.axes[axis].name, one.heads});
  return distribution;
}

bool DistributionSpace::is_by_heads(const distribute::Exception& exception, std::string_view axis) const {
  if (exception.axis != axis || std::ranges::find(fixed_.exceptions, exception) != fixed_.exceptions.end())
    return false;
  return std::ranges::any_of(roles_.attended, [&](const distribute::AttendedIndex& one) {
    return one.entry == exception.tensor && one.heads == exception.index;
  });
}

DistributionSpace::List DistributionSpace::fixed_on(std::string_view axis) const {
  List list;
  for (const FixedPart::Slice& slice : fixed_.slices)
    if (slice.axis == axis) list = joined(std::move(list), {slice.index});
  return list;
}

DistributionSpace::List DistributionSpace::led_by_hints(std::string_view axis, List list) const {
  return joined(fixed_on(axis), list);
}

std::vector<DistributionSpace::List> DistributionSpace::lists_for(std::string_view axis) const {
  std::vector<List> lists;
  const List all = joined(roles_.model, further());
  for (List list : {batch(), roles_.model, joined(roles_.model, roles_.sequence),
                    joined(roles_.model, batch()), roles_.sequence, joined(batch(), roles_.sequence),
                    joined(roles_.expert, batch()), List(), all, joined(all, roles_.sequence)}) {
    list = led_by_hints(axis, std::move(list));
    if (std::ranges::find(lists, list) == lists.end()) lists.push_back(std::move(list));
  }
  return lists;
}

Distribution DistributionSpace::on(const plan::Mesh& mesh, std::vector<AxisUse> uses) const {
  Distribution made{mesh, std::move(uses), fixed_.exceptions};
  for (std::size_t a = 0; a < made.axes.size(); ++a)
    made.axes[a].slice = led_by_hints(mesh.axes[a].name, std::move(made.axes[a].slice));
  return made;
}

std::vector<Distribution> DistributionSpace::kept(std::vector<Distribution> found) const {
  std::erase_if(found, [&](const Distribution& one) { return !keeps(fixed_, cluster_, one, roles_); });
  return found;
}

// One kind of parallelism per mesh axis, as far as hints allow.
std::vector<Distribution> DistributionSpace::seeds_with_degrees(const MeshOption& option) const {
  std::vector<AxisUse> kinds = {{batch(), Shard::nothing}};
  if (fixed_.degree(Parallelism::tensor, 2) > 1)
    for (const List& list : {joined(roles_.model, roles_.sequence), roles_.model})
      if (!roles_.model.empty()) kinds.push_back({list, Shard::nothing});
  if (fixed_.degree(Parallelism::expert, 1) > 1 && !roles_.expert.empty())
    for (const List& list : {joined(roles_.expert, batch()), roles_.expert})
      kinds.push_back({list, Shard::nothing});
  if (fixed_.degree(Parallelism::context, 1) > 1 && cuts_queries(roles_.sequence))
    kinds.push_back({roles_.sequence, Shard::nothing, true});
  const std::size_t axes = option.mesh.axes.size();
  std::vector<Distribution> found;
  for (const Shard shard : {Shard::nothing, Shard::optimizer, Shard::parameters}) {
    std::vector<std::size_t> chosen(axes, 0);
    for (std::size_t at = 0; at < axes;) {
      std::vector<AxisUse> uses;
      for (const std::size_t kind : chosen) {
        uses.push_back(kinds[kind]);
        if (kind == 0) uses.back().shard = shard;
      }
      found.push_back(on(option.mesh, std::move(uses)));
      for (at = 0; at < axes && ++chosen[at] == kinds.size(); ++at) chosen[at] = 0;
    }
  }
  return kept(std::move(found));
}

std::vector<Distribution> DistributionSpace::seeds(const MeshOption& option) const {
  if (!fixed_.degrees.empty()) return seeds_with_degrees(option);
  const std::size_t axes = option.mesh.axes.size();
  const List model = joined(roles_.model, roles_.sequence);
  std::vector<Distribution> found;
  for (const Shard shard : {Shard::nothing, Shard::parameters}) {
    std::vector<AxisUse> uses(axes, {batch(), shard});
    found.push_back(on(option.mesh, uses));
    if (roles_.model.empty()) continue;
    if (shard == Shard::nothing)
      for (AxisUse& use : uses) use.shard = Shard::optimizer;
    uses.back() = {model, Shard::nothing};
    found.push_back(on(option.mesh, uses));
  }
  // Some operators by one model index, all others by batch.
  const auto fewest =
      std::ranges::min(meshes_, {}, [](const MeshOption& mesh) { return mesh.mesh.axes.size(); });
  if (axes == fewest.mesh.axes.size())
    for (const std::string& index : roles_.model)
      found.push_back(
          on(option.mesh, std::vector<AxisUse>(axes, {joined({index}, batch()), Shard::nothing})));
  return found;
}

std::vector<Distribution> DistributionSpace::neighbours(const Distribution& distribution) const {
  std::vector<Distribution> found;
  for (std::size_t a = 0; a < distribution.axes.size(); ++a) {
    const AxisUse& now = distribution.axes[a];
    const auto with = [&](AxisUse use) {
      Distribution other = distribution;
      other.axes[a] = std::move(use);
      std::erase_if(other.exceptions, [&](const distribute::Exception& exception) {
        return is_by_heads(exception, distribution.mesh.axes[a].name);
      });
      return other;
    };
    const auto add = [&](Distribution other) {
      if (other != distribution) found.push_back(std::move(other));
    };
    for (const List& list : lists_for(distribution.mesh.axes[a].name)) {
      add(with({list, now.shard}));
      if (!cuts_queries(list)) continue;
      add(with({list, now.shard, true}));
      if (Distribution plain = with({list, now.shard}), heads = by_heads(plain, a); heads != plain)
        add(std::move(heads));
    }
    for (const Shard shard : {Shard::nothing, Shard::optimizer, Shard::parameters}) {
      if (shard == now.shard) continue;
      found.push_back(distribution);
      found.back().axes[a].shard = shard;
    }
  }
  // Two neighbouring axes swap uses: what is sliced outside and inside.
  for (std::size_t a = 0; a + 1 < distribution.axes.size(); ++a) {
    if (distribution.axes[a] == distribution.axes[a + 1]) continue;
    std::vector<AxisUse> uses = distribution.axes;
    std::swap(uses[a], uses[a + 1]);
    found.push_back(on(distribution.mesh, std::move(uses)));
  }
  return kept(std::move(found));
}

std::vector<DistributionSpace::List> DistributionSpace::changed(const List& list, std::size_t fixed) const {
  std::vector<List> found;
  for (std::size_t k = fixed; k < list.size(); ++k) {
    found.push_back(list);
    found.back().erase(found.back().begin() + static_cast<std::ptrdiff_t>(k));
  }
  List universe =
      joined(joined(joined(joined(roles_.model, further()), roles_.expert), roles_.sequence), roles_.batch);
  for (const std::string& index : universe) {
    List without = list;
    if (const auto at = std::ranges::find(without, index); at != without.end()) {
      if (at - without.begin() < static_cast<std::ptrdiff_t>(fixed)) continue;
      without.erase(at);
    }
    List front = without;
    front.insert(front.begin() + static_cast<std::ptrdiff_t>(fixed), index);
    without.push_back(index);
    for (List* moved : {&front, &without})
      if (*moved != list && std::ranges::find(found, *moved) == found.end())
        found.push_back(std::move(*moved));
  }
  return found;
}

std::vector<Distribution> DistributionSpace::refinements(const Distribution& distribution) const {
  std::vector<Distribution> found;
  for (std::size_t a = 0; a < distribution.axes.size(); ++a)
    for (List& list : changed(distribution.axes[a].slice, fixed_on(distribution.mesh.axes[a].name).size())) {
      found.push_back(distribution);
      found.back().axes[a].slice = std::move(list);
    }
  return kept(std::move(found));
}

std::vector<Distribution> DistributionSpace::data_parallel() const {
  const plan::Mesh& mesh = free_meshes_.front().mesh;
  return {{mesh, std::vector<AxisUse>(mesh.axes.size(), {batch(), Shard::nothing}), {}}};
}

std::vector<Distribution> DistributionSpace::zero_3() const {
  const plan::Mesh& mesh = free_meshes_.front().mesh;
  std::vector<Distribution> found;
  // Parameters sharded over all ranks, and with a copy per unit of the outermost axis.
  for (const Shard outer : {Shard::parameters, Shard::optimizer}) {
    std::vector<AxisUse> uses(mesh.axes.size(), {batch(), Shard::parameters});
    uses.front().shard = outer;
    if (outer == Shard::parameters || uses.size() > 1) found.push_back({mesh, std::move(uses), {}});
  }
  return found;
}

std::vector<Distribution> DistributionSpace::megatron() const {
  std::vector<Distribution> found;
  if (roles_.model.empty()) return found;
  for (const MeshOption& option : free_meshes_) {
    const std::size_t axes = option.mesh.axes.size();
    // Only the innermost cluster axis is split for the model. Other factors would change nothing.
    bool useful = true;
    for (std::size_t a = 0; a + 2 < axes; ++a) useful &= option.cluster_axis[a] != option.cluster_axis[a + 1];
    if (axes >= 2 && option.cluster_axis[axes - 2] == option.cluster_axis[axes - 1])
      useful &= option.cluster_axis[axes - 1] == option.cluster_axis.back();
    if (!useful) continue;
    for (const List& model : {roles_.model, joined(roles_.model, roles_.sequence)})
      for (const Shard shard : {Shard::nothing, Shard::optimizer}) {
        std::vector<AxisUse> uses(axes, {batch(), shard});
        uses.back() = {model, Shard::nothing};
        found.push_back({option.mesh, std::move(uses), {}});
      }
  }
  // If there are more nodes than rows in the batch, the model is also sliced across some nodes.
  for (const MeshOption& option : free_meshes_) {
    const std::size_t axes = option.mesh.axes.size();
    if (axes != 3 || option.cluster_axis[0] != option.cluster_axis[1]) continue;
    for (const List& model : {roles_.model, joined(roles_.model, roles_.sequence)})
      for (const Shard shard : {Shard::nothing, Shard::optimizer})
        found.push_back(
            {option.mesh, {{batch(), shard}, {model, Shard::nothing}, {model, Shard::nothing}}, {}});
  }
  return found;
}

}  // namespace weft::search
