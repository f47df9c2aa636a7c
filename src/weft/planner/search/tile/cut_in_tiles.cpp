#include "weft/planner/search/tile/cut_in_tiles.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/parallel/distribute/edit_plan.h"
#include "weft/parallel/distribute/tiles.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"

namespace weft::search {
namespace {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

class TiledPlan {
 public:
  TiledPlan(const distribute::DistributedPlan& plan, const std::vector<bool>& region, const TileIndex& along,
            std::int64_t count)
      : plan_(plan),
        region_(region),
        along_(along),
        count_(count),
        edit_(plan),
        index_(edit_.symbol(along.index)),
        block_(edit_.graph().symbol(fmt::format("{}_block", plan.graph.text(along.index)))),
        // An exchange of blocks moves along the block index.
        by_blocks_(plan.graph, edit_.graph(),
                   [this](Symbol index) { return index == along_.index ? block_ : edit_.symbol(index); }),
        tiles_(plan.graph.value_count()),
        is_output_(plan.graph.value_count()) {
    for (const plan::Output& output : plan.graph.outputs()) is_output_[output.value.value] = true;
  }

  Result<distribute::DistributedPlan> run() {
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n) {
      const NodeView node = plan_.graph.view(NodeId(n));
      if (region_[n]) {
        WEFT_TRY_STATUS(cut(node));
        continue;
      }
      edit_.adopt_context(node.id());
      for (const ValueId input : node.node().inputs) WEFT_TRY_STATUS(join(input));
      WEFT_TRY_STATUS(edit_.keep(node.id()));
    }
    return edit_.finish();
  }

 private:
  bool has_index(ValueId value) const { return plan_.graph.type(value).has(along_.index); }

  Status cut(const NodeView& node) {
    edit_.adopt_context(node.id());
    for (const ValueId input : node.node().inputs)
      if (has_index(input)) WEFT_TRY_STATUS(slice(input));
    for (std::size_t i = 0; i < static_cast<std::size_t>(count_); ++i) {
      std::vector<ValueId> inputs;
      for (const ValueId input : node.node().inputs)
        inputs.push_back(has_index(input) ? tiles_[input.value][i] : edit_.now(input));
      WEFT_TRY(made, add(node, inputs));
      for (std::size_t k = 0; k < node.result_count(); ++k)
        tiles_[node.result(k).value].push_back(edit_.graph().result(made, k));
    }
    for (std::size_t k = 0; k < node.result_count(); ++k)
      if (is_output_[node.result(k).value]) WEFT_TRY_STATUS(join(node.result(k)));
    return {};
  }

  Result<NodeId> add(const NodeView& node, std::span<const ValueId> inputs) {
    if (along_.blocks == 1) return edit_.add_again(node.id(), inputs);
    if (ops::find_communication(node.op()) != nullptr) return by_blocks_.node(node.id(), inputs);
    if (&node.op() != &ops::contract()) return edit_.add_again(node.id(), inputs);
    std::vector<Symbol> to;
    for (const Symbol index : node.indices(0)) {
      if (index == along_.index) to.push_back(block_);
      to.push_back(edit_.symbol(index));
    }
    const plan::AttributeValue kept = std::span<const Symbol>(to);
    return edit_.add_again(node.id(), inputs, &kept);
  }

  // Slices a whole value into tiles, once.
  Status slice(ValueId value) {
    std::vector<ValueId>& tiles = tiles_[value.value];
    if (!tiles.empty()) return {};
    ValueId whole = edit_.now(value);
    std::int64_t size = plan_.graph.type(value).size_of(along_.index);
    if (along_.blocks > 1) {
      if (size % along_.blocks != 0)
        return user_error(fmt::format("{} of {} does not split into {} equal blocks",
                                      plan_.graph.text(along_.index), size, along_.blocks));
      size /= along_.blocks;
      const std::array<plan::Dim, 2> dims = {plan::Dim{block_, along_.blocks}, plan::Dim{index_, size}};
      WEFT_TRY(split, ops::add_split(edit_.graph(), whole, index_, dims));
      whole = split;
    }
    if (size < count_)
      return user_error(
          fmt::format("{} of {} cannot be cut into {} tiles", plan_.graph.text(along_.index), size, count_));
    for (const distribute::Stretch& tile : distribute::tiles_of(size, count_)) {
      WEFT_TRY(part, ops::add_slice(edit_.graph(), whole, index_, tile.begin, tile.end));
      tiles.push_back(part);
    }
    return {};
  }

  // Concatenates the tiles of a value, once.
  Status join(ValueId value) {
    if (edit_.now(value).valid()) return {};
    WEFT_TRY(joined, ops::add_concat(edit_.graph(), tiles_[value.value], index_));
    if (along_.blocks > 1) {
      const std::array<Symbol, 2> both = {block_, index_};
      WEFT_TRY(merged, ops::add_merge(edit_.graph(), joined, both, index_));
      joined = merged;
    }
    edit_.become(value, joined);
    return {};
  }

  const distribute::DistributedPlan& plan_;
  const std::vector<bool>& region_;
  const TileIndex along_;
  const std::int64_t count_;
  distribute::PlanEdit edit_;
  const Symbol index_, block_;  // in the new plan
  plan::Transplant by_blocks_;
  std::vector<std::vector<ValueId>> tiles_;  // by value
  std::vector<bool> is_output_;
};

}  // namespace

Result<distribute::DistributedPlan> cut_in_tiles(const distribute::DistributedPlan& plan,
                                                 const std::vector<bool>& region, const TileIndex& along,
                                                 std::int64_t tiles) {
  return TiledPlan(plan, region, along, tiles).run();
}

}  // namespace weft::search
