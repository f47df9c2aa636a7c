// Parses a pattern into a tree.
#include <optional>

#include <fmt/format.h>

#include "weft/text/pattern_class.h"
#include "weft/text/pattern_tree.h"

namespace weft::text {
namespace {

using Node = PatternNode;

constexpr std::size_t kMostPatternBytes = 20'000;
constexpr std::uint32_t kMostRepeats = 1'000;

class PatternParser {
 public:
  explicit PatternParser(std::string_view pattern) : reader_(pattern) {}

  Result<Node> parse() {
    WEFT_TRY(node, parse_alternatives(false, 0));
    if (!reader_.done()) return reader_.error("expected no )");
    return node;
  }

 private:
  static Node leaf(Node::Kind kind) {
    Node node;
    node.kind = kind;
    return node;
  }

  static Node set_node(CodePointSet set, bool any_case) {
    Node node = leaf(Node::Kind::set);
    node.set = std::move(set);
    node.set.any_case = node.set.any_case || any_case;
    return node;
  }

  Result<Node> parse_alternatives(bool any_case, std::size_t depth) {
    if (depth > kMostPatternDepth) return reader_.error("groups are nested too deep");
    Node node = leaf(Node::Kind::alternatives);
    do {
      WEFT_TRY(sequence, parse_sequence(any_case, depth));
      node.parts.push_back(std::move(sequence));
    } while (reader_.take("|"));
    if (node.parts.size() == 1) return std::move(node.parts[0]);
    return node;
  }

  Result<Node> parse_sequence(bool& any_case, std::size_t depth) {
    Node node;
    while (!reader_.done() && reader_.rest()[0] != '|' && reader_.rest()[0] != ')') {
      if (reader_.take("(?i)")) {  // up to the end of the group, over its alternatives
        any_case = true;
        continue;
      }
      WEFT_TRY(atom, parse_atom(any_case, depth));
      WEFT_TRY(repeated, parse_repeats(std::move(atom)));
      node.parts.push_back(std::move(repeated));
    }
    if (node.parts.size() == 1) return std::move(node.parts[0]);
    return node;
  }

  Result<Node> parse_atom(bool any_case, std::size_t depth) {
    using Kind = Node::Kind;
    if (reader_.take("(")) return parse_group(any_case, depth);
    if (reader_.take("[")) {
      WEFT_TRY(set, parse_class(reader_, any_case, depth));
      return set_node(std::move(set), false);
    }
    if (reader_.take("^")) return leaf(Kind::line_begin);
    if (reader_.take("$")) return leaf(Kind::line_end);
    if (reader_.take("\\A")) return leaf(Kind::text_begin);
    if (reader_.take("\\z")) return leaf(Kind::text_end);
    if (reader_.take("\\Z")) return leaf(Kind::last_line_end);
    if (reader_.take(".")) {
      CodePointSet set;
      set.add('\n');
      set.negated = true;
      return set_node(std::move(set), false);
    }
    for (const char sign : {'*', '+', '?'})
      if (reader_.rest()[0] == sign) return reader_.error(fmt::format("expected something before {}", sign));
    if (reader_.take("\\")) {
      WEFT_TRY(set, parse_escape(reader_));
      return set_node(std::move(set), any_case);
    }
    CodePointSet set;
    set.add(reader_.take_any());
    return set_node(std::move(set), any_case);
  }

  // A group, after its bracket.
  Result<Node> parse_group(bool any_case, std::size_t depth) {
    const PatternReader begin = reader_;
    Node node;
    bool wrapped = true;
    if (reader_.take("?:")) {
      wrapped = false;
    } else if (reader_.take("?i:")) {
      any_case = true;
      wrapped = false;
    } else if (reader_.take("?>")) {
      node.kind = Node::Kind::atomic;
    } else if (reader_.take("?=") || reader_.take("?!")) {
      node.kind = Node::Kind::look_ahead;
      node.negated = begin.rest()[1] == '!';
    } else if (reader_.take("?<=") || reader_.take("?<!")) {
      node.kind = Node::Kind::look_back;
      node.negated = begin.rest()[2] == '!';
    } else if (reader_.rest().starts_with("?") || reader_.rest().starts_with("*")) {
      const std::string_view sign = reader_.rest().substr(0, 2);
      return begin.error(fmt::format("the group ({} is not supported", sign));
    } else {
      wrapped = false;  // captures, which nothing refers to
    }
    WEFT_TRY(inner, parse_alternatives(any_case, depth + 1));
    if (!reader_.take(")")) return reader_.error("expected ) at the end of a group");
    if (!wrapped) return inner;
    if (node.kind == Node::Kind::look_back) {
      if (inner.kind != Node::Kind::set)
        return begin.error("look-behind of more than one character is not supported");
      node.set = std::move(inner.set);
      return node;
    }
    node.parts.push_back(std::move(inner));
    return node;
  }

  std::optional<std::uint32_t> parse_count() {
    std::uint32_t count = 0;
    bool any = false;
    while (!reader_.done() && reader_.rest()[0] >= '0' && reader_.rest()[0] <= '9') {
      count = std::min<std::uint32_t>(count * 10 + static_cast<std::uint32_t>(reader_.take_any() - '0'),
                                      kMostRepeats + 1);
      any = true;
    }
    return any ? std::optional(count) : std::nullopt;
  }

  // {2}, {2,}, {,3}, {1,3}. Anything else is plain text and not taken.
  bool parse_interval(std::uint32_t& least, std::uint32_t& most) {
    const PatternReader begin = reader_;
    if (!reader_.take("{")) return false;
    const auto low = parse_count();
    const bool comma = reader_.take(",");
    const auto high = comma ? parse_count() : low;
    if (!reader_.take("}") || (!low && !high)) {
      reader_ = begin;
      return false;
    }
    least = low.value_or(0);
    most = high.value_or(kUnbounded);
    return true;
  }

  Result<Node> parse_repeats(Node atom) {
    for (std::size_t nested = 0;; ++nested) {
      std::uint32_t least = 0, most = kUnbounded;
      const PatternReader begin = reader_;
      bool interval = false;
      if (reader_.take("?"))
        most = 1;
      else if (reader_.take("+"))
        least = 1;
      else if (!reader_.take("*")) {
        if (!parse_interval(least, most)) return atom;
        interval = true;
      }
      if (nested > 4) return begin.error("too many repetitions of one thing");
      if (least > kMostRepeats || (most != kUnbounded && most > kMostRepeats) || most < least)
        return begin.error(fmt::format("expected increasing numbers up to {}", kMostRepeats));
      Node repeat = leaf(Node::Kind::repeat);
      repeat.least = least;
      repeat.most = most;
      if (interval && least == most && reader_.rest().starts_with("?"))
        return begin.error("{n}? is not supported");
      if (reader_.take("?"))
        repeat.greed = Greed::lazy;
      else if (!interval && reader_.take("+"))
        repeat.greed = Greed::possessive;
      repeat.parts.push_back(std::move(atom));
      atom = std::move(repeat);
    }
  }

  PatternReader reader_;
};

}  // namespace

Result<PatternNode> parse_pattern(std::string_view pattern) {
  if (pattern.size() > kMostPatternBytes)
    return user_error(
        fmt::format("expected a pattern of at most {} bytes, found {}", kMostPatternBytes, pattern.size()));
  return PatternParser(pattern).parse();
}

}  // namespace weft::text
