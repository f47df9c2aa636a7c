// weft/text/added_tokens.h -- tokens found in a text before it is split into words: <s>, <|im_start|>.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/json_node.h"
#include "weft/text/normalizer.h"
#include "weft/text/pieces.h"
#include "weft/text/vocabulary.h"

namespace weft::text {

struct AddedToken {
  std::string content;
  bool single_word = false;  // not inside a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and after it
  bool normalized = false;   // searched for in normalized text
  bool special = false;
};

class AddedTokens {
 public:
  // Reads the value of "added_tokens". A token of the vocabulary keeps its id; the others are
  // numbered after all others, as the reference does, whatever id the file has.
  static Result<AddedTokens> read(const formats::JsonNode& root, const Vocabulary& vocabulary,
                                  const Normalizer& normalizer);

  // Divides each piece at the tokens in it.
  Status divide(Pieces& pieces, bool normalized) const;

  std::optional<std::int32_t> find(std::string_view content) const;
  const AddedToken* token(std::int32_t id) const;
  // What decoders see: the normalized content, if that is what the token was found by.
  std::string_view decoded(std::int32_t id) const;
  std::int32_t end() const { return tokens_.empty() ? 0 : tokens_.rbegin()->first + 1; }

 private:
  // The contents to search for, longest first, by their first byte.
  using Search = std::array<std::vector<std::pair<std::string, std::int32_t>>, 256>;

  void divide_piece(const Piece& piece, const Search& search, std::vector<Piece>& out) const;

  std::map<std::int32_t, AddedToken> tokens_;
  std::map<std::int32_t, std::string> normalized_;
  TextMap<std::int32_t> ids_;
  Search exact_, in_normalized_;
};

}  // namespace weft::text
