// weft/planner/search/distribution/part_variants.h -- what a part of a chain may do otherwise than the lists of the axes say.
//
//   gpu=8: slice b                          the base
//   attention: slice h of q, k, v, ..       a variant of one kind of part: exceptions for its entries, in all
//                                           iterations
//
// A variant comes from another list for the part: each of its entries is cut along the first index of that
// list which it has. Variants that come to the same are one; the first is the base itself.
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
    std::string axis, index;  // no index: whole on every rank
    friend bool operator==(const Said&, const Said&) = default;
  };
  std::vector<Said> said;  // nothing: as the base has it

  friend bool operator==(const Variant&, const Variant&) = default;
};

class PartVariants {
 public:
  // `lists`: for each axis of the base, what it may be for. REQUIRES: all arguments outlive it.
  PartVariants(const plan::Graph& graph, const train::Chain& chain, const distribute::Distribution& base,
               std::vector<std::vector<IndexNames>> lists);

  std::vector<Variant> of(const train::Part& part) const;

  // As exceptions for this one part, each entry by its path.
  std::vector<distribute::Exception> in_part(const train::Part& part, const Variant& variant) const;
  // For all parts of a kind: a label where no other kind has it, else the paths of all.
  std::vector<distribute::Exception> in_kind(std::size_t kind, const Variant& variant) const;

 private:
  struct Cuts;  // of an entry: how many steps it has along each index

  Variant variant_of(const train::Part& part, std::span<const Cuts> cuts,
                     std::span<const IndexNames* const> instead) const;
  bool may_be_named(const train::Entry& entry) const;
  bool is_excepted(const train::Entry& entry, std::string_view axis) const;

  const plan::Graph& graph_;
  const train::Chain& chain_;
  const distribute::Distribution& base_;
  std::vector<std::vector<IndexNames>> lists_;
  distribute::Signatures signatures_;
  std::vector<std::vector<std::size_t>> kinds_with_;  // by label: which kinds have it, one for each entry
  std::vector<std::size_t> scopes_with_;              // by label: entries that bear it
};

// What the distribution says of this plan: indices and tensors that it does not have are left out.
distribute::Distribution restricted(const distribute::Distribution& distribution, const plan::Graph& graph);

// The names by which exceptions may speak of the plan's tensors.
std::set<std::string, std::less<>> tensor_names(const plan::Graph& graph);

}  // namespace weft::search
