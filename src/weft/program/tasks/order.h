// weft/program/tasks/order.h -- in what order the indices of a contraction's result should lie in memory.
//
// The plan leaves it open, and it decides how many matrix products a contraction takes. In a
// transformer, heads written as [b, s, h, e] come out of one large product; as [b, h, s, e] they
// would take one for each head of each sentence. What is done with the result counts too, so the
// choice looks at its readers.
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

// The orders chosen for contractions of one graph, so that those of layers that are alike are chosen once.
class ProductOrders {
 public:
  explicit ProductOrders(const Readers& readers) : readers_(readers) {}

  // For a contraction of two values that lie at `a` and `b`.
  Order choose(const plan::NodeView& contraction, const Place& a, const Place& b);
  // As the first product that reads the value would have it, perhaps after pointwise work: what tells its matrices apart
  // comes first, so that the rest of a side is one. The value's own order where no product does.
  Order with_matrices_first(const plan::Graph& graph, plan::ValueId value) const;

 private:
  const Readers& readers_;
  std::map<std::vector<std::uint64_t>, Order> chosen_;  // by all that a choice looks at
};

}  // namespace weft::program
