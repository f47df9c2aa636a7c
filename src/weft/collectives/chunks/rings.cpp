#include "weft/collectives/chunks/rings.h"

#include <fmt/format.h>

namespace weft::collective {
namespace {

constexpr std::string_view kRemedy = "NCCL's graphs support only rings and chains through all ranks";

// The rank that each rank sends to on one channel; -1: sends nothing. Fails if a rank sends to
// several.
Result<std::vector<std::int32_t>> successors(const Program& program, std::int32_t channel) {
  std::vector<std::int32_t> next(program.ranks.size(), -1);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    for (const Threadblock& block : program.ranks[rank].blocks) {
      if (block.channel != channel || block.send_to < 0 || next[rank] == block.send_to) continue;
      if (next[rank] >= 0)
        return user_error(fmt::format("channel {} branches at rank {}: to {} and to {}", channel, rank,
                                      next[rank], block.send_to),
                          std::string(kRemedy));
      next[rank] = block.send_to;
    }
  return next;
}

Result<Circuit> follow(const std::vector<std::int32_t>& next, std::int32_t channel) {
  std::vector<bool> entered(next.size(), false);
  for (const std::int32_t to : next)
    if (to >= 0) entered[to] = true;
  Circuit circuit{.channel = channel, .closed = true, .ranks = {}};
  std::int32_t first = 0;
  for (std::size_t rank = 0; rank < next.size(); ++rank)
    if (!entered[rank]) {
      circuit.closed = false;
      first = static_cast<std::int32_t>(rank);
    }
  std::vector<bool> seen(next.size(), false);
  for (std::int32_t rank = first; rank >= 0 && !seen[rank]; rank = next[rank]) {
    seen[rank] = true;
    circuit.ranks.push_back(rank);
  }
  if (circuit.ranks.size() != next.size())
    return user_error(
        fmt::format("channel {} passes through {} of {} ranks", channel, circuit.ranks.size(), next.size()),
        std::string(kRemedy));
  return circuit;
}

}  // namespace

Result<std::vector<Circuit>> circuits(const Program& program) {
  std::vector<Circuit> found;
  for (std::int32_t channel = 0; channel < program.channels; ++channel) {
    WEFT_TRY(next, successors(program, channel));
    WEFT_TRY(circuit, follow(next, channel));
    if (!found.empty() && found.front().closed != circuit.closed)
      return user_error(
          fmt::format("channel {} is {}, channel 0 is not", channel, circuit.closed ? "a ring" : "a chain"),
          std::string(kRemedy));
    found.push_back(std::move(circuit));
  }
  return found;
}

}  // namespace weft::collective
