// weft/app/session/show_statistics.h -- what SHOW STATISTICS lists.
//
// Included by app/session and app/command only.
#pragma once
#include "weft/app/explain/listing.h"
#include "weft/app/session/state.h"

namespace weft::session {

// Of this machine, a row for each kind of measurement that there is.
explain::Listing show_statistics(const Session::State& state);

}  // namespace weft::session
