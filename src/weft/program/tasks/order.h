// weft/program/tasks/order.h -- chooses the index order in memory of a contraction's result.
//
// The plan leaves it open, and it determines how many matrix products a contraction takes. In a
// transformer, heads written as [b, s, h, e] come from one large product; as [b, h, s, e] they
// would take one product per head and sentence. The readers of the result matter too, so the choice
// considers them.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/program/tasks/place.h"

namespace weft::program {

// The nodes that read each value.
class Readers {
 public:
  explicit Readers(const plan::Graph& graph);

  std::span<const plan::NodeId> of(plan::ValueId value) const {
    return std::span(nodes_).subspan(begins_[value.value], begins_[value.value + 1] - begins_[value.value]);
  }

 private:
  std::vector<std::uint32_t> begins_;
  std::vector<plan::NodeId> nodes_;
};

// The indices of a place from slowest to fastest. Repeated ones (stride 0) come first.
Order order_of(const Place& place);

// Caches the orders chosen for contractions of one graph, so that identical layers share them.
class ProductOrders {
 public:
  explicit ProductOrders(const Readers& readers) : readers_(readers) {}

  // For a contraction of two values stored at `a` and `b`.
  Order choose(const plan::NodeView& contraction, const Place& a, const Place& b);
  // The order that suits the first product reading the value, possibly after pointwise nodes:
  // indices that distinguish its matrices come first, so that the rest of a side is one loop. The
  // value's own order if no product reads it.
  Order with_matrices_first(const plan::Graph& graph, plan::ValueId value) const;

 private:
  const Readers& readers_;
  std::map<std::vector<std::uint64_t>, Order> chosen_;  // keyed by everything that a choice depends on
};

}  // namespace weft::program
