// weft/session/show_statistics.h -- what SHOW STATISTICS lists.
//
// Included by the files of session/ only.
#pragma once
#include "weft/explain/listing.h"
#include "weft/session/state.h"

namespace weft::session {

// Of this machine, a row for each kind of measurement that there is.
explain::Listing show_statistics(const Session::State& state);

}  // namespace weft::session
