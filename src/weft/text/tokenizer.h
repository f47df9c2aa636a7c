// weft/text/tokenizer.h -- reads a tokenizer.json of Hugging Face and converts text to ids and back.
//
//   WEFT_TRY(tokenizer, Tokenizer::read("tokenizer.json"));
//   WEFT_TRY(ids, tokenizer.encode("In 1995", SpecialTokens::add));     // 1, 638, 29871, 2000
//   WEFT_TRY(text, tokenizer.decode(ids, SpecialTokens::leave_out));    // "In 1995"
//
//   text ─ added tokens ─ normalizer ─ added tokens ─ pre-tokenizer ─ model ─ post-processor ─▶ ids
//
// The ids equal those of Hugging Face's tokenizers, whose quirks the models were trained with.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/text/added_tokens.h"
#include "weft/text/decoder.h"
#include "weft/text/normalizer.h"
#include "weft/text/post_processor.h"
#include "weft/text/pre_tokenizer.h"
#include "weft/text/word_model.h"

namespace weft::text {

enum class SpecialTokens : std::uint8_t { leave_out, add };

class Tokenizer {
 public:
  static Result<Tokenizer> read(const std::string& path);
  static Result<Tokenizer> parse(std::string_view json);

  // Fails if the text is not UTF-8. Keeps a cache of words: one thread at a time.
  Result<std::vector<std::int32_t>> encode(std::string_view text, SpecialTokens special);

  // Ids without a token are left out.
  Result<std::string> decode(std::span<const std::int32_t> ids, SpecialTokens special) const;

  // The words that encode() passes to the model; for tests.
  Result<std::vector<std::string>> words(std::string_view text) const;

  // All ids are below.
  std::int32_t end() const;
  std::optional<std::int32_t> find(std::string_view token) const;

 private:
  Tokenizer() = default;

  Result<Pieces> divide(std::string_view text) const;
  Status append_word(std::string_view word, std::vector<std::int32_t>& ids);

  std::unique_ptr<WordModel> model_;
  AddedTokens added_;
  Normalizer normalizer_;
  std::optional<PreTokenizer> pre_tokenizer_;
  std::optional<PostProcessor> post_processor_;
  std::optional<Decoder> decoder_;
  TextMap<std::vector<std::int32_t>> cache_;
};

}  // namespace weft::text
