// weft/text/pieces.h -- a text divided into pieces: words to tokenize, and tokens already found.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/text/pattern.h"

namespace weft::text {

struct Piece {
  std::string_view text;
  bool at_start = false;    // nothing of the original text is before it
  std::int32_t token = -1;  // an added token; -1: text
};

struct Pieces {
  std::vector<Piece> list;
  std::deque<std::string> changed;  // text that pieces refer to, where steps changed the original

  std::string_view keep(std::string text) { return changed.emplace_back(std::move(text)); }
};

// What happens to the text between pieces, in the words of the format.
enum class SplitBehavior : std::uint8_t {
  removed,               // "a-b--c": a b c
  isolated,              // a - b - - c
  contiguous,            // a - b -- c
  merged_with_previous,  // a- b- - c
  merged_with_next       // a -b - -c
};

// Divides a text at matches. If inverted, the matches are the pieces, and what is between them is
// the delimiter.
void split_at(const Piece& piece, const std::vector<Match>& matches, SplitBehavior behavior, bool inverted,
              std::vector<Piece>& out);

// Each code point that `is_delimiter` accepts, as a match.
std::vector<Match> matches_of(std::string_view text, bool (*is_delimiter)(char32_t));

// Replaces each piece that is not a token by what `divide` appends.
Status divide_pieces(Pieces& pieces,
                     const std::function<Status(const Piece& piece, std::vector<Piece>& out)>& divide);

}  // namespace weft::text
