#include "weft/plan/graph/signature.h"

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

}  // namespace weft::plan
