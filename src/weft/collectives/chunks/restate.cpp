#include "weft/collectives/chunks/restate.h"

#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "weft/base/number.h"

namespace weft::collective {
namespace {

std::string without_blanks(std::string_view text) {
  std::string plain(text);
  std::erase(plain, ' ');
  return plain;
}

std::optional<std::int32_t> whole_number(std::string_view text) { return read_number<std::int32_t>(text); }

// out[r]=in[r+1] -> 1; out[r]=in[r] -> 0
std::optional<std::int32_t> shift_of(std::string_view text) {
  constexpr std::string_view kBefore = "out[r]=in[r";
  if (!text.starts_with(kBefore) || !text.ends_with(']')) return std::nullopt;
  std::string_view offset = text.substr(kBefore.size(), text.size() - kBefore.size() - 1);
  if (offset.empty()) return 0;
  if (offset[0] == '+') offset.remove_prefix(1);
  return whole_number(offset);
}

Collective shifted(std::int32_t by, std::span<const std::int32_t> inputs,
                   std::span<const std::int32_t> outputs) {
  const auto ranks = static_cast<std::int32_t>(inputs.size());
  Collective made;
  made.ranks = ranks;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t from = std::int64_t{rank} + by;
    if (from < 0 || from >= ranks) continue;
    const std::int32_t chunks = std::max(inputs[from], outputs[rank]);
    for (std::int32_t index = 0; index < chunks; ++index)
      made.wants.push_back({rank, index, {{static_cast<std::int32_t>(from), index}}});
  }
  return made;
}

}  // namespace

Result<Collective> restate(std::string_view text, std::span<const std::int32_t> inputs,
                           std::span<const std::int32_t> outputs) {
  const std::string plain = without_blanks(text);
  if (const auto by = shift_of(plain)) return shifted(*by, inputs, outputs);

  const std::size_t paren = plain.find('(');
  WEFT_TRY(kind, parse_kind(plain.substr(0, paren)));
  Collective made;
  made.kind = kind;
  made.ranks = static_cast<std::int32_t>(inputs.size());
  if (paren != std::string::npos) {
    constexpr std::string_view kRoot = "(root=";
    const std::string_view given = std::string_view(plain).substr(paren);
    std::optional<std::int32_t> root;
    if (given.starts_with(kRoot) && given.ends_with(')'))
      root = whole_number(given.substr(kRoot.size(), given.size() - kRoot.size() - 1));
    if (!root || *root < 0 || *root >= made.ranks)
      return user_error(fmt::format("expected (root=RANK) after the collective, found {}", given),
                        fmt::format("ranks are 0 to {}", made.ranks - 1));
    made.root = *root;
  }
  std::int32_t most = 1;
  for (std::size_t rank = 0; rank < inputs.size(); ++rank)
    most = std::max({most, inputs[rank], outputs[rank]});
  const bool by_rank = has_block_per_rank(kind);
  if (by_rank && most % made.ranks != 0)
    return user_error(fmt::format("{} chunks are not a block for each of {} ranks", most, made.ranks),
                      fmt::format("{} needs one whole block per rank", name(kind)));
  made.chunks = by_rank ? most / made.ranks : most;
  return made;
}

}  // namespace weft::collective
