// weft/plan/spmd/localizer.h -- builds the plan of one rank, node after node.
//
//   localize.cpp            the walk: what is left out, what a rank without a share adds
//   localize_compute.cpp    a node on this rank's shares
//   localize_exchange.cpp   this rank's side of a communication
//   localize_ring.cpp       attention whose keys go around
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/local_exchange.h"
#include "weft/plan/spmd/local_windows.h"
#include "weft/plan/spmd/localize.h"

namespace weft::spmd {

class Localizer {
 public:
  Localizer(const plan::Graph& graph, const plan::Mesh& mesh, std::span<const plan::Layout> layouts,
            std::int32_t rank, Exchanges exchanges);

  Result<LocalPlan> run() &&;

 private:
  Symbol here(Symbol symbol) const { return symbol.valid() ? symbols_[symbol.value] : symbol; }
  std::vector<plan::Share> shares_of(plan::ValueId value) const;

  // The type of a global value's dims at these sizes.
  Result<plan::TypeId> sized(const plan::Type& type, std::span<const std::int64_t> sizes);
  Result<plan::TypeId> local_type(plan::ValueId value);
  // An input that stands for a result which this rank does not compute.
  Status receive(std::string_view how, plan::ValueId result);
  // A result that this rank adds nothing to.
  Status add_neutral(plan::ValueId result);
  Status add(const plan::NodeView& node);
  Status add_neutrals(const plan::NodeView& node);
  Status leave(const plan::NodeView& node);

  // This rank's side of a communication. Where a rank keeps a part of what it has, or is alone along the
  // axis, nothing is sent.
  Status exchange(const plan::NodeView& node, const ops::Communication& op);
  // Of several values at once. What is empty here is empty on all ranks of the group, and stays away.
  Status own_addends(const plan::NodeView& node, std::int32_t ranks);
  Status exchange_bucket(const plan::NodeView& node, const ops::LocalExchange& what);
  // Where it has nothing along another index, neither has the rest of its group.
  Status fetch_borders(const plan::NodeView& node, const ops::Communication& op,
                       const ops::Exchange& exchange);
  Result<plan::ValueId> own_block(const plan::NodeView& node, plan::ValueId operand, Symbol along);
  // True for a result that grows along an index from nothing of its operands': rows added into, positions.
  // No layout of the operands cuts it, but a rank that keeps a block need not make the rest.
  static bool makes_any_part(const plan::NodeView& maker, Symbol along);
  // A node of the local plan once more, for a part of its result. Nobody needs the first if this was its
  // only reader.
  Result<plan::ValueId> part_made(const plan::NodeView& maker, plan::Share part);

  // The node on this rank's shares; along positional loops it is told where they lie, or where it cannot be,
  // the shares are laid in zeros.
  Status compute(const plan::NodeView& node);
  // Attention on an axis where keys go around (ring.h): one step for each rank along it.
  Status go_around(const plan::NodeView& node, std::size_t axis);
  // What this rank's windows see of an operand, which may be held with wider borders.
  Result<plan::ValueId> within_windows(const plan::NodeView& node, const plan::Signature& signature,
                                       std::span<const LocalWindows> windows, std::size_t i,
                                       plan::ValueId value);
  // A gradient that was computed for all that its windows see is this rank's for its own block alone.
  Result<plan::ValueId> without_neighbours(const plan::NodeView& node, const plan::Signature& signature,
                                           std::span<const LocalWindows> windows, std::size_t k,
                                           plan::ValueId value);
  Status tell_place(const plan::NodeView& node, const plan::Loop& loop,
                    std::vector<plan::AttributeValue>& attributes);
  static bool is_positional(const plan::Signature& signature, std::vector<std::int8_t> plan::Loop::*side,
                            std::size_t which, std::size_t dim);
  Result<plan::ValueId> placed(const plan::NodeView& node, const plan::Signature& signature, std::size_t i);
  Result<plan::ValueId> trimmed(const plan::NodeView& node, const plan::Signature& signature, std::size_t k,
                                plan::ValueId value);
  // Types that attributes hold follow the results' sizes, whose indices they name. A layout stays behind.
  Result<std::vector<plan::AttributeValue>> attributes_of(
      const plan::NodeView& node, const std::vector<std::vector<std::int64_t>>& sizes);
  std::span<const Symbol> indices_here(std::span<const Symbol> indices);

  const plan::Graph& graph_;
  const plan::Mesh& mesh_;
  std::span<const plan::Layout> layouts_;
  std::int32_t rank_;
  Exchanges exchanges_;
  std::vector<Symbol> symbols_;             // of the global plan, here
  std::vector<std::vector<Symbol>> lists_;  // attributes on their way into the local plan
  LocalPlan local_;
};

bool is_empty(std::span<const plan::Share> shares);

}  // namespace weft::spmd
