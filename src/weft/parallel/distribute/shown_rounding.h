// weft/parallel/distribute/shown_rounding.h -- casts to fewer bits as functions that are not the identity.
//
//   %9 = cast %8 {to=bf16}          f32 to bf16         =>   %9 = sin %8 ; %10 = cast %9 {to=bf16}
//   %11 = cast %10 {to=f32}         and back            =>   as it is: nothing is lost
//   %12 = cast %11 {to=bf16}        once more           =>   as it is: %11 fits already
//
// Over the field and in f64 a cast is the identity, so a plan that rounds a master weight or a loss on the way equals one
// that does not. With an uninterpreted function in place of each such cast the two differ in what was rounded otherwise.
#pragma once
#include <span>
#include <string>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"

namespace weft::distribute {

// The types of fewer bits that casts round to, "bf16"; empty where none does.
std::string rounded_to(const plan::Graph& graph);

// Its nodes have other numbers. `layouts`: by value, of a plan on a mesh: a cast of addends, of which a function has no
// meaning, multiplies them, so that their sum is never what one device makes; empty: the plan of one device.
Result<plan::Graph> with_shown_rounding(const plan::Graph& graph, std::span<const plan::Layout> layouts = {});

}  // namespace weft::distribute
