// Metaspace: replaces blanks by a character, usually U+2581, and prepends one.
#include <string>

#include <fmt/format.h>

#include "weft/formats/value.h"
#include "weft/text/code_points.h"
#include "weft/text/pre_tokenizer.h"
#include "weft/text/tokenizer_json.h"

namespace weft::text {
namespace {

// Splits before each `mark`, except one that follows another mark directly.
void split_before(const Piece& piece, std::string_view mark, std::vector<Piece>& out) {
  std::vector<Match> matches;
  for (std::size_t at = piece.text.find(mark); at != std::string_view::npos;
       at = piece.text.find(mark, at + mark.size()))
    matches.push_back({at, at + mark.size()});
  split_at(piece, matches, SplitBehavior::merged_with_next, false, out);
}

}  // namespace

Result<Prepending> read_prepending(const formats::JsonNode& node) {
  WEFT_TRY(scheme, text_or(node, "prepend_scheme", "always"));
  WEFT_TRY(prefix, truth_or(node, "add_prefix_space", true));  // older files
  if (scheme != "always" && scheme != "first" && scheme != "never")
    return node.error(
        fmt::format("expected always, first or never in prepend_scheme, found '{}'", formats::shown(scheme)));
  if (scheme == "never" || (!prefix && !node.has("prepend_scheme"))) return Prepending::never;
  if (!prefix) return node.error(fmt::format("add_prefix_space contradicts prepend_scheme '{}'", scheme));
  return scheme == "first" ? Prepending::first : Prepending::always;
}

Result<std::function<Status(Pieces& pieces)>> read_metaspace(const formats::JsonNode& node) {
  WEFT_TRY(character, one_character(node, "replacement"));
  WEFT_TRY(prepending, read_prepending(node));
  WEFT_TRY(splits, truth_or(node, "split", true));
  std::string mark;
  append_code_point(mark, character);
  return std::function<Status(Pieces & pieces)>([=](Pieces& pieces) {
    return divide_pieces(pieces, [&](const Piece& piece, std::vector<Piece>& out) -> Status {
      std::string text;
      text.reserve(piece.text.size() + piece.text.size() / 2);
      for (const char c : piece.text)
        if (c == ' ')
          text += mark;
        else
          text += c;
      const bool prepends =
          prepending == Prepending::always || (prepending == Prepending::first && piece.at_start);
      if (prepends && !text.starts_with(mark)) text.insert(0, mark);
      const Piece changed{.text = pieces.keep(std::move(text)), .at_start = piece.at_start};
      if (splits)
        split_before(changed, mark, out);
      else
        out.push_back(changed);
      return {};
    });
  });
}

}  // namespace weft::text
