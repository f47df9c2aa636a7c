#include "weft/text/decoder.h"

#include <algorithm>
#include <utility>

#include "weft/base/utf8.h"
#include "weft/text/byte_alphabet.h"
#include "weft/text/code_points.h"
#include "weft/text/pattern.h"
#include "weft/text/pre_tokenizer.h"
#include "weft/text/tokenizer_json.h"

namespace weft::text {
namespace {

using formats::JsonNode;
using Tokens = std::vector<std::string>;
using Decoding = std::function<Result<Tokens>(Tokens)>;

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// Changes each token by itself.
template <class Change>
Decoding decode_each(Change change) {
  return [change](Tokens tokens) -> Result<Tokens> {
    for (std::size_t i = 0; i < tokens.size(); ++i) change(tokens[i], i, tokens.size());
    return tokens;
  };
}

Result<Tokens> decode_bytes(Tokens tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += bytes_of_characters(token).value_or(token);
  return Tokens{replace_ill_formed(bytes)};
}

// The byte of "<0x0A>".
std::optional<char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const auto digit =
        std::string_view("0123456789abcdef").find(static_cast<char>(c >= 'A' && c <= 'F' ? c + 32 : c));
    if (digit == std::string_view::npos) return std::nullopt;
    value = value * 16 + static_cast<int>(digit);
  }
  return static_cast<char>(value);
}

// Joins the tokens of bytes. If a sequence of them is not UTF-8, each byte becomes U+FFFD.
Result<Tokens> decode_byte_tokens(Tokens tokens) {
  Tokens decoded;
  std::string bytes;
  const auto finish = [&] {
    if (valid_utf8(bytes) == bytes && !bytes.empty())
      decoded.push_back(bytes);
    else
      decoded.insert(decoded.end(), bytes.size(), std::string(kReplacement));
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const auto byte = byte_of_token(token)) {
      bytes += *byte;
      continue;
    }
    finish();
    decoded.push_back(std::move(token));
  }
  finish();
  return decoded;
}

Result<Decoding> read_word_piece_decoder(const JsonNode& node) {
  WEFT_TRY(prefix, text_or(node, "prefix", "##"));
  WEFT_TRY(cleanup, truth_or(node, "cleanup", true));
  return decode_each([=](std::string& token, std::size_t i, std::size_t) {
    if (i > 0) {
      if (token.starts_with(prefix))
        token.erase(0, prefix.size());
      else
        token.insert(0, " ");
    }
    if (!cleanup) return;
    // English text as people write it.
    static constexpr std::pair<std::string_view, std::string_view> kEnglish[] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : kEnglish) replace_all(token, from, to);
  });
}

Result<Decoding> read_metaspace_decoder(const JsonNode& node) {
  WEFT_TRY(character, one_character(node, "replacement"));
  WEFT_TRY(prepending, read_prepending(node));
  std::string mark;
  append_code_point(mark, character);
  return decode_each([=](std::string& token, std::size_t i, std::size_t) {
    replace_all(token, mark, i == 0 && prepending != Prepending::never ? "" : " ");
  });
}

Result<Decoding> read_strip_decoder(const JsonNode& node) {
  WEFT_TRY(character, one_character(node, "content"));
  WEFT_TRY(start, node.size("start", 0));
  WEFT_TRY(stop, node.size("stop", 0));
  std::string mark;
  append_code_point(mark, character);
  return decode_each([=](std::string& token, std::size_t, std::size_t) {
    for (std::uint64_t k = 0; k < start && token.starts_with(mark); ++k) token.erase(0, mark.size());
    for (std::uint64_t k = 0; k < stop && token.ends_with(mark); ++k) token.erase(token.size() - mark.size());
  });
}

Result<Decoding> read_replace_decoder(const JsonNode& node) {
  WEFT_TRY(pattern, read_pattern(node, "pattern"));
  WEFT_TRY(content, node.text("content"));
  return Decoding([pattern, content = std::string(content)](Tokens tokens) -> Result<Tokens> {
    for (std::string& token : tokens) {
      WEFT_TRY(matches, pattern.find_all(token));
      for (std::size_t i = matches.size(); i-- > 0;)
        token.replace(matches[i].begin, matches[i].end - matches[i].begin, content);
    }
    return tokens;
  });
}

Result<Decoding> read_decoding(const JsonNode& node, std::string_view type) {
  if (type == "ByteLevel") return Decoding(decode_bytes);
  if (type == "ByteFallback") return Decoding(decode_byte_tokens);
  if (type == "Metaspace") return read_metaspace_decoder(node);
  if (type == "WordPiece") return read_word_piece_decoder(node);
  if (type == "Replace") return read_replace_decoder(node);
  if (type == "Strip") return read_strip_decoder(node);
  if (type == "Fuse")
    return Decoding([](const Tokens& tokens) -> Result<Tokens> {
      std::string all;
      for (const std::string& token : tokens) all += token;
      return Tokens{all};
    });
  if (type == "BPEDecoder") {
    WEFT_TRY(suffix, text_or(node, "suffix", "</w>"));
    return decode_each([=](std::string& token, std::size_t i, std::size_t count) {
      replace_all(token, suffix, i + 1 == count ? "" : " ");
    });
  }
  return unknown_type(node, type);
}

}  // namespace

Status Decoder::add(const JsonNode& node) {
  WEFT_TRY(type, node.text("type"));
  if (type == "Sequence") {
    WEFT_TRY(parts, node.list("decoders"));
    for (const JsonNode& part : parts) WEFT_TRY_STATUS(add(part));
    return {};
  }
  WEFT_TRY(step, read_decoding(node, type));
  steps_.push_back(std::move(step));
  return {};
}

Result<Decoder> Decoder::read(const JsonNode& node) {
  Decoder decoder;
  WEFT_TRY_STATUS(decoder.add(node));
  return decoder;
}

Result<std::string> Decoder::apply(std::vector<std::string> tokens) const {
  for (const Step& step : steps_) {
    auto decoded = step(std::move(tokens));
    if (!decoded.ok()) return std::move(decoded).error();
    tokens = std::move(decoded).value();
  }
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

}  // namespace weft::text
