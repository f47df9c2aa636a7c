#include "weft/explain/table.h"

#include <algorithm>
#include <string_view>

#include "weft/base/check.h"

namespace weft::explain {
namespace {

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  WEFT_CHECK(cells.size() <= columns_.size());
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::print() const {
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    for (const auto& row : rows_) widths[c] = std::max(widths[c], width(row[c]));
    if (widths[c] > 0) widths[c] = std::max(widths[c], width(columns_[c].title));
  }
  std::string out;
  const auto line = [&](const auto& cell_of) {
    std::string text;
    bool first = true;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (widths[c] == 0) continue;
      if (!first) text += "  ";
      first = false;
      const std::string& cell = cell_of(c);
      const std::string gap(widths[c] - width(cell), ' ');
      text += columns_[c].align == Align::right ? gap + cell : cell + gap;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  };
  line([&](std::size_t c) -> const std::string& { return columns_[c].title; });
  for (const auto& row : rows_) line([&](std::size_t c) -> const std::string& { return row[c]; });
  return out;
}

}  // namespace weft::explain
