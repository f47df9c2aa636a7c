#include "weft/parallel/distribute/stage_meshes.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace weft::distribute {
namespace {

constexpr std::string_view kWritten =
    "stage=2: stage; stage 0 on data=4: slice b; stage 1 on data=2: slice b; stage 1 on gpu=2: slice h";

// An axis of a mesh as a range of its factors. Ranks are numbered with the last axis fastest.
// `outer` is the product of the sizes of the axes before it, and `inner` also includes this axis.
struct Piece {
  std::int64_t outer = 1, inner = 1;
  const OwnAxis* from = nullptr;
};
using Pieces = std::vector<Piece>;

std::int64_t ranks_of(const Pieces& pieces) { return pieces.empty() ? 1 : pieces.back().inner; }

Result<std::vector<Pieces>> meshes_by_stage(std::int32_t stages, const std::vector<OwnAxis>& own) {
  std::vector<Pieces> meshes(static_cast<std::size_t>(stages));
  for (const OwnAxis& axis : own) {
    if (axis.last >= stages)
      return user_error(fmt::format("there is no stage {}: stages are 0 to {}", axis.last, stages - 1), "",
                        axis.span);
    for (std::int32_t s = axis.first; s <= axis.last; ++s) {
      Pieces& mesh = meshes[static_cast<std::size_t>(s)];
      for (const Piece& piece : mesh)
        if (piece.from->axis.name == axis.axis.name)
          return user_error(fmt::format("stage {} has two axes {}", s, axis.axis.name), "", axis.span);
      const std::int64_t outer = ranks_of(mesh), inner = outer * axis.axis.ranks;
      if (inner > plan::kMostRanks)
        return user_error(fmt::format("stage {} has more than {} ranks", s, plan::kMostRanks), "", axis.span);
      mesh.push_back({outer, inner, &axis});
    }
  }
  for (std::size_t s = 0; s < meshes.size(); ++s) {
    if (meshes[s].empty())
      return user_error(fmt::format("stage {} has no mesh, but other stages have their own", s),
                        std::string(kWritten), own.front().span);
    if (ranks_of(meshes[s]) != ranks_of(meshes[0]))
      return user_error(
          fmt::format("all stages need the same number of ranks: stage 0 has {}, stage {} has {}",
                      ranks_of(meshes[0]), s, ranks_of(meshes[s])),
          "", meshes[s].back().from->span);
  }
  return meshes;
}

const Piece* around(const Pieces& mesh, std::int64_t outer, std::int64_t inner) {
  for (const Piece& piece : mesh)
    if (piece.outer <= outer && inner <= piece.inner) return &piece;
  return nullptr;
}

// The name of the first stage's axis that equals this range, else of one that contains it.
std::string name_for(const std::vector<Pieces>& meshes, std::int64_t outer, std::int64_t inner,
                     const plan::Mesh& taken) {
  std::string name;
  for (const bool just : {true, false})
    for (const Pieces& mesh : meshes) {
      const Piece* const piece = around(mesh, outer, inner);
      if (!name.empty() || piece == nullptr) continue;
      if (just && (piece->outer != outer || piece->inner != inner)) continue;
      if (!just || taken.find(piece->from->axis.name) < 0) name = piece->from->axis.name;
    }
  if (taken.find(name) < 0) return name;
  for (int number = 2;; ++number)
    if (std::string other = fmt::format("{}_{}", name, number); taken.find(other) < 0) return other;
}

struct Doing {
  std::vector<std::string> slice;
  Shard shard;
  bool ring;
  friend bool operator==(const Doing&, const Doing&) = default;
};
Doing doing(const AxisUse& use) { return {use.slice, use.shard, use.ring}; }

// The most common use becomes the axis' use; other stages are listed as overrides, in runs.
AxisUse joined(const std::vector<Doing>& by_stage) {
  const Doing* usual = &by_stage.front();
  for (const Doing& one : by_stage)
    if (std::ranges::count(by_stage, one) > std::ranges::count(by_stage, *usual)) usual = &one;
  AxisUse use{.slice = usual->slice, .shard = usual->shard, .ring = usual->ring};
  for (std::size_t s = 0; s < by_stage.size(); ++s) {
    const Doing& here = by_stage[s];
    if (here == *usual) continue;
    const auto stage = static_cast<std::int32_t>(s);
    if (s > 0 && here == by_stage[s - 1])
      use.in_stages.back().last = stage;
    else
      use.in_stages.push_back({stage, stage, here.slice, here.shard, here.ring});
  }
  return use;
}

}  // namespace

Status take_stage_meshes(Distribution& distribution, const std::vector<OwnAxis>& own) {
  const auto axis = stage_axis(distribution);
  if (!axis || distribution.mesh.axes.size() != 1)
    return user_error(axis ? "stages have their own meshes or share axes: found both"
                           : "a stage has a mesh, but no axis is a stage axis",
                      std::string(kWritten), own.front().span);
  const std::int32_t stages = distribution.mesh.axes[*axis].ranks;
  WEFT_TRY(meshes, meshes_by_stage(stages, own));
  std::map<std::int64_t, Span> ends;  // where axes end, and in whose text
  for (const Pieces& mesh : meshes)
    for (const Piece& piece : mesh)
      if (piece.inner > 1) ends.emplace(piece.inner, piece.from->span);
  std::int64_t outer = 1;
  for (const auto& [inner, span] : ends) {
    if (inner % outer != 0)
      return user_error(fmt::format("the meshes of two stages have blocks of {} and of {}, which do not nest",
                                    ranks_of(meshes[0]) / outer, ranks_of(meshes[0]) / inner),
                        "use numbers of ranks that divide each other, or reorder the axes", span);
    const std::string name = name_for(meshes, outer, inner, distribution.mesh);
    distribution.mesh.axes.push_back({name, static_cast<std::int32_t>(inner / outer)});
    std::vector<Doing> by_stage;
    for (const Pieces& mesh : meshes) by_stage.push_back(doing(around(mesh, outer, inner)->from->use));
    distribution.axes.push_back(joined(by_stage));
    outer = inner;
  }
  return plan::check(distribution.mesh);
}

Status check_in_stages(const Distribution& distribution) {
  if (!has_stage_meshes(distribution)) return {};
  const auto stages = stage_axis(distribution);
  if (!stages)
    return user_error("some stages use an axis differently, but no axis is a stage axis",
                      "stage=2: stage; data=2: slice b; gpu=2: slice h, in stage 0 slice b");
  const std::int32_t count = distribution.mesh.axes[*stages].ranks;
  for (std::size_t a = 0; a < distribution.axes.size(); ++a) {
    std::set<std::int32_t> said;
    for (const StageUse& own : distribution.axes[a].in_stages) {
      if (a == *stages) return user_error("the stage axis cannot be used for anything else");
      if (own.first < 0 || own.last >= count)
        return user_error(fmt::format("{} has another use in {}, but stages are 0 to {}",
                                      distribution.mesh.axes[a].name, print_stages(own.first, own.last),
                                      count - 1));
      for (std::int32_t s = own.first; s <= own.last; ++s)
        if (!said.insert(s).second)
          return user_error(
              fmt::format("the use of {} in stage {} is given twice", distribution.mesh.axes[a].name, s));
    }
  }
  return {};
}

std::string print_stages(std::int32_t first, std::int32_t last) {
  return first == last ? fmt::format("stage {}", first) : fmt::format("stages {} to {}", first, last);
}

std::string print_stage_mesh(const Distribution& distribution, std::int32_t stage) {
  const Distribution one = within_stage(as_in_stage(distribution, stage));
  std::string text;
  for (std::size_t a = 0; a < one.axes.size();) {
    const std::string& name = one.mesh.axes[a].name;
    std::int64_t ranks = one.mesh.axes[a].ranks;
    std::size_t next = a + 1;
    for (; next < one.axes.size() && one.axes[next] == one.axes[a]; ++next)
      ranks *= one.mesh.axes[next].ranks;
    const std::string use = print_use(one.axes[a]);
    text += fmt::format("{}{}={}{}{}", text.empty() ? "" : "; ", name, ranks, use.empty() ? "" : ": ", use);
    a = next;
  }
  return text;
}

}  // namespace weft::distribute
