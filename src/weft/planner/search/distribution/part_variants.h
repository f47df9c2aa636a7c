// weft/planner/search/distribution/part_variants.h -- variants of a distribution for one part of a chain.
//
//   gpu=8: slice b                          the base
//   attention: slice h of q, k, v, ..       a variant for one kind of part: exceptions for its entries,
//                                           in all iterations
//
// A variant uses another list for the part: each of its entries is sliced along the first index of
// the list that it has. Equal variants are merged. The first variant is the base itself.
#pragma once
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "weft/parallel/distribute/distribution.h"
#include "weft/parallel/distribute/signatures.h"
#include "weft/parallel/train/chain.h"

namespace weft::search {

using IndexNames = std::vector<std::string>;

struct Variant {
  struct Said {
    std::size_t entry = 0;    // of the part
    std::string axis, index;  // no index: replicated
    friend bool operator==(const Said&, const Said&) = default;
  };
  std::vector<Said> said;  // empty: the base

  friend bool operator==(const Variant&, const Variant&) = default;
};

class PartVariants {
 public:
  // `lists`: by axis of the base, the lists that it may slice. REQUIRES: all arguments outlive it.
  PartVariants(const plan::Graph& graph, const train::Chain& chain, const distribute::Distribution& base,
               std::vector<std::vector<IndexNames>> lists);

  std::vector<Variant> of(const train::Part& part) const;

  // Exceptions for this part only, each entry by its path.
  std::vector<distribute::Exception> in_part(const train::Part& part, const Variant& variant) const;
  // Exceptions for all parts of a kind: by label if no other kind has it, else by path.
  std::vector<distribute::Exception> in_kind(std::size_t kind, const Variant& variant) const;

 private:
  struct Cuts;  // by entry: its size along each index

  Variant variant_of(const train::Part& part, std::span<const Cuts> cuts,
                     std::span<const IndexNames* const> instead) const;
  bool may_be_named(const train::Entry& entry) const;
  bool is_excepted(const train::Entry& entry, std::string_view axis) const;

  const plan::Graph& graph_;
  const train::Chain& chain_;
  const distribute::Distribution& base_;
  std::vector<std::vector<IndexNames>> lists_;
  distribute::Signatures signatures_;
  std::vector<std::vector<std::size_t>> kinds_with_;  // by label: the kinds that have it, once per entry
  std::vector<std::size_t> scopes_with_;              // by label: number of entries with it
};

// The distribution without indices and tensors that the plan does not have.
distribute::Distribution restricted(const distribute::Distribution& distribution, const plan::Graph& graph);

// The tensor names that exceptions may use.
std::set<std::string, std::less<>> tensor_names(const plan::Graph& graph);

}  // namespace weft::search
