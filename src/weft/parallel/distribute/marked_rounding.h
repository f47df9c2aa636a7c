// weft/parallel/distribute/marked_rounding.h -- replaces narrowing casts by distinct functions.
//
//   %9 = cast %8 {to=bf16}          f32 to bf16         =>   %9 = sin %8 ; %10 = cast %9 {to=bf16}
//   %11 = cast %10 {to=f32}         and back            =>   unchanged: nothing is lost
//   %12 = cast %11 {to=bf16}        once more           =>   unchanged: %11 already fits
//
// Over the field and in f64 a cast is the identity, so a plan that rounds a master weight or a loss
// in between equals one that does not. With an uninterpreted function at each such cast, the two
// differ where their rounding differs.
#pragma once
#include <span>
#include <string>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"

namespace weft::distribute {

// The narrower types that casts round to, "bf16"; empty if no cast rounds.
std::string rounded_to(const plan::Graph& graph);

// Nodes get other ids. `layouts`: by value, of a plan on a mesh; empty: the single-device plan. A
// cast of partial sums is replaced by a multiplication, since a function of partial sums has no
// meaning; their sum then never equals the single-device result.
Result<plan::Graph> with_marked_rounding(const plan::Graph& graph,
                                         std::span<const plan::Layout> layouts = {});

}  // namespace weft::distribute
