#include "weft/planner/search/distribution/fixed_part.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/parallel/distribute/parallelism.h"
#include "weft/predict/cost/mesh_links.h"

namespace weft::search {
namespace {

using distribute::Degrees;
using distribute::Distribution;

constexpr std::string_view kWords[] = {"DP", "TP", "PP", "EP", "CP", "ZERO"};

std::int64_t ranks_of(const Degrees& degrees, Parallelism kind) {
  switch (kind) {
    case Parallelism::data: return degrees.data;
    case Parallelism::tensor: return degrees.tensor;
    case Parallelism::pipeline: return degrees.pipeline;
    case Parallelism::expert: return degrees.expert;
    case Parallelism::context: return degrees.context;
    case Parallelism::zero: break;
  }
  return 1;
}

// Whether all ranks that slice the batch shard optimizer states (1), or parameters too (3).
bool has_zero(const Degrees& degrees, std::int64_t stage) {
  const std::int64_t optimizer = stage == 1 ? degrees.data : 1, parameters = stage == 3 ? degrees.data : 1;
  return (stage == 0 || degrees.data > 1) && degrees.optimizer == optimizer &&
         degrees.parameters == parameters;
}

// Whether all mesh axes with this kind of parallelism are on the required cluster axis.
bool is_placed(const FixedDegree& fixed, const cluster::Cluster& cluster, const Distribution& distribution,
               const distribute::IndexRoles& roles) {
  if (fixed.axis.empty()) return true;
  const auto named = std::ranges::find(cluster.axes, fixed.axis, &cluster::Axis::name);
  for (std::size_t a = 0; a < distribution.axes.size(); ++a) {
    const plan::MeshAxis& axis = distribution.mesh.axes[a];
    Distribution alone;
    alone.mesh.axes = {axis};
    alone.axes = {distribution.axes[a]};
    if (ranks_of(degrees_of(alone, roles), fixed.kind) == 1) continue;
    const cluster::Axis* const under = cost::axis_under(cluster, axis.name);
    if (under == nullptr || named == cluster.axes.end()) return false;
    if (fixed.within ? under <= &*named : under != &*named) return false;
  }
  return true;
}

}  // namespace

std::int64_t FixedPart::degree(Parallelism kind, std::int64_t free) const {
  const auto found = std::ranges::find(degrees, kind, &FixedDegree::kind);
  return found == degrees.end() ? free : found->degree;
}

std::string print(const std::vector<FixedDegree>& degrees) {
  std::vector<std::string> said;
  for (const FixedDegree& one : degrees) {
    said.push_back(fmt::format("{} {}", kWords[static_cast<std::size_t>(one.kind)], one.degree));
    if (!one.axis.empty()) said.back() += fmt::format(" {} {}", one.within ? "WITHIN" : "ON", one.axis);
  }
  return fmt::format("{}", fmt::join(said, ", "));
}

bool keeps(const FixedPart& fixed, const cluster::Cluster& cluster, const Distribution& distribution,
           const distribute::IndexRoles& roles) {
  if (fixed.degrees.empty()) return true;
  const Degrees all = degrees_of(distribution, roles);
  return std::ranges::all_of(fixed.degrees, [&](const FixedDegree& one) {
    return one.kind == Parallelism::zero
               ? has_zero(all, one.degree)
               : ranks_of(all, one.kind) == one.degree && is_placed(one, cluster, distribution, roles);
  });
}

}  // namespace weft::search
