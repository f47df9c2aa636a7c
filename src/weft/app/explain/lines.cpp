#include "weft/app/explain/lines.h"

#include <algorithm>

#include <fmt/format.h>

namespace weft::explain {
namespace {

bool starts_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// The byte length of the first `count` code points.
std::size_t bytes_of_code_points(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if (starts_code_point(text[at]) && count-- == 0) break;
  return at;
}

bool inside_brackets(std::string_view text, std::size_t at) {
  const std::size_t open = text.substr(0, at).rfind('[');
  return open != std::string_view::npos && text.substr(open, at - open).find(']') == std::string_view::npos;
}

// How many bytes of an overlong text to put on this line; a space at the break is dropped. Prefers
// to break after a phrase rather than inside `p = 4` or `x[b, s]`, if the line stays at least half
// full.
std::size_t line_bytes(std::string_view text, std::size_t width) {
  const std::size_t most = bytes_of_code_points(text, width), half = bytes_of_code_points(text, width / 2);
  for (std::size_t at = most; at > half; --at)
    if (text[at] == ' ' && std::string_view(",;:").find(text[at - 1]) != std::string_view::npos &&
        !inside_brackets(text, at))
      return at;
  const std::size_t space = text.rfind(' ', most);
  if (space != std::string_view::npos && text.find_first_not_of(' ') < space) return space;
  const std::size_t comma = text.substr(0, most).rfind(',');
  return comma != std::string_view::npos ? comma + 1 : most;
}

}  // namespace

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, starts_code_point));
}

std::string cut(std::string_view text, std::size_t width) {
  if (columns(text) <= width) return std::string(text);
  std::string_view kept = text.substr(0, bytes_of_code_points(text, width - 1));
  while (kept.ends_with(' ') || kept.ends_with(',')) kept.remove_suffix(1);
  return std::string(kept) + "…";
}

std::vector<std::string> broken(std::string_view text, std::size_t first, std::size_t rest) {
  std::vector<std::string> lines;
  std::size_t width = std::max<std::size_t>(first, 1);
  while (columns(text) > width) {
    const std::size_t bytes = line_bytes(text, width);
    lines.emplace_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    width = std::max<std::size_t>(rest, 1);
  }
  if (!text.empty() || lines.empty()) lines.emplace_back(text);
  return lines;
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    bool first = true;
    for (const std::string& line : broken(text.substr(0, end), width, width - std::min(indent, width - 1))) {
      if (!first) out.append(indent, ' ');
      out += line + '\n';
      first = false;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

namespace {

std::size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

// The start of the second column, as in "  --all    every call"; without one, the line's indent
// plus 2.
std::size_t hanging_indent(std::string_view line, std::size_t width) {
  const std::size_t indent = indent_of(line), gap = line.find("  ", indent);
  if (gap == line.npos) return indent == 0 ? 0 : indent + 2;
  const std::size_t second = line.find_first_not_of(' ', gap);
  return second == line.npos || second > width / 2 ? indent + 2 : second;
}

bool is_carets(std::string_view line) {
  return line.ends_with('^') && line.find_first_not_of('^', indent_of(line)) == line.npos;
}

// The line and the carets under it, cut to the width; both begin with `indent` blanks.
std::string cut_around(std::string_view line, std::string_view carets, std::size_t indent,
                       std::size_t width) {
  const std::size_t all = columns(line), room = width - indent - 2, place = indent_of(carets);
  std::size_t from = place - std::min(place - indent, room / 3);
  from = std::max(indent, std::min(from, all - std::min(all, room)));
  const std::size_t to = std::min(all, from + room), begin = bytes_of_code_points(line, from);
  const std::string_view dots = from > indent ? "…" : "";
  const std::size_t marked = std::max<std::size_t>(1, std::min(carets.size(), to) - std::min(place, to));
  return fmt::format("{0:{1}}{2}{3}{4}\n{0:{5}}{6:^>{7}}\n", "", indent, dots,
                     line.substr(begin, bytes_of_code_points(line, to) - begin), to < all ? "…" : "",
                     indent + columns(dots) + place - from, "", marked);
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::string wrap_complaint(std::string_view text, std::size_t width) {
  width = std::max(width, kLeastWidth);
  std::string out;
  const std::vector<std::string_view> lines = split_lines(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool marked = i + 1 < lines.size() && is_carets(lines[i + 1]);
    if (columns(lines[i]) <= width && !(marked && lines[i + 1].size() > width))
      out += fmt::format("{}\n", lines[i]);
    else if (!marked || lines[i].empty())
      out += wrap(lines[i], width, indent_of(lines[i]) + 2);
    else
      out +=
          cut_around(lines[i], lines[i + 1], std::min(indent_of(lines[i]), indent_of(lines[i + 1])), width),
          ++i;
  }
  return out;
}

std::string wrap_page(std::string_view text, std::size_t width) {
  width = std::max(width, kLeastWidth);
  std::vector<std::string> lines;  // one line per paragraph
  bool flows = false;              // the last line is prose and may continue
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool prose =
        !line.empty() && line.find("  ") == line.npos && std::string_view(" -|*").find(line[0]) == line.npos;
    if (prose && flows && columns(lines.back()) > width)
      lines.back() += fmt::format(" {}", line);
    else
      lines.emplace_back(line);
    flows = prose;
  }
  std::string out;
  for (const std::string& line : lines) {
    const std::size_t indent = hanging_indent(line, width);
    std::string_view rest = line;
    for (std::size_t room = width; columns(rest) > room; room = width - indent) {
      const std::size_t most = bytes_of_code_points(rest, room), space = rest.rfind(' ', most);
      const bool breaks = space != rest.npos && rest.find_first_not_of(' ') < space;
      std::string_view part = rest.substr(0, breaks ? space : most);
      rest.remove_prefix(part.size());
      rest.remove_prefix(std::min(indent_of(rest), rest.size()));
      while (part.ends_with(' ')) part.remove_suffix(1);
      out += fmt::format("{}\n{:{}}", part, "", indent);
    }
    out += fmt::format("{}\n", rest);
  }
  return out;
}

}  // namespace weft::explain
