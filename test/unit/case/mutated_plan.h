// test/unit/case/mutated_plan.h -- a plan's text with one random change: another operand, number,
// operator, axis, layout or output, or an exchange removed.
#pragma once
#include <array>
#include <cctype>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "weft/base/random.h"

namespace weft::distribute {

class MutatedPlan {
 public:
  // Types that can be inferred are omitted, because nodes after a change may have other types.
  MutatedPlan(std::string_view text, std::uint64_t seed) : random_(seed) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      lines_.push_back(without_types(std::string(text.substr(at, end - at))));
      at = end + 1;
    }
  }

  std::string run() {
    for (int tries = 0; tries < 200 && what_.empty(); ++tries) {
      const std::size_t line = 1 + random_.below(lines_.size() - 1);
      switch (random_.below(8)) {
        case 0:
        case 1: change_operand(line); break;
        case 2: change_number(line); break;
        case 3: change_word(line); break;
        case 4: change_list(line); break;
        case 5: change_layout(line); break;
        case 6: leave_out(line); break;
        case 7: change_operand(lines_.size() - 1); break;
      }
    }
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    return text;
  }
  const std::string& what() const { return what_; }  // "%7: add becomes sub"

 private:
  struct Place {
    std::size_t begin, size;
  };

  static std::string without_types(std::string line) {
    const std::size_t colon = line.find(" : ");
    if (colon == std::string::npos) return line;
    std::size_t end = std::min(line.find(" @", colon), line.find(" in ", colon));
    return line.erase(colon, std::min(end, line.size()) - colon);
  }

  template <class T>
  const T& any(std::span<const T> of) {
    return of[random_.below(of.size())];
  }

  void replace(std::size_t line, Place place, const std::string& with) {
    const std::string was = lines_[line].substr(place.begin, place.size);
    if (was == with) return;
    what_ = fmt::format("{}: {} becomes {}", lines_[line], was, with);
    lines_[line].replace(place.begin, place.size, with);
  }

  // The words of a line, from `from` on, that begin with one of these characters.
  template <class Begins>
  std::vector<Place> words(std::size_t line, std::size_t from, Begins&& begins) const {
    const std::string& text = lines_[line];
    std::vector<Place> found;
    bool quoted = false;
    for (std::size_t at = from; at < text.size(); ++at) {
      if (text[at] == '"') quoted = !quoted;
      const auto continues = [&](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
      };
      if (quoted || !begins(text[at]) || (at > 0 && (continues(text[at - 1]) || text[at - 1] == '@')))
        continue;
      std::size_t end = at + 1;
      while (end < text.size() && continues(text[end])) ++end;
      found.push_back({at, end - at});
      at = end - 1;
    }
    return found;
  }

  std::size_t right_side(std::size_t line) const {
    const std::size_t equals = lines_[line].find(" = ");
    return equals == std::string::npos ? 0 : equals + 3;
  }

  void change_operand(std::size_t line) {
    const std::vector<Place> operands = words(line, right_side(line), [](char c) { return c == '%'; });
    if (operands.empty()) return;
    const Place place = any(std::span<const Place>(operands));
    // A nearby node more often has the same type.
    const std::int64_t was = std::stoll(lines_[line].substr(place.begin + 1, place.size - 1));
    const std::int64_t now = was + random_.between(-12, 12);
    if (now >= 0) replace(line, place, fmt::format("%{}", now));
  }

  void change_number(std::size_t line) {
    const std::size_t brace = lines_[line].find('{');
    if (brace == std::string::npos) return;
    const std::vector<Place> numbers =
        words(line, brace, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) || c == '-'; });
    if (numbers.empty()) return;
    const Place place = any(std::span<const Place>(numbers));
    const std::string was = lines_[line].substr(place.begin, place.size);
    const double value = std::strtod(was.c_str(), nullptr);
    const std::array<double, 6> others = {value + 1, value - 1, 2 * value, value / 2, 0, 1};
    replace(line, place, fmt::format("{}", any(std::span<const double>(others))));
  }

  void change_word(std::size_t line) {
    static constexpr std::array<std::string_view, 24> kWords = {"add",        "sub",
                                                                "mul",        "div",
                                                                "max",        "min",
                                                                "relu",       "tanh",
                                                                "exp",        "log",
                                                                "neg",        "sum",
                                                                "mean",       "peak",
                                                                "normal",     "ones",
                                                                "zeros",      "less",
                                                                "less-equal", "greater",
                                                                "equal",      "reduce-scatter",
                                                                "all-reduce", "all-gather"};
    const std::vector<Place> found = words(
        line, right_side(line), [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
    if (found.empty()) return;
    const Place place = any(std::span<const Place>(found));
    if (random_.below(3) > 0)
      return replace(line, place, std::string(any(std::span<const std::string_view>(kWords))));
    // A word from another line: an axis, an index or an operator.
    const std::size_t other = 1 + random_.below(lines_.size() - 2);
    const std::vector<Place> theirs = words(
        other, right_side(other), [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
    if (theirs.empty()) return;
    const Place with = any(std::span<const Place>(theirs));
    replace(line, place, lines_[other].substr(with.begin, with.size));
  }

  // Swaps two indices of a list, or two operands.
  void change_list(std::size_t line) {
    const std::size_t open = lines_[line].find("=["), close = lines_[line].find(']', open);
    std::vector<Place> found;
    if (open != std::string::npos && random_.below(2) == 0) {
      for (const Place& word :
           words(line, open + 2, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }))
        if (word.begin < close) found.push_back(word);
    } else {
      found = words(line, right_side(line), [](char c) { return c == '%'; });
    }
    if (found.size() < 2) return;
    const std::size_t i = random_.below(found.size() - 1);
    const Place a = found[i], b = found[i + 1];
    const std::string first = lines_[line].substr(a.begin, a.size),
                      second = lines_[line].substr(b.begin, b.size);
    if (first == second) return;
    what_ = fmt::format("{}: {} and {} change places", lines_[line], first, second);
    lines_[line].replace(b.begin, b.size, first);
    lines_[line].replace(a.begin, a.size, second);
  }

  void change_layout(std::size_t line) {
    constexpr std::string_view kLayout = "layout=\"";
    const auto layout_in = [&](std::size_t which) -> Place {
      const std::size_t at = lines_[which].find(kLayout);
      if (at == std::string::npos) return {0, 0};
      return {at, lines_[which].find('"', at + kLayout.size()) + 1 - at};
    };
    const Place mine = layout_in(line);
    const std::size_t other = 1 + random_.below(lines_.size() - 1);
    const Place theirs = layout_in(other);
    if (mine.size == 0 || theirs.size == 0) return;
    std::string with = lines_[other].substr(theirs.begin, theirs.size);
    if (random_.below(3) == 0)
      if (const std::size_t at = with.find("sliced("); at != std::string::npos)
        with.replace(at, with.find(')', at) + 1 - at, random_.below(2) == 0 ? "partial(sum)" : "varying");
    replace(line, mine, with);
  }

  // Removes an exchange, or any node with one operand: its readers read its operand instead.
  void leave_out(std::size_t line) {
    const std::vector<Place> all = words(line, 0, [](char c) { return c == '%'; });
    if (all.size() != 2 || all[0].begin != 0 || line + 1 == lines_.size()) return;
    const auto number = [&](Place place) {
      return std::stoll(lines_[line].substr(place.begin + 1, place.size - 1));
    };
    const std::int64_t gone = number(all[0]), instead = number(all[1]);
    what_ = fmt::format("{}: left out", lines_[line]);
    lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(line));
    for (std::size_t other = 1; other < lines_.size(); ++other) {
      std::vector<Place> found = words(other, 0, [](char c) { return c == '%'; });
      for (std::size_t i = found.size(); i-- > 0;) {
        const std::int64_t value = std::stoll(lines_[other].substr(found[i].begin + 1, found[i].size - 1));
        const std::int64_t now = value == gone ? instead : value > gone ? value - 1 : value;
        lines_[other].replace(found[i].begin, found[i].size, fmt::format("%{}", now));
      }
    }
  }

  Random random_;
  std::vector<std::string> lines_;
  std::string what_;
};

}  // namespace weft::distribute
