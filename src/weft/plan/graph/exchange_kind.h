// weft/plan/graph/exchange_kind.h -- the kinds of exchange between a rank and other ranks.
//
// Each kind has the name of the mesh-wide operator of which it is one rank's side
// (ops/communication.h). The plan of a rank, its tile program, costs, the executor and printed
// output share this list. All ranks of a group take part in a collective. Send and receive involve
// two ranks and occur only in per-rank plans: one pipeline stage makes what another reads
// (pipeline/unroll.h).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::plan {

enum class ExchangeKind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast_from,
  permute_ranks,
  halo,
  send,
  receive
};

inline constexpr std::array<std::string_view, 9> kExchangeKinds = {
    "all-reduce",    "reduce-scatter", "all-gather", "all-to-all", "broadcast-from",
    "permute-ranks", "halo",           "send",       "receive"};

inline constexpr std::int64_t kLargestTag = 0x7fffffff;  // of messages

constexpr bool is_message(ExchangeKind kind) {
  return kind == ExchangeKind::send || kind == ExchangeKind::receive;
}

constexpr std::string_view name(ExchangeKind kind) { return kExchangeKinds[static_cast<std::size_t>(kind)]; }

constexpr std::optional<ExchangeKind> find_exchange_kind(std::string_view name) {
  for (std::size_t i = 0; i < kExchangeKinds.size(); ++i)
    if (kExchangeKinds[i] == name) return static_cast<ExchangeKind>(i);
  return std::nullopt;
}

}  // namespace weft::plan
