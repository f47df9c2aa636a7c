// weft/runtime/exec/exchange_call.h -- an exchange of a program as the collective that moves it.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/communication/comm/call.h"
#include "weft/program/tasks/program.h"

namespace weft::exec {

// Its kind, type, operation and root; memory and counts are its caller's affair. REQUIRES: no message.
comm::Call call_of(const program::Exchange& exchange);

// counts[from * ranks + to] of a permutation: an all-to-all in which everyone gives to one rank alone.
std::vector<std::int64_t> shifted_counts(std::int64_t ranks, std::int64_t shift, std::int64_t count);

}  // namespace weft::exec
