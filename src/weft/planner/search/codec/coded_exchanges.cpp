#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/units.h"
#include "weft/planner/search/codec/encode_boundaries.h"

namespace weft::search {

bool CodedPlan::any() const {
  return std::ranges::any_of(exchanges, [](const CodedExchanges& kind) { return kind.coded > 0; });
}

std::string print(const CodedExchanges& kind) {
  const std::size_t all = kind.coded + kind.exact;
  const std::string name = fmt::format("{} {}", kind.what, print(kind.codec));
  if (kind.coded == 0) {
    if (all == 0)
      return name + (kind.what == kActivations ? ": nothing is sent between stages" : ": none are exchanged");
    if (kind.unworthy > 0) return fmt::format("{}: none of {} exchanges gets faster", name, all);
    return name + ": none of the exchanges can be encoded";
  }
  // Sizes alone do not show which tensors are treated as matrices.
  const std::string tensors =
      kind.codec.kind == ops::CodecKind::low_rank ? fmt::format(" ({})", fmt::join(kind.tensors, ", ")) : "";
  std::string text =
      fmt::format("{}: {} of {} exchanges{}, {} as {}, off by at most {}", name, kind.coded, all, tensors,
                  print_bytes(static_cast<double>(kind.bytes)),
                  print_bytes(static_cast<double>(kind.code_bytes)), ops::error_bound_text(kind.codec.kind));
  if (kind.times > 1) text += fmt::format(" each of {} times", kind.times);
  if (kind.lost_bytes > 0)
    text += fmt::format(", which is added to the next message ({} per rank)",
                        print_bytes(static_cast<double>(kind.lost_bytes)));
  if (kind.unworthy > 0) text += fmt::format("; {} not faster", kind.unworthy);
  if (kind.exact > 0)
    text += fmt::format("; {} sent uncoded", print_bytes(static_cast<double>(kind.exact_bytes)));
  return text;
}

}  // namespace weft::search
