// weft/plan/spmd/localizer.h -- builds the plan of one rank, node by node.
//
//   localize.cpp            traversal: which nodes are left out, neutral elements for empty shares
//   localize_compute.cpp    a node on this rank's shares
//   localize_exchange.cpp   this rank's side of a communication
//   localize_ring.cpp       ring attention
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

  // The type of a global value with these local sizes.
  Result<plan::TypeId> sized(const plan::Type& type, std::span<const std::int64_t> sizes);
  Result<plan::TypeId> local_type(plan::ValueId value);
  // Adds an input for a result that this rank does not compute.
  Status receive(std::string_view how, plan::ValueId result);
  // Adds a result to which this rank contributes nothing.
  Status add_neutral(plan::ValueId result);
  Status add(const plan::NodeView& node);
  Status add_neutrals(const plan::NodeView& node);
  Status leave(const plan::NodeView& node);

  // This rank's side of a communication. If a rank only keeps a part of its own value, or is alone
  // along the axis, nothing is sent.
  Status exchange(const plan::NodeView& node, const ops::Communication& op);
  // own_addends() scales a rank's addends instead of communicating. exchange_bucket() exchanges
  // several values in one call; it leaves out empty ones, which are empty on all ranks of the
  // group.
  Status own_addends(const plan::NodeView& node, std::int32_t ranks);
  Status exchange_bucket(const plan::NodeView& node, const ops::LocalExchange& what);
  // If the share is empty along another index, so is that of every rank in the group.
  Status fetch_borders(const plan::NodeView& node, const ops::Communication& op,
                       const ops::Exchange& exchange);
  Result<plan::ValueId> own_block(const plan::NodeView& node, plan::ValueId operand, Symbol along);
  // True for a result that has an index none of its operands has: rows added into, positions. No
  // layout of the operands slices it, but a rank that keeps a block need not compute the rest.
  static bool can_make_any_block(const plan::NodeView& maker, Symbol along);
  // A second copy of a local node that computes only a part of its result. The first is dead if
  // this was its only reader.
  Result<plan::ValueId> recompute_block(const plan::NodeView& maker, plan::Share part);

  // Runs the node on this rank's shares. Positional loops get their start in an attribute; if there
  // is none, the shares are padded with zeros.
  Status compute(const plan::NodeView& node);
  // Ring attention along an axis (ring.h): one step per rank.
  Status add_ring_attention(const plan::NodeView& node, std::size_t axis);
  // The part of an operand that this rank's windows see; the operand may have wider borders.
  Result<plan::ValueId> within_windows(const plan::NodeView& node, const plan::Signature& signature,
                                       std::span<const LocalWindows> windows, std::size_t i,
                                       plan::ValueId value);
  // A gradient is computed for everything its windows see; only the rank's own block is kept.
  Result<plan::ValueId> without_neighbours(const plan::NodeView& node, const plan::Signature& signature,
                                           std::span<const LocalWindows> windows, std::size_t k,
                                           plan::ValueId value);
  Status set_position_attributes(const plan::NodeView& node, const plan::Loop& loop,
                                 std::vector<plan::AttributeValue>& attributes);
  static bool is_positional(const plan::Signature& signature, std::vector<std::int8_t> plan::Loop::*side,
                            std::size_t which, std::size_t dim);
  Result<plan::ValueId> placed(const plan::NodeView& node, const plan::Signature& signature, std::size_t i);
  Result<plan::ValueId> trimmed(const plan::NodeView& node, const plan::Signature& signature, std::size_t k,
                                plan::ValueId value);
  // Types in attributes get the local sizes of the results' indices. A source's layout is dropped.
  Result<std::vector<plan::AttributeValue>> attributes_of(
      const plan::NodeView& node, const std::vector<std::vector<std::int64_t>>& sizes);
  std::span<const Symbol> indices_here(std::span<const Symbol> indices);

  const plan::Graph& graph_;
  const plan::Mesh& mesh_;
  std::span<const plan::Layout> layouts_;
  std::int32_t rank_;
  Exchanges exchanges_;
  std::vector<Symbol> symbols_;             // global symbol -> local symbol
  std::vector<std::vector<Symbol>> lists_;  // index lists of the node being added
  LocalPlan local_;
};

bool is_empty(std::span<const plan::Share> shares);

}  // namespace weft::spmd
