// weft/parallel/partition/ideals.h -- the ideals of a DAG: node sets closed under predecessors.
//
//        a -> b -> d        {} a ab ac abc abcd: six ideals
//        a -> c -> d
//
// The first stages of a pipeline together form an ideal, and a stage is the difference of two. A
// partition into stages is therefore a chain of ideals, from empty to full. Dynamic programming
// over ideals covers every partition of any DAG, not only those along one topological order.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "weft/base/result.h"

namespace weft::partition {

// The number of a node, ideal or stage as a vector index.
constexpr std::size_t slot(std::int32_t number) { return static_cast<std::size_t>(number); }

struct Dag {
  std::int32_t nodes = 0;
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;  // from, to; duplicates count once
};

// A topological order, with the lowest of the possible nodes next; if there is none, an error that
// names a node on a cycle.
Result<std::vector<std::int32_t>> topological_order(const Dag& dag);

class Ideals {
 public:
  struct Step {
    std::int32_t node;   // the node to add
    std::int32_t ideal;  // the resulting ideal
  };

  std::int32_t count() const { return static_cast<std::int32_t>(first_.size()) - 1; }
  std::int32_t none() const { return 0; }
  std::int32_t all() const { return count() - 1; }
  // Ideals are numbered by increasing size.
  bool has(std::int32_t ideal, std::int32_t node) const {
    const std::size_t word = static_cast<std::size_t>(ideal) * words_ + static_cast<std::size_t>(node) / 64;
    return (bits_[word] >> (node % 64)) & 1;
  }
  // Whether `inner` is a subset of `outer`.
  bool within(std::int32_t inner, std::int32_t outer) const;
  std::span<const Step> steps(std::int32_t ideal) const {
    const auto at = static_cast<std::size_t>(ideal);
    return std::span(steps_).subspan(first_[at], first_[at + 1] - first_[at]);
  }
  // The nodes of `outer` that are not in `inner`, ascending.
  std::vector<std::int32_t> between(std::int32_t inner, std::int32_t outer) const;
  // Whether these are all ideals of the DAG, or only those along one order of its nodes.
  bool complete() const { return complete_; }

 private:
  friend Ideals ideals_of(const Dag&, std::span<const std::int32_t>, std::int32_t);
  bool enumerate(const Dag& dag, std::int32_t most);

  std::size_t words_ = 0;
  std::vector<std::uint64_t> bits_;  // words_ per ideal
  std::vector<std::size_t> first_;   // offsets into steps_, with the end
  std::vector<Step> steps_;
  bool complete_ = true;
};

// All ideals; if there are more than `most`, only the prefixes of `order`.
// REQUIRES: `order` is a topological order of `dag`.
Ideals ideals_of(const Dag& dag, std::span<const std::int32_t> order, std::int32_t most);

}  // namespace weft::partition
