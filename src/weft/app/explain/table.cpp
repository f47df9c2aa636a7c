#include "weft/app/explain/table.h"

#include <algorithm>
#include <numeric>

#include "weft/base/check.h"

namespace weft::explain {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastColumn = 12;  // narrowest a shrinkable column becomes

std::vector<std::string> title_lines(const std::string& title) {
  const std::size_t at = title.find('\n');
  if (at == std::string::npos) return {title};
  return {title.substr(0, at), title.substr(at + 1)};
}

std::size_t widest(const std::vector<std::string>& lines) {
  std::size_t most = 0;
  for (const std::string& line : lines) most = std::max(most, columns(line));
  return most;
}

std::size_t whole_width(const std::vector<std::size_t>& widths) {
  const auto shown = static_cast<std::size_t>(std::ranges::count_if(widths, [](auto w) { return w > 0; }));
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) + (shown > 0 ? kGap * (shown - 1) : 0);
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  WEFT_CHECK(cells.size() <= columns_.size());
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), {}});
}

void Table::add_below(std::string text) {
  WEFT_CHECK(!rows_.empty());
  if (!text.empty()) rows_.back().below.push_back(std::move(text));
}

std::vector<std::size_t> Table::widths(std::size_t width) const {
  std::vector<std::size_t> wanted(columns_.size(), 0);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    for (const Row& row : rows_) wanted[c] = std::max(wanted[c], columns(row.cells[c]));
    if (wanted[c] > 0) wanted[c] = std::max(wanted[c], widest(title_lines(columns_[c].title)));
  }
  // Titles are never truncated, so a column is at least as wide as its title.
  const auto least = [&](std::size_t c) {
    return std::max(kLeastColumn, widest(title_lines(columns_[c].title)));
  };
  for (;;) {
    std::vector<std::size_t> given = wanted;
    // Shrinks the widest shrinkable column by one at a time.
    while (whole_width(given) > width) {
      std::size_t most = columns_.size();
      for (std::size_t c = 0; c < columns_.size(); ++c)
        if (columns_[c].fit != Fit::whole && given[c] > least(c) &&
            (most == columns_.size() || given[c] > given[most]))
          most = c;
      if (most == columns_.size()) break;
      --given[most];
    }
    if (whole_width(given) <= width) return given;
    std::size_t spared = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (wanted[c] > 0 && columns_[c].spare > 0 &&
          (spared == columns_.size() || columns_[c].spare >= columns_[spared].spare))
        spared = c;
    if (spared == columns_.size()) return given;
    wanted[spared] = 0;
  }
}

std::string Table::print_row(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                             bool title) const {
  std::vector<std::vector<std::string>> lines(columns_.size());
  std::size_t most = 1;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (widths[c] == 0) continue;
    if (title)
      lines[c] = title_lines(cells[c]);
    else if (columns_[c].fit == Fit::wrap)
      lines[c] = broken(cells[c], widths[c], widths[c]);
    else
      lines[c] = {cut(cells[c], widths[c])};
    most = std::max(most, lines[c].size());
  }
  std::string out;
  for (std::size_t l = 0; l < most; ++l) {
    std::string text;
    bool first = true;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (widths[c] == 0) continue;
      if (!first) text.append(kGap, ' ');
      first = false;
      // Short titles are bottom-aligned, directly above their column.
      const std::size_t skipped = title ? most - lines[c].size() : 0;
      const std::string cell = l >= skipped && l - skipped < lines[c].size() ? lines[c][l - skipped] : "";
      const std::string gap(widths[c] - std::min(widths[c], columns(cell)), ' ');
      text += columns_[c].align == Align::right ? gap + cell : cell + gap;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  }
  return out;
}

std::string Table::print(std::size_t width) const {
  width = std::max(width, kLeastWidth);
  const std::vector<std::size_t> given = widths(width);
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  std::string out = print_row(titles, given, true);
  for (const Row& row : rows_) {
    out += print_row(row.cells, given, false);
    for (const std::string& text : row.below)
      for (const std::string& line : broken(text, width - 2 * kGap, width - 2 * kGap))
        out += std::string(2 * kGap, ' ') + line + '\n';
  }
  return out;
}

std::string print(const Section& section, std::size_t width) {
  std::string text = section.title.empty() ? std::string() : section.title + "\n";
  Table table(section.columns);
  for (std::size_t r = 0; r < section.rows.size(); ++r) {
    table.add(section.rows[r]);
    if (r >= section.below.size()) continue;
    for (const std::string& remark : section.below[r]) table.add_below(remark);
  }
  if (!section.rows.empty()) text += table.print(width);
  text += section.drawing;
  for (const std::string& line : section.lines) text += wrap(line, width);
  return text;
}

}  // namespace weft::explain
