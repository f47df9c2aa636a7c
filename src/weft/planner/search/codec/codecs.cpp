#include "weft/planner/search/codec/codecs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/nearest.h"
#include "weft/base/number.h"

namespace weft::search {
namespace {

using ops::CodecKind;

constexpr std::string_view kExample = "for example: codecs = 'gradients: int8, weights: int8'";
constexpr std::string_view kWith = " with feedback", kAlways = " always";
constexpr std::array<std::string_view, 3> kCoded = {"gradients", "weights", "activations"};

// The choice for "gradients", "weights" or "activations".
CodecChoice& choice_of(Codecs& codecs, std::string_view what) {
  if (what == kCoded[0]) return codecs.gradients;
  return what == kCoded[1] ? codecs.weights : codecs.activations;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

bool take_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text = trimmed(text.substr(0, text.size() - end.size()));
  return true;
}

// Without feedback, the output of these codecs is useless.
bool needs_feedback(CodecKind kind) {
  return kind == CodecKind::one_bit || kind == CodecKind::top_k || kind == CodecKind::low_rank;
}

// With few bits per number, small blocks lose less. A scale takes as much space as 8 numbers of 4
// bits.
constexpr std::int64_t kInt4Block = 64, kMostOfBlock = 65536;

// The text inside "(0.01)"; empty if there is none.
std::string_view inside_of(std::string_view text) {
  if (text.size() < 3 || !text.starts_with('(') || !text.ends_with(')')) return {};
  return trimmed(text.substr(1, text.size() - 2));
}

Result<std::int64_t> read_block(std::string_view text, std::string_view word) {
  const auto block = read_number<std::int64_t>(inside_of(text), 8, kMostOfBlock);
  if (!block || *block % 8 != 0)
    return user_error(fmt::format("a block of {} has 8 to {} numbers, a multiple of 8, found '{}'", word,
                                  kMostOfBlock, text),
                      fmt::format("for example: codecs = 'gradients: {}(64)'", word));
  return *block;
}

Result<double> read_kept(std::string_view text) {
  const auto kept = read_number<double>(inside_of(text));
  if (!kept || !(*kept > 0 && *kept < 1))
    return user_error(fmt::format("top_k keeps a share of the numbers between 0 and 1, found '{}'", text),
                      "for example: codecs = 'gradients: top_k(0.01)'");
  return *kept;
}

constexpr std::int64_t kMostRank = 1024;

Result<std::int64_t> read_rank(std::string_view text) {
  const auto rank = read_number<std::int64_t>(inside_of(text), 1, kMostRank);
  if (!rank)
    return user_error(fmt::format("the rank of low_rank is from 1 to {}, found '{}'", kMostRank, text),
                      "for example: codecs = 'gradients: low_rank(4)'");
  return *rank;
}

Result<AllowedCodec> read_codec(std::string_view text, std::string_view what) {
  AllowedCodec codec;
  const bool with = take_end(text, kWith);
  const std::size_t open = std::min(text.find('('), text.size());
  const std::string_view word = trimmed(text.substr(0, open));
  const auto found = ops::find_codec(word);
  if (!found) {
    std::string hint = did_you_mean(word, ops::codec_names());
    return user_error(
        fmt::format("unknown codec: '{}'", word),
        hint.empty() ? fmt::format("codecs are {}", fmt::join(ops::codec_names(), ", ")) : std::move(hint));
  }
  codec.kind = *found;
  if (codec.kind == CodecKind::top_k) {
    WEFT_TRY(kept, read_kept(text.substr(open)));
    codec.kept = kept;
  } else if (codec.kind == CodecKind::low_rank) {
    WEFT_TRY(rank, read_rank(text.substr(open)));
    codec.kept = static_cast<double>(rank);
  } else if (open < text.size() && ops::has_scales(codec.kind)) {
    WEFT_TRY(block, read_block(text.substr(open), word));
    codec.block = block;
  } else if (open < text.size()) {
    return user_error(fmt::format("{} takes no argument, found '{}'", word, text.substr(open)));
  }
  if (what != kCoded[0] && (with || needs_feedback(codec.kind)))
    return user_error(fmt::format("{} is for gradients: the error in {} is not added to the next message",
                                  needs_feedback(codec.kind) ? word : std::string_view("feedback"), what),
                      fmt::format("{}: int8", what));
  codec.feedback = with || needs_feedback(codec.kind);
  return codec;
}

Result<CodecChoice> read_choice(std::string_view text, std::string_view what) {
  constexpr std::string_view kOr = " or ";
  CodecChoice choice;
  choice.always = take_end(text, kAlways);
  for (bool more = true; more;) {
    const std::size_t end = std::min(text.find(kOr), text.size());
    more = end < text.size();
    WEFT_TRY(codec, read_codec(trimmed(text.substr(0, end)), what));
    if (std::ranges::find(choice.codecs, codec) != choice.codecs.end())
      return user_error(fmt::format("{} are given {} twice", what, print(codec)));
    choice.codecs.push_back(codec);
    if (more) text = text.substr(end + kOr.size());
  }
  return choice;
}

std::string print_choice(const CodecChoice& choice) {
  std::vector<std::string> codecs;
  for (const AllowedCodec& codec : choice.codecs) codecs.push_back(print(codec));
  return fmt::format("{}{}", fmt::join(codecs, " or "), choice.always ? kAlways : "");
}

}  // namespace

ops::Codec AllowedCodec::of(std::int64_t block_unasked, std::int64_t numbers, std::int64_t columns) const {
  if (kind == CodecKind::low_rank) return {kind, columns, static_cast<std::int64_t>(kept)};
  const std::int64_t unasked = kind == CodecKind::int4 ? std::min(block_unasked, kInt4Block) : block_unasked;
  ops::Codec codec{kind, block > 0 ? block : unasked, 0};
  if (kind == CodecKind::top_k)
    codec.kept = std::clamp<std::int64_t>(std::llround(kept * static_cast<double>(numbers)), 1,
                                          std::max<std::int64_t>(numbers, 1));
  return codec;
}

Result<Codecs> read_codecs(std::string_view text) {
  Codecs codecs;
  for (std::string_view rest = trimmed(text); !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = trimmed(rest.substr(0, comma));
    const bool more = comma < rest.size();
    rest = more ? rest.substr(comma + 1) : std::string_view();
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos || (more && trimmed(rest).empty()))
      return user_error(fmt::format("expected what to encode and a codec, found '{}'", more ? rest : part),
                        std::string(kExample));
    const std::string_view what = trimmed(part.substr(0, colon));
    if (std::ranges::find(kCoded, what) == kCoded.end()) {
      std::string hint = did_you_mean(what, kCoded);
      return user_error(fmt::format("expected gradients, weights or activations, found '{}'", what),
                        hint.empty() ? std::string(kExample) : std::move(hint));
    }
    WEFT_TRY(choice, read_choice(trimmed(part.substr(colon + 1)), what));
    CodecChoice& place = choice_of(codecs, what);
    if (place.any())
      return user_error(fmt::format("{} are given two codecs", what),
                        "one of several, whichever is quicker: 'gradients: int8 or int4'");
    place = std::move(choice);
  }
  return codecs;
}

std::string print(const AllowedCodec& codec) {
  std::string text(ops::name(codec.kind));
  if (codec.kind == CodecKind::top_k || codec.kind == CodecKind::low_rank)
    text += fmt::format("({})", codec.kept);
  if (codec.block > 0) text += fmt::format("({})", codec.block);
  if (codec.feedback && !needs_feedback(codec.kind)) text += kWith;
  return text;
}

std::string print(const Codecs& codecs) {
  std::vector<std::string> said;
  Codecs all = codecs;
  for (const std::string_view what : kCoded)
    if (const CodecChoice& choice = choice_of(all, what); choice.any())
      said.push_back(fmt::format("{}: {}", what, print_choice(choice)));
  return fmt::format("{}", fmt::join(said, ", "));
}

}  // namespace weft::search
