#include "weft/planner/exchange/requested_algorithms.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/synthesis/named_trees.h"
#include "weft/communication/comm/choice/candidates.h"

namespace weft::exchange {
namespace {

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Result<RequestedAlgorithm> read_one(std::string_view name) {
  if (name == comm::kDirect || comm::find_direct_algorithm(name))
    return RequestedAlgorithm{std::string(name), {}};
  WEFT_TRY(reference, collective::parse_reference(name));
  if (const auto kind = synthesis::kind_of_trees(reference.name)) {
    WEFT_TRY_STATUS(synthesis::check_trees(reference));
    return RequestedAlgorithm{std::string(name), *kind};
  }
  WEFT_TRY(algorithm, collective::find_algorithm(collective::shipped_algorithms(), reference.name));
  for (const auto& given : reference.arguments) {
    const auto is_it = [&](const collective::Algorithm::Parameter& known) {
      return known.name == given.first;
    };
    if (std::ranges::none_of(algorithm.parameters(), is_it))
      return user_error(fmt::format("{} has no parameter {}", reference.name, given.first));
  }
  return RequestedAlgorithm{std::string(name), algorithm.kind()};
}

}  // namespace

Result<std::vector<RequestedAlgorithm>> read_requested_algorithms(std::string_view text) {
  std::vector<RequestedAlgorithm> asked;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    const std::string_view name = without_spaces(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (name.empty()) continue;
    WEFT_TRY(one, read_one(name));
    asked.push_back(std::move(one));
  }
  return asked;
}

const RequestedAlgorithm* find_requested(std::span<const RequestedAlgorithm> asked, collective::Kind kind) {
  const auto found = std::ranges::find_if(
      asked, [&](const RequestedAlgorithm& one) { return !one.kind || *one.kind == kind; });
  return found == asked.end() ? nullptr : &*found;
}

}  // namespace weft::exchange
