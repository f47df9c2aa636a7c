// weft/collectives/compile/passes.h -- runs single passes of compile() and prints the result.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/chunks/moves.h"
#include "weft/collectives/compile/compile.h"

namespace weft::collective {

// compile() runs dependence, split, fuse, assign, cut, order, waits, instances.
//
// Runs the named passes in the given order and prints the result of the last one: the moves (and
// their dependences), instructions or a program. A pass must come after the pass that produces its
// input. `cut` starts over with shorter moves. The result is not checked.
Result<std::string> run_passes(const Moves& moves, std::span<const std::string_view> names,
                               const CompileOptions& options = {});

}  // namespace weft::collective
