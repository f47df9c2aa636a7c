// weft/plan/exchange_kind.h -- the collectives that a rank's plan and its program exchange values by.
//
// Named as the operators of the whole mesh's plan are, of which each is one rank's side (ops/communication.h):
// the plan of a rank, its tile program, prices, the executor and what people read use this one list.
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
  halo
};

inline constexpr std::array<std::string_view, 7> kExchangeKinds = {
    "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast-from", "permute-ranks", "halo"};

constexpr std::string_view name(ExchangeKind kind) { return kExchangeKinds[static_cast<std::size_t>(kind)]; }

constexpr std::optional<ExchangeKind> find_exchange_kind(std::string_view name) {
  for (std::size_t i = 0; i < kExchangeKinds.size(); ++i)
    if (kExchangeKinds[i] == name) return static_cast<ExchangeKind>(i);
  return std::nullopt;
}

}  // namespace weft::plan
