// Turns the tree of a pattern into instructions.
#include <algorithm>

#include <fmt/format.h>

#include "weft/text/pattern_program.h"
#include "weft/text/pattern_tree.h"

namespace weft::text {
namespace {

using Kind = Instruction::Kind;

constexpr std::size_t kMostInstructions = 20'000;

bool can_be_empty(const PatternNode& node) {
  switch (node.kind) {
    case PatternNode::Kind::sequence: return std::ranges::all_of(node.parts, can_be_empty);
    case PatternNode::Kind::alternatives: return std::ranges::any_of(node.parts, can_be_empty);
    case PatternNode::Kind::set: return false;
    case PatternNode::Kind::repeat: return node.least == 0 || can_be_empty(node.parts[0]);
    case PatternNode::Kind::atomic: return can_be_empty(node.parts[0]);
    default: return true;
  }
}

// The bytes that a match of the node can begin with; all if it can be empty.
std::bitset<256> first_bytes(const PatternNode& node) {
  std::bitset<256> bytes;
  const auto all = std::bitset<256>().set();
  switch (node.kind) {
    case PatternNode::Kind::set:
      for (std::size_t c = 0; c < 256; ++c)
        bytes[c] = c >= 128 || node.set.contains(static_cast<char32_t>(c));
      return bytes;
    case PatternNode::Kind::sequence:
      for (const PatternNode& part : node.parts) {
        if (part.kind == PatternNode::Kind::look_back) continue;
        bytes |= first_bytes(part);
        if (!can_be_empty(part)) return bytes;
      }
      return all;
    case PatternNode::Kind::alternatives:
      for (const PatternNode& part : node.parts) bytes |= first_bytes(part);
      return bytes;
    case PatternNode::Kind::repeat:
    case PatternNode::Kind::atomic: return can_be_empty(node) ? all : first_bytes(node.parts[0]);
    default: return all;
  }
}

void prepare_sets(PatternNode& node) {
  node.set.prepare();
  for (PatternNode& part : node.parts) prepare_sets(part);
}

class PatternCompiler {
 public:
  Status emit(const PatternNode& node) {
    if (program.code.size() > kMostInstructions) return user_error("the pattern of a tokenizer is too large");
    switch (node.kind) {
      case PatternNode::Kind::sequence:
        for (const PatternNode& part : node.parts) WEFT_TRY_STATUS(emit(part));
        return {};
      case PatternNode::Kind::alternatives: return emit_alternatives(node);
      case PatternNode::Kind::set: add({.kind = Kind::one, .set = add_set(node.set)}); return {};
      case PatternNode::Kind::repeat: return emit_repeat(node);
      case PatternNode::Kind::atomic: return emit_inner(Kind::atomic, node.parts[0], false);
      case PatternNode::Kind::look_ahead: return emit_inner(Kind::look_ahead, node.parts[0], node.negated);
      case PatternNode::Kind::look_back:
        add({.kind = Kind::look_back, .negated = node.negated, .set = add_set(node.set)});
        return {};
      case PatternNode::Kind::line_begin: add({.kind = Kind::line_begin}); return {};
      case PatternNode::Kind::line_end: add({.kind = Kind::line_end}); return {};
      case PatternNode::Kind::text_begin: add({.kind = Kind::text_begin}); return {};
      case PatternNode::Kind::text_end: add({.kind = Kind::text_end}); return {};
      case PatternNode::Kind::last_line_end: add({.kind = Kind::last_line_end}); return {};
    }
    return {};
  }

  std::uint32_t add(Instruction instruction) {
    program.code.push_back(instruction);
    return here() - 1;
  }

  PatternProgram program;

 private:
  std::uint32_t here() const { return static_cast<std::uint32_t>(program.code.size()); }

  std::uint32_t add_set(const CodePointSet& set) {
    program.sets.push_back(set);
    return static_cast<std::uint32_t>(program.sets.size() - 1);
  }

  Status emit_alternatives(const PatternNode& node) {
    std::vector<std::uint32_t> to_end;
    for (std::size_t i = 0; i < node.parts.size(); ++i) {
      const bool last = i + 1 == node.parts.size();
      const std::uint32_t split = last ? 0 : add({.kind = Kind::split});
      WEFT_TRY_STATUS(emit(node.parts[i]));
      if (last) break;
      to_end.push_back(add({.kind = Kind::jump}));
      program.code[split].next = split + 1;
      program.code[split].other = here();
    }
    for (const std::uint32_t jump : to_end) program.code[jump].next = here();
    return {};
  }

  Status emit_inner(Kind kind, const PatternNode& inner, bool negated) {
    const std::uint32_t at = add({.kind = kind, .negated = negated});
    WEFT_TRY_STATUS(emit(inner));
    add({.kind = Kind::end});
    program.code[at].next = at + 1;
    program.code[at].other = here();
    return {};
  }

  // A split that prefers to enter what follows, or, if lazy, to skip it. Its other target is set by
  // the caller.
  std::uint32_t add_optional() { return add({.kind = Kind::split}); }

  void close_optional(std::uint32_t split, bool lazy) {
    program.code[split].next = lazy ? here() : split + 1;
    program.code[split].other = lazy ? split + 1 : here();
  }

  Status emit_repeat(const PatternNode& node) {
    const PatternNode& body = node.parts[0];
    if (body.kind == PatternNode::Kind::set) {
      add({.kind = Kind::span,
           .greed = node.greed,
           .set = add_set(body.set),
           .least = node.least,
           .most = node.most});
      return {};
    }
    if (node.greed == Greed::possessive) {
      PatternNode greedy = node;
      greedy.greed = Greed::greedy;
      return emit_inner(Kind::atomic, greedy, false);
    }
    const bool lazy = node.greed == Greed::lazy;
    for (std::uint32_t i = 0; i < node.least; ++i) WEFT_TRY_STATUS(emit(body));
    if (node.most == kUnbounded) {
      if (can_be_empty(body))
        return user_error(
            "a repeated group that can match the empty string is not supported in the pattern "
            "of a tokenizer");
      const std::uint32_t split = add_optional();
      WEFT_TRY_STATUS(emit(body));
      add({.kind = Kind::jump, .next = split});
      close_optional(split, lazy);
      return {};
    }
    std::vector<std::uint32_t> splits;
    for (std::uint32_t i = node.least; i < node.most; ++i) {
      splits.push_back(add_optional());
      WEFT_TRY_STATUS(emit(body));
    }
    for (const std::uint32_t split : splits) close_optional(split, lazy);
    return {};
  }
};

}  // namespace

Result<PatternProgram> compile_pattern(std::string_view pattern) {
  WEFT_TRY(tree, parse_pattern(pattern));
  prepare_sets(tree);
  PatternCompiler compiler;
  WEFT_TRY_STATUS(compiler.emit(tree));
  compiler.add({.kind = Kind::end});
  compiler.program.first = first_bytes(tree);
  return std::move(compiler.program);
}

}  // namespace weft::text
