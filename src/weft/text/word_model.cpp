#include "weft/text/word_model.h"

#include "weft/text/tokenizer_json.h"

namespace weft::text {

Result<std::unique_ptr<WordModel>> read_word_model(const formats::JsonNode& node) {
  WEFT_TRY_STATUS(node.expect_object());
  // Older files have no type: only BPE has merges.
  WEFT_TRY(type, text_or(node, "type", node.has("merges") ? "BPE" : "Unigram"));
  if (type == "BPE") return read_bpe(node);
  if (type == "Unigram") return read_unigram(node);
  if (type == "WordPiece") return read_word_piece(node);
  if (type == "WordLevel") return read_word_level(node);
  return unknown_type(node, type);
}

}  // namespace weft::text
