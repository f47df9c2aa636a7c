#include "weft/text/pre_tokenizer.h"

#include <fmt/format.h>

#include "weft/formats/value.h"
#include "weft/text/byte_alphabet.h"
#include "weft/text/code_points.h"
#include "weft/text/tokenizer_json.h"
#include "weft/text/unicode.h"

namespace weft::text {
namespace {

using formats::JsonNode;
using Divide = std::function<Status(Pieces& pieces)>;

// The pattern of GPT-2, which "ByteLevel" stands for.
constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

bool is_punctuation(char32_t c) { return is_ascii_punctuation(c) || has_category(c, kPunctuation); }
bool is_number(char32_t c) { return has_category(c, kNumber); }

Divide divide_at_pattern(Pattern pattern, SplitBehavior behavior, bool inverted) {
  return [=](Pieces& pieces) {
    return divide_pieces(pieces, [&](const Piece& piece, std::vector<Piece>& out) -> Status {
      WEFT_TRY(matches, pattern.find_all(piece.text));
      split_at(piece, matches, behavior, inverted, out);
      return {};
    });
  };
}

// Runs of word characters, and runs of others that are not white space.
std::vector<Match> word_runs(std::string_view text) {
  enum class Class : std::uint8_t { white_space, word, other };
  std::vector<Match> runs;
  Class before = Class::white_space;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    const Class now = is_white_space(c.value) ? Class::white_space
                      : is_word(c.value)      ? Class::word
                                              : Class::other;
    if (now != Class::white_space && now == before)
      runs.back().end = at + c.length;
    else if (now != Class::white_space)
      runs.push_back({at, at + c.length});
    before = now;
    at += c.length;
  }
  return runs;
}

Status divide_into_words(Pieces& pieces) {
  return divide_pieces(pieces, [](const Piece& piece, std::vector<Piece>& out) -> Status {
    split_at(piece, word_runs(piece.text), SplitBehavior::removed, true, out);
    return {};
  });
}

Divide divide_at(bool (*is_delimiter)(char32_t), SplitBehavior behavior) {
  return [=](Pieces& pieces) {
    return divide_pieces(pieces, [&](const Piece& piece, std::vector<Piece>& out) -> Status {
      split_at(piece, matches_of(piece.text, is_delimiter), behavior, false, out);
      return {};
    });
  };
}

Result<SplitBehavior> read_behavior(const JsonNode& node, std::string_view otherwise) {
  WEFT_TRY(name, text_or(node, "behavior", otherwise));
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  return node.error(
      fmt::format("expected Removed, Isolated, Contiguous, MergedWithPrevious or MergedWithNext "
                  "in behavior, found '{}'",
                  formats::shown(name)));
}

Status to_byte_characters(Pieces& pieces) {
  std::string all;
  std::vector<std::size_t> ends;
  for (const Piece& piece : pieces.list) {
    if (piece.token < 0) append_byte_characters(all, piece.text);
    ends.push_back(all.size());
  }
  const std::string_view kept = pieces.keep(std::move(all));
  std::size_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (pieces.list[i].token < 0) pieces.list[i].text = kept.substr(begin, ends[i] - begin);
    begin = ends[i];
  }
  return {};
}

Result<Divide> read_byte_level(const JsonNode& node) {
  WEFT_TRY(prefix, truth_or(node, "add_prefix_space", true));
  WEFT_TRY(words, truth_or(node, "use_regex", true));
  WEFT_TRY(pattern, Pattern::parse(kGpt2Words));
  return Divide([=](Pieces& pieces) -> Status {
    WEFT_TRY_STATUS(divide_pieces(pieces, [&](const Piece& piece, std::vector<Piece>& out) -> Status {
      Piece whole = piece;
      if (prefix && !piece.text.starts_with(' ')) whole.text = pieces.keep(fmt::format(" {}", piece.text));
      if (!words) {
        out.push_back(whole);
        return {};
      }
      WEFT_TRY(matches, pattern.find_all(whole.text));
      split_at(whole, matches, SplitBehavior::isolated, false, out);
      return {};
    }));
    return to_byte_characters(pieces);
  });
}

Result<Divide> read_division(const JsonNode& node, std::string_view type) {
  if (type == "ByteLevel") return read_byte_level(node);
  if (type == "Metaspace") return read_metaspace(node);
  if (type == "WhitespaceSplit") return divide_at(is_white_space, SplitBehavior::removed);
  if (type == "Whitespace") return Divide(divide_into_words);
  if (type == "Punctuation") {
    WEFT_TRY(behavior, read_behavior(node, "Isolated"));
    return divide_at(is_punctuation, behavior);
  }
  if (type == "Digits") {
    WEFT_TRY(individual, truth_or(node, "individual_digits", false));
    return divide_at(is_number, individual ? SplitBehavior::isolated : SplitBehavior::contiguous);
  }
  if (type == "Split") {
    WEFT_TRY(pattern, read_pattern(node, "pattern"));
    WEFT_TRY(behavior, read_behavior(node, ""));
    WEFT_TRY(inverted, truth_or(node, "invert", false));
    return divide_at_pattern(pattern, behavior, inverted);
  }
  if (type == "CharDelimiterSplit") {
    WEFT_TRY(delimiter, node.text("delimiter"));
    return divide_at_pattern(Pattern::literal(delimiter), SplitBehavior::removed, false);
  }
  return unknown_type(node, type);
}

}  // namespace

Status PreTokenizer::add(const JsonNode& node) {
  WEFT_TRY(type, node.text("type"));
  if (type == "Sequence") {
    WEFT_TRY(parts, node.list("pretokenizers"));
    for (const JsonNode& part : parts) WEFT_TRY_STATUS(add(part));
    return {};
  }
  if (type == "BertPreTokenizer") {
    steps_.push_back(divide_at(is_white_space, SplitBehavior::removed));
    steps_.push_back(divide_at(is_punctuation, SplitBehavior::isolated));
    return {};
  }
  WEFT_TRY(step, read_division(node, type));
  steps_.push_back(std::move(step));
  return {};
}

Result<PreTokenizer> PreTokenizer::read(const JsonNode& node) {
  PreTokenizer made;
  WEFT_TRY_STATUS(made.add(node));
  return made;
}

Status PreTokenizer::apply(Pieces& pieces) const {
  for (const Step& step : steps_) WEFT_TRY_STATUS(step(pieces));
  return {};
}

}  // namespace weft::text
