#include "weft/text/tokenizer.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/base/utf8.h"
#include "weft/formats/json_node.h"
#include "weft/formats/value.h"

namespace weft::text {
namespace {

constexpr std::int64_t kMostTokenizerBytes = std::int64_t{256} << 20;

// Words repeat: with the cache most are looked up once. Long ones rarely repeat.
constexpr std::size_t kMostCachedWords = std::size_t{1} << 17, kLongestCachedWord = 64;

Status expect_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at, 4));
    if (length == 0)
      return user_error(fmt::format("expected UTF-8, found byte 0x{:02x} at offset {}",
                                    static_cast<unsigned char>(text[at]), at));
    at += length;
  }
  return {};
}

}  // namespace

Result<Tokenizer> Tokenizer::parse(std::string_view json) {
  auto document = formats::parse_json(json);
  if (!document.ok())
    return user_error(document.error().message, "the file may be truncated: fetch it again");
  const formats::JsonNode root(*document);
  WEFT_TRY(version, root.text("version"));
  if (version != "1.0")
    return user_error(fmt::format("expected version 1.0, found '{}'", formats::shown(version)));
  Tokenizer made;
  WEFT_TRY(model, root.at("model"));
  WEFT_TRY(word_model, read_word_model(model));
  made.model_ = std::move(word_model);
  if (root.sets("normalizer")) {
    WEFT_TRY(node, root.at("normalizer"));
    WEFT_TRY(normalizer, Normalizer::read(node));
    made.normalizer_ = std::move(normalizer);
  }
  if (root.sets("pre_tokenizer")) {
    WEFT_TRY(node, root.at("pre_tokenizer"));
    WEFT_TRY(pre_tokenizer, PreTokenizer::read(node));
    made.pre_tokenizer_ = std::move(pre_tokenizer);
  }
  if (root.sets("post_processor")) {
    WEFT_TRY(node, root.at("post_processor"));
    WEFT_TRY(post_processor, PostProcessor::read(node));
    made.post_processor_ = std::move(post_processor);
  }
  if (root.sets("decoder")) {
    WEFT_TRY(node, root.at("decoder"));
    WEFT_TRY(decoder, Decoder::read(node));
    made.decoder_ = std::move(decoder);
  }
  WEFT_TRY(added, AddedTokens::read(root, made.model_->vocabulary(), made.normalizer_));
  made.added_ = std::move(added);
  return made;
}

Result<Tokenizer> Tokenizer::read(const std::string& path) {
  WEFT_TRY(json, read_file(path, kMostTokenizerBytes));
  auto parsed = parse(json);
  if (!parsed.ok())
    return user_error(fmt::format("{}: {}", path, parsed.error().message), parsed.error().hint);
  return parsed;
}

std::int32_t Tokenizer::end() const {
  return std::max({model_->vocabulary().end(), added_.end(), post_processor_ ? post_processor_->end() : 0});
}

std::optional<std::int32_t> Tokenizer::find(std::string_view token) const {
  if (const auto id = added_.find(token)) return id;
  return model_->vocabulary().find(token);
}

Result<Pieces> Tokenizer::divide(std::string_view text) const {
  WEFT_TRY_STATUS(expect_utf8(text));
  Pieces pieces;
  pieces.list.push_back({.text = text, .at_start = true});
  WEFT_TRY_STATUS(added_.divide(pieces, false));
  if (normalizer_.changes())
    WEFT_TRY_STATUS(divide_pieces(pieces, [&](const Piece& piece, std::vector<Piece>& out) -> Status {
      WEFT_TRY(changed, normalizer_.apply(std::string(piece.text)));
      out.push_back({.text = pieces.keep(std::move(changed)), .at_start = piece.at_start});
      return {};
    }));
  WEFT_TRY_STATUS(added_.divide(pieces, true));
  if (pre_tokenizer_) WEFT_TRY_STATUS(pre_tokenizer_->apply(pieces));
  return pieces;
}

Result<std::vector<std::string>> Tokenizer::words(std::string_view text) const {
  WEFT_TRY(pieces, divide(text));
  std::vector<std::string> words;
  for (const Piece& piece : pieces.list)
    if (!piece.text.empty()) words.emplace_back(piece.text);
  return words;
}

Status Tokenizer::append_word(std::string_view word, std::vector<std::int32_t>& ids) {
  if (word.size() > kLongestCachedWord) return model_->append(word, ids);
  auto known = cache_.find(word);
  if (known == cache_.end()) {
    std::vector<std::int32_t> own;
    WEFT_TRY_STATUS(model_->append(word, own));
    if (cache_.size() >= kMostCachedWords) cache_.clear();
    known = cache_.emplace(std::string(word), std::move(own)).first;
  }
  ids.insert(ids.end(), known->second.begin(), known->second.end());
  return {};
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text, SpecialTokens special) {
  WEFT_TRY(pieces, divide(text));
  std::vector<std::int32_t> ids;
  for (const Piece& piece : pieces.list)
    if (piece.token >= 0)
      ids.push_back(piece.token);
    else if (!piece.text.empty())
      WEFT_TRY_STATUS(append_word(piece.text, ids));
  if (special == SpecialTokens::add && post_processor_) post_processor_->apply(ids);
  return ids;
}

Result<std::string> Tokenizer::decode(std::span<const std::int32_t> ids, SpecialTokens special) const {
  std::vector<std::string> tokens;
  for (const std::int32_t id : ids) {
    if (const AddedToken* added = added_.token(id)) {
      if (special == SpecialTokens::add || !added->special) tokens.emplace_back(added_.decoded(id));
    } else if (const auto token = model_->vocabulary().token(id)) {
      tokens.emplace_back(*token);
    }
  }
  if (decoder_) return decoder_->apply(std::move(tokens));
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += ' ';
    text += tokens[i];
  }
  return text;
}

}  // namespace weft::text
