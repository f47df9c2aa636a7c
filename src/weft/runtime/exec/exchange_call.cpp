#include "weft/runtime/exec/exchange_call.h"

#include "weft/base/check.h"
#include "weft/runtime/exec/call_types.h"

namespace weft::exec {
namespace {

using ExchangeKind = program::Exchange::Kind;

comm::Kind collective_of(ExchangeKind kind) {
  switch (kind) {
    case ExchangeKind::all_reduce: return comm::Kind::all_reduce;
    case ExchangeKind::reduce_scatter: return comm::Kind::reduce_scatter;
    case ExchangeKind::all_gather: return comm::Kind::all_gather;
    case ExchangeKind::broadcast_from: return comm::Kind::broadcast;
    case ExchangeKind::all_to_all:
    case ExchangeKind::permute_ranks:
    case ExchangeKind::halo: return comm::Kind::all_to_all;
    case ExchangeKind::send:
    case ExchangeKind::receive: break;  // go through a mailbox
  }
  WEFT_CHECK(false, "an exchange that does not exist");
  return comm::Kind::all_reduce;
}

}  // namespace

comm::Call call_of(const program::Exchange& exchange) {
  comm::Call call;
  call.kind = collective_of(exchange.kind);
  call.type = element_type_of(exchange.dtype);
  call.op = reduce_op_of(exchange.monoid);
  if (exchange.kind == ExchangeKind::broadcast_from) call.root = static_cast<std::int32_t>(exchange.shift);
  return call;
}

std::vector<std::int64_t> shifted_counts(std::int64_t ranks, std::int64_t shift, std::int64_t count) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks * ranks));
  for (std::int64_t from = 0; from < ranks; ++from) {
    const std::int64_t to = ((from + shift) % ranks + ranks) % ranks;
    counts[static_cast<std::size_t>(from * ranks + to)] = count;
  }
  return counts;
}

}  // namespace weft::exec
