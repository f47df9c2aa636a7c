// weft/parallel/distribute/size_classes.h -- indices of a plan's values whose sizes must be equal.
//
//   q[b,h,s,e], k[b,h,t,e] = rename k s -> t     s of q, of k and t form one class: they cannot differ
//   scores = contract q, k -> [b,h,s,t]
//
// Two dims are in one class if a loop of an operator covers both.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/plan/graph/graph.h"

namespace weft::distribute {

class SizeClasses {
 public:
  explicit SizeClasses(const plan::Graph& graph);

  std::size_t count() const { return parent_.size(); }  // classes are numbered below this; not all are used
  std::size_t of(plan::ValueId value, std::size_t dim) const;
  void tie(std::size_t one, std::size_t other);

 private:
  std::size_t root(std::size_t dim) const;

  std::vector<std::size_t> first_;           // by value: the number of its first dim
  mutable std::vector<std::size_t> parent_;  // by dim
};

}  // namespace weft::distribute
