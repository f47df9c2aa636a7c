// weft/runtime/exec/exchange_call.h -- converts a program's exchange to a collective call.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/communication/comm/call.h"
#include "weft/program/tasks/program.h"

namespace weft::exec {

// Sets kind, type, operation and root; the client of the call sets buffers and counts. REQUIRES:
// not a message.
comm::Call call_of(const program::Exchange& exchange);

// counts[from * ranks + to] of a permutation, as an all-to-all in which each rank sends to one
// rank.
std::vector<std::int64_t> shifted_counts(std::int64_t ranks, std::int64_t shift, std::int64_t count);

}  // namespace weft::exec
