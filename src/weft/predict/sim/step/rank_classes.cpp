#include "weft/predict/sim/step/rank_classes.h"

#include <algorithm>
#include <map>
#include <set>

#include "weft/base/hash.h"

namespace weft::sim {
namespace {

// How an index is sliced: its size, and by which axes, outermost first.
struct Cut {
  std::int64_t size = 0;
  std::vector<std::size_t> axes;
  std::int64_t before = 0, after = 0;  // halos

  friend auto operator<=>(const Cut&, const Cut&) = default;
};

bool is_even(const Cut& cut, const plan::Mesh& mesh) {
  if (cut.before > 0 || cut.after > 0) return false;  // the outermost blocks have a halo on one side only
  std::int64_t size = cut.size;
  for (const std::size_t axis : cut.axes) {
    if (size % mesh.axes[axis].ranks != 0) return false;
    size /= mesh.axes[axis].ranks;
  }
  return true;
}

// The cuts that give ranks different sizes.
std::set<Cut> uneven_cuts(const plan::Graph& graph, const plan::Mesh& mesh,
                          std::span<const plan::Layout> layouts) {
  std::set<Cut> cuts;
  Cut cut;
  for (std::size_t v = 0; v < layouts.size(); ++v)
    for (const plan::Dim& dim : graph.type(plan::ValueId(v)).dims) {
      cut.size = dim.size;
      cut.axes.clear();
      cut.before = cut.after = 0;
      for (std::size_t axis = 0; axis < layouts[v].axes.size(); ++axis)
        if (const plan::AxisLayout& held = layouts[v].axes[axis]; held.slices(dim.index)) {
          cut.axes.push_back(axis);
          cut.before = held.before;
          cut.after = held.after;
        }
      if (!cut.axes.empty() && !is_even(cut, mesh)) cuts.insert(cut);
    }
  return cuts;
}

// Assigns equal numbers to equal keys.
class Numberer {
 public:
  std::int32_t operator()(const Digest& key) {
    return numbers_.try_emplace(key, static_cast<std::int32_t>(numbers_.size())).first->second;
  }
  std::size_t count() const { return numbers_.size(); }

 private:
  std::map<Digest, std::int32_t> numbers_;
};

// Calls visit(first, stride, ranks) for every group of the axis: its ranks are first, first +
// stride, ..
template <class Visit>
void for_each_group(const plan::Mesh& mesh, std::size_t axis, Visit&& visit) {
  std::int32_t stride = 1;
  for (std::size_t inner = axis + 1; inner < mesh.axes.size(); ++inner) stride *= mesh.axes[inner].ranks;
  const std::int32_t ranks = mesh.axes[axis].ranks, block = stride * ranks, all = mesh.ranks();
  for (std::int32_t begin = 0; begin < all; begin += block)
    for (std::int32_t first = begin; first < begin + stride; ++first) visit(first, stride, ranks);
}

}  // namespace

Numbering rank_kinds(const plan::Graph& graph, const plan::Mesh& mesh,
                     std::span<const plan::Layout> layouts) {
  const std::set<Cut> cuts = uneven_cuts(graph, mesh, layouts);
  Numbering kinds(static_cast<std::size_t>(mesh.ranks()), 0);
  if (cuts.empty()) return kinds;
  Numberer number;
  for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank) {
    Hasher key;
    for (const Cut& cut : cuts) {
      plan::Share share{0, cut.size};
      for (const std::size_t axis : cut.axes) {
        const plan::Share inner =
            plan::share_of(share.size, mesh.axes[axis].ranks, mesh.coordinate(rank, axis));
        share = {share.begin + inner.begin, inner.size};
      }
      const plan::Share held = plan::with_borders(share, cut.before, cut.after, cut.size);
      key.number(static_cast<std::uint64_t>(share.size));
      key.number(static_cast<std::uint64_t>(share.begin - held.begin));
      key.number(static_cast<std::uint64_t>(held.size));
    }
    kinds[static_cast<std::size_t>(rank)] = number(key.digest());
  }
  return kinds;
}

Numbering rank_classes(const plan::Mesh& mesh, std::span<const std::int32_t> kinds) {
  Numbering classes(kinds.begin(), kinds.end());
  std::size_t count = std::set<std::int32_t>(kinds.begin(), kinds.end()).size();
  std::vector<std::int32_t> company;
  for (;;) {
    if (count <= 1) return classes;
    std::vector<Hasher> keys(classes.size());
    for (std::size_t rank = 0; rank < classes.size(); ++rank)
      keys[rank].number(static_cast<std::uint64_t>(classes[rank]));
    for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis)
      for_each_group(mesh, axis, [&](std::int32_t first, std::int32_t stride, std::int32_t ranks) {
        company.clear();
        for (std::int32_t i = 0; i < ranks; ++i)
          company.push_back(classes[static_cast<std::size_t>(first + i * stride)]);
        std::ranges::sort(company);
        Hasher group;
        for (const std::int32_t number : company) group.number(static_cast<std::uint64_t>(number));
        for (std::int32_t i = 0; i < ranks; ++i)
          keys[static_cast<std::size_t>(first + i * stride)].digest_of(group.digest());
      });
    Numberer number;
    for (std::size_t rank = 0; rank < classes.size(); ++rank) classes[rank] = number(keys[rank].digest());
    if (number.count() == count) return classes;
    count = number.count();
  }
}

Meetings find_meetings(const plan::Mesh& mesh, std::span<const std::int32_t> classes) {
  Meetings meetings;
  const std::size_t count =
      classes.empty() ? 0 : static_cast<std::size_t>(*std::ranges::max_element(classes)) + 1;
  constexpr std::uint32_t kNone = 0xffff'ffff;
  meetings.of_axis.assign(mesh.axes.size(), std::vector<std::uint32_t>(count, kNone));
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    std::vector<std::uint32_t>& of_class = meetings.of_axis[axis];
    for_each_group(mesh, axis, [&](std::int32_t first, std::int32_t stride, std::int32_t ranks) {
      if (of_class[static_cast<std::size_t>(classes[static_cast<std::size_t>(first)])] != kNone) return;
      Meeting meeting{axis, {}};
      for (std::int32_t i = 0; i < ranks; ++i)
        meeting.classes.push_back(
            static_cast<std::uint32_t>(classes[static_cast<std::size_t>(first + i * stride)]));
      std::ranges::sort(meeting.classes);
      meeting.classes.erase(std::unique(meeting.classes.begin(), meeting.classes.end()),
                            meeting.classes.end());
      for (const std::uint32_t c : meeting.classes)
        of_class[c] = static_cast<std::uint32_t>(meetings.all.size());
      meetings.all.push_back(std::move(meeting));
    });
  }
  return meetings;
}

}  // namespace weft::sim
