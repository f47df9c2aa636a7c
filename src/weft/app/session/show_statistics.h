// weft/app/session/show_statistics.h -- the rows of SHOW STATISTICS.
//
// Included by app/session and app/command only.
#pragma once
#include "weft/app/explain/listing.h"
#include "weft/app/session/state.h"

namespace weft::session {

// One row per kind of measurement on this machine.
explain::Listing show_statistics(const Session::State& state);

}  // namespace weft::session
