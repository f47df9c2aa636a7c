// weft/collectives/compile/passes.h -- the passes of compile() one by one, with a look at what each leaves.
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
// Runs the named passes in the order given and returns the text of what the last one left: the moves (and
// their dependences), instructions or a program. A pass that needs what another makes has to come after
// it; after `cut` it all begins again with shorter moves. Nothing is checked.
Result<std::string> run_passes(const Moves& moves, std::span<const std::string_view> names,
                               const CompileOptions& options = {});

}  // namespace weft::collective
