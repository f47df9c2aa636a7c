#include "weft/text/pieces.h"

#include <algorithm>

#include "weft/text/code_points.h"

namespace weft::text {
namespace {

struct Segment {
  std::size_t begin = 0, end = 0;
  bool delimiter = false;
};

// The matches and the text between them, in order, over all of the text. Empty matches stay.
std::vector<Segment> segments_of(std::string_view text, const std::vector<Match>& matches, bool inverted) {
  std::vector<Segment> segments;
  segments.reserve(matches.size() * 2 + 1);
  std::size_t done = 0;
  for (const Match& match : matches) {
    if (match.begin > done) segments.push_back({done, match.begin, inverted});
    segments.push_back({match.begin, match.end, !inverted});
    done = match.end;
  }
  if (done < text.size()) segments.push_back({done, text.size(), inverted});
  return segments;
}

void merge_contiguous(std::vector<Segment>& segments) {
  std::vector<Segment> merged;
  bool before = false;  // as if text were before the first segment
  for (const Segment& segment : segments) {
    if (segment.delimiter == before && !merged.empty())
      merged.back().end = segment.end;
    else
      merged.push_back(segment);
    before = segment.delimiter;
  }
  segments = std::move(merged);
}

void merge_with_previous(std::vector<Segment>& segments) {
  std::vector<Segment> merged;
  bool before = false;
  for (const Segment& segment : segments) {
    if (segment.delimiter && !before && !merged.empty())
      merged.back().end = segment.end;
    else
      merged.push_back(segment);
    before = segment.delimiter;
  }
  segments = std::move(merged);
}

void merge_with_next(std::vector<Segment>& segments) {
  std::vector<Segment> merged;  // from the end
  bool after = false;
  for (std::size_t i = segments.size(); i-- > 0;) {
    const Segment& segment = segments[i];
    if (segment.delimiter && !after && !merged.empty())
      merged.back().begin = segment.begin;
    else
      merged.push_back(segment);
    after = segment.delimiter;
  }
  std::ranges::reverse(merged);
  segments = std::move(merged);
}

}  // namespace

void split_at(const Piece& piece, const std::vector<Match>& matches, SplitBehavior behavior, bool inverted,
              std::vector<Piece>& out) {
  std::vector<Segment> segments = segments_of(piece.text, matches, inverted);
  if (behavior == SplitBehavior::contiguous) merge_contiguous(segments);
  if (behavior == SplitBehavior::merged_with_previous) merge_with_previous(segments);
  if (behavior == SplitBehavior::merged_with_next) merge_with_next(segments);
  for (const Segment& segment : segments) {
    if (segment.begin == segment.end || (behavior == SplitBehavior::removed && segment.delimiter)) continue;
    out.push_back({.text = piece.text.substr(segment.begin, segment.end - segment.begin),
                   .at_start = piece.at_start && segment.begin == 0});
  }
}

std::vector<Match> matches_of(std::string_view text, bool (*is_delimiter)(char32_t)) {
  std::vector<Match> matches;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (is_delimiter(c.value)) matches.push_back({at, at + c.length});
    at += c.length;
  }
  return matches;
}

Status divide_pieces(Pieces& pieces,
                     const std::function<Status(const Piece& piece, std::vector<Piece>& out)>& divide) {
  std::vector<Piece> divided;
  divided.reserve(pieces.list.size() * 2);
  for (const Piece& piece : pieces.list) {
    if (piece.token >= 0)
      divided.push_back(piece);
    else if (!piece.text.empty())
      WEFT_TRY_STATUS(divide(piece, divided));
  }
  pieces.list = std::move(divided);
  return {};
}

}  // namespace weft::text
