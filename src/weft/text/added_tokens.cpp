#include "weft/text/added_tokens.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/text/code_points.h"
#include "weft/text/tokenizer_json.h"
#include "weft/text/unicode.h"

namespace weft::text {
namespace {

bool in_word_at(std::string_view text, std::size_t at) {
  return at < text.size() && is_word(code_point_at(text, at).value);
}

bool in_word_before(std::string_view text, std::size_t at) {
  return at > 0 && is_word(code_point_before(text, at).value);
}

std::size_t skip_white_space(std::string_view text, std::size_t at) {
  while (at < text.size() && is_white_space(code_point_at(text, at).value))
    at += code_point_at(text, at).length;
  return at;
}

std::size_t skip_white_space_back(std::string_view text, std::size_t at) {
  while (at > 0 && is_white_space(code_point_before(text, at).value))
    at -= code_point_before(text, at).length;
  return at;
}

Result<AddedToken> read_token(const formats::JsonNode& node) {
  AddedToken token;
  WEFT_TRY(content, node.text("content"));
  WEFT_TRY(single_word, truth_or(node, "single_word", false));
  WEFT_TRY(lstrip, truth_or(node, "lstrip", false));
  WEFT_TRY(rstrip, truth_or(node, "rstrip", false));
  WEFT_TRY(special, truth_or(node, "special", false));
  WEFT_TRY(normalized, truth_or(node, "normalized", !special));
  return AddedToken{std::string(content), single_word, lstrip, rstrip, normalized, special};
}

void sort_longest_first(std::vector<std::pair<std::string, std::int32_t>>& contents) {
  std::ranges::stable_sort(contents, std::ranges::greater(),
                           [](const auto& entry) { return entry.first.size(); });
}

}  // namespace

Result<AddedTokens> AddedTokens::read(const formats::JsonNode& root, const Vocabulary& vocabulary,
                                      const Normalizer& normalizer) {
  AddedTokens made;
  if (!root.sets("added_tokens")) return made;
  WEFT_TRY(entries, root.list("added_tokens"));
  auto next = static_cast<std::int32_t>(vocabulary.size());
  for (const formats::JsonNode& entry : entries) {
    WEFT_TRY(token, read_token(entry));
    if (token.content.empty()) continue;
    auto id = made.find(token.content);
    if (!id) id = vocabulary.find(token.content);
    if (!id) id = next++;
    if (*id >= kMostTokens) return entry.error("too many tokens");
    std::string searched = token.content;
    if (token.normalized && normalizer.changes()) {
      WEFT_TRY(changed, normalizer.apply(searched));
      searched.swap(changed);
      if (searched != token.content) made.normalized_[*id] = searched;
    }
    made.ids_.insert_or_assign(token.content, *id);
    if (made.tokens_.contains(*id))  // the last one of two replaces the first
      for (Search* search : {&made.exact_, &made.in_normalized_})
        for (auto& contents : *search)
          std::erase_if(contents, [&](const auto& other) { return other.second == *id; });
    if (!searched.empty()) {
      Search& search = token.normalized ? made.in_normalized_ : made.exact_;
      search[static_cast<unsigned char>(searched[0])].emplace_back(searched, *id);
    }
    made.tokens_.insert_or_assign(*id, std::move(token));
  }
  for (Search* search : {&made.exact_, &made.in_normalized_})
    for (auto& contents : *search) sort_longest_first(contents);
  return made;
}

void AddedTokens::divide_piece(const Piece& piece, const Search& search, std::vector<Piece>& out) const {
  const std::string_view text = piece.text;
  std::size_t done = 0;
  const auto add_text = [&](std::size_t end) {
    if (done < end)
      out.push_back({.text = text.substr(done, end - done), .at_start = piece.at_start && done == 0});
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto& contents = search[static_cast<unsigned char>(text[at])];
    const auto found = std::ranges::find_if(
        contents, [&](const auto& entry) { return text.substr(at).starts_with(entry.first); });
    if (found == contents.end()) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + found->first.size();
    at = end;
    const AddedToken& token = tokens_.at(found->second);
    if (token.single_word && (in_word_before(text, begin) || in_word_at(text, end))) continue;
    if (token.lstrip) begin = std::max(skip_white_space_back(text, begin), done);
    if (token.rstrip) end = skip_white_space(text, end);
    add_text(begin);
    out.push_back({.text = text.substr(begin, end - begin), .token = found->second});
    done = end;
  }
  add_text(text.size());
}

Status AddedTokens::divide(Pieces& pieces, bool normalized) const {
  const Search& search = normalized ? in_normalized_ : exact_;
  return divide_pieces(pieces, [&](const Piece& piece, std::vector<Piece>& out) -> Status {
    divide_piece(piece, search, out);
    return {};
  });
}

std::optional<std::int32_t> AddedTokens::find(std::string_view content) const {
  const auto at = ids_.find(content);
  return at == ids_.end() ? std::nullopt : std::optional(at->second);
}

const AddedToken* AddedTokens::token(std::int32_t id) const {
  const auto at = tokens_.find(id);
  return at == tokens_.end() ? nullptr : &at->second;
}

std::string_view AddedTokens::decoded(std::int32_t id) const {
  const auto at = normalized_.find(id);
  return at == normalized_.end() ? std::string_view(tokens_.at(id).content) : std::string_view(at->second);
}

}  // namespace weft::text
