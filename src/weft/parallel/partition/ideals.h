// weft/parallel/partition/ideals.h -- the ideals of a DAG: the sets of nodes that hold, with a node, all before it.
//
//        a -> b -> d        {} a ab ac abc abcd: six ideals
//        a -> c -> d
//
// What the first stages of a pipeline hold together is an ideal, and a stage is the difference of two. A split
// into stages is therefore a chain of ideals, from none to all, and dynamic programming over them meets every
// split of any DAG, not only those along one order of its nodes.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "weft/base/result.h"

namespace weft::partition {

// A number of a node, an ideal or a stage as a place in a vector.
constexpr std::size_t slot(std::int32_t number) { return static_cast<std::size_t>(number); }

struct Dag {
  std::int32_t nodes = 0;
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;  // from, to; repeated ones count once
};

// The nodes in an order in which edges go forward, the lowest first where several may come next; an error that
// names a node on a cycle where there is none.
Result<std::vector<std::int32_t>> topological_order(const Dag& dag);

class Ideals {
 public:
  struct Step {
    std::int32_t node;   // what is added
    std::int32_t ideal;  // what it leads to
  };

  std::int32_t count() const { return static_cast<std::int32_t>(first_.size()) - 1; }
  std::int32_t none() const { return 0; }
  std::int32_t all() const { return count() - 1; }
  // Smaller ideals have lower numbers.
  bool has(std::int32_t ideal, std::int32_t node) const {
    const std::size_t word = static_cast<std::size_t>(ideal) * words_ + static_cast<std::size_t>(node) / 64;
    return (bits_[word] >> (node % 64)) & 1;
  }
  // Whether every node of one is in the other.
  bool within(std::int32_t inner, std::int32_t outer) const;
  std::span<const Step> steps(std::int32_t ideal) const {
    const auto at = static_cast<std::size_t>(ideal);
    return std::span(steps_).subspan(first_[at], first_[at + 1] - first_[at]);
  }
  // The nodes of `outer` that are not in `inner`, ascending.
  std::vector<std::int32_t> between(std::int32_t inner, std::int32_t outer) const;
  // Whether these are all the ideals of the DAG, or those along one order of its nodes.
  bool complete() const { return complete_; }

 private:
  friend Ideals ideals_of(const Dag&, std::span<const std::int32_t>, std::int32_t);
  bool enumerate(const Dag& dag, std::int32_t most);

  std::size_t words_ = 0;
  std::vector<std::uint64_t> bits_;  // words_ an ideal
  std::vector<std::size_t> first_;   // into steps_, and their end
  std::vector<Step> steps_;
  bool complete_ = true;
};

// All ideals; where there are more than `most`, those that are beginnings of `order`.
// REQUIRES: `order` is a topological order of `dag`.
Ideals ideals_of(const Dag& dag, std::span<const std::int32_t> order, std::int32_t most);

}  // namespace weft::partition
