#include "diff.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace weft::golden {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::string diff(std::string_view expected, std::string_view found) {
  const std::vector<std::string_view> a = lines_of(expected), b = lines_of(found);
  std::string text;
  const auto add = [&](char mark, std::string_view line) { text += fmt::format("    {} {}\n", mark, line); };

  // The longest common subsequence by dynamic programming: kept[i][j] lines are common to the
  // tails a[i..] and b[j..]. Beyond a few thousand lines the table would need too much memory.
  constexpr std::size_t kMostCells = 4'000'000;
  if (a.size() * b.size() > kMostCells) {
    for (const std::string_view line : a) add('-', line);
    for (const std::string_view line : b) add('+', line);
    return text;
  }
  const std::size_t width = b.size() + 1;
  std::vector<std::uint32_t> kept((a.size() + 1) * width);
  for (std::size_t i = a.size(); i-- > 0;) {
    for (std::size_t j = b.size(); j-- > 0;) {
      kept[i * width + j] = a[i] == b[j] ? kept[(i + 1) * width + j + 1] + 1
                                         : std::max(kept[(i + 1) * width + j], kept[i * width + j + 1]);
    }
  }
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      add(' ', a[i]);
      ++i, ++j;
    } else if (j == b.size() || (i < a.size() && kept[(i + 1) * width + j] >= kept[i * width + j + 1])) {
      add('-', a[i++]);
    } else {
      add('+', b[j++]);
    }
  }
  return text;
}

}  // namespace weft::golden
