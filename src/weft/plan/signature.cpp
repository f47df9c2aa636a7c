#include "weft/plan/signature.h"

namespace weft::plan {

std::string_view name(Role role) {
  switch (role) {
    case Role::parallel: return "parallel";
    case Role::reduced: return "reduced";
    case Role::whole: return "whole";
  }
  return "";
}

std::string_view name(Monoid monoid) {
  switch (monoid) {
    case Monoid::none: return "none";
    case Monoid::sum: return "sum";
    case Monoid::max: return "max";
    case Monoid::min: return "min";
  }
  return "";
}

const Loop* Signature::find(Symbol index) const {
  for (const Loop& loop : loops)
    if (loop.index == index) return &loop;
  return nullptr;
}

std::vector<Slicing> legal_slicings(const Signature& signature) {
  std::vector<Slicing> slicings;
  for (const Loop& loop : signature.loops) {
    if (loop.role == Role::whole) continue;
    slicings.push_back(Slicing{.index = loop.index,
                               .operands = loop.operands,
                               .results = loop.results,
                               .partial = loop.role == Role::reduced ? loop.monoid : Monoid::none,
                               .positional = loop.positional});
  }
  return slicings;
}

}  // namespace weft::plan
