// Tokenizers: ids and text of small ones, and files that are wrong.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/text/tokenizer.h"

namespace weft::text {
namespace {

using Ids = std::vector<std::int32_t>;

std::string tokenizer(std::string_view model, std::string_view others = "") {
  return fmt::format(R"({{"version": "1.0", "model": {}{}{}}})", model, others.empty() ? "" : ", ", others);
}

std::string error_of(std::string_view json) {
  const auto parsed = Tokenizer::parse(json);
  return parsed.ok() ? "no error" : parsed.error().message;
}

Ids encode(std::string_view json, std::string_view text, SpecialTokens special = SpecialTokens::leave_out) {
  auto parsed = Tokenizer::parse(json);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  auto ids = parsed->encode(text, special);
  EXPECT_TRUE(ids.ok()) << ids.error().message;
  return *ids;
}

std::string words(std::string_view pre_tokenizer, std::string_view text,
                  std::string_view normalizer = "null") {
  const auto parsed = Tokenizer::parse(
      tokenizer(R"({"type": "WordLevel", "vocab": {"?": 0}, "unk_token": "?"})",
                fmt::format(R"("normalizer": {}, "pre_tokenizer": {})", normalizer, pre_tokenizer)));
  if (!parsed.ok()) return parsed.error().message;
  std::string all;
  const auto found = parsed->words(text);
  for (const std::string& word : *found) all += (all.empty() ? "" : "|") + word;
  return all;
}

constexpr std::string_view kHello =
    R"({"type": "BPE", "vocab": {"h": 0, "e": 1, "l": 2, "o": 3, "ll": 4, "he": 5, "hell": 6},
        "merges": ["l l", ["h", "e"], "he ll"]})";

TEST(Tokenizer, MergesPairsInTheOrderTheyWereLearned) {
  EXPECT_EQ(encode(tokenizer(kHello), "hello"), (Ids{6, 3}));
  EXPECT_EQ(encode(tokenizer(kHello), "llloe"), (Ids{4, 2, 3, 1}));
  EXPECT_EQ(encode(tokenizer(kHello), "hexllo"), (Ids{6, 3}));  // x has no token and no unk_token
}

TEST(Tokenizer, FallsBackToBytes) {
  std::string vocabulary = R"("a": 0)";
  for (int byte = 0; byte < 256; ++byte) vocabulary += fmt::format(R"(, "<0x{:02X}>": {})", byte, byte + 1);
  const std::string json = tokenizer(
      fmt::format(R"({{"type": "BPE", "vocab": {{{}}}, "merges": [], "byte_fallback": true}})", vocabulary),
      R"("decoder": {"type": "ByteFallback"})");
  EXPECT_EQ(encode(json, "a\u00e9"), (Ids{0, 0xC3 + 1, 0xA9 + 1}));
  const auto parsed = Tokenizer::parse(json);
  EXPECT_EQ(*parsed->decode(Ids{0, 0xC3 + 1, 0xA9 + 1}, SpecialTokens::add), "a\u00e9");
  EXPECT_EQ(*parsed->decode(Ids{0xC3 + 1, 0}, SpecialTokens::add), "\uFFFDa");
}

TEST(Tokenizer, FindsTheMostLikelyUnigrams) {
  const std::string json = tokenizer(
      R"({"type": "Unigram", "unk_id": 0, "vocab": [["?", -20], ["h", -4], ["he", -3], ["hell", -5], ["llo", -4], ["o", -1]]})");
  EXPECT_EQ(encode(json, "hello"), (Ids{3, 5}));
  EXPECT_EQ(encode(json, "hexyo"), (Ids{2, 0, 5}));  // unknown characters in sequence are one token
}

TEST(Tokenizer, SplitsWordsIntoTheLongestPieces) {
  const std::string json =
      tokenizer(R"({"type": "WordPiece", "vocab": {"[UNK]": 0, "un": 1, "##able": 2, "##a": 3, "una": 4}})",
                R"("pre_tokenizer": {"type": "BertPreTokenizer"})");
  EXPECT_EQ(encode(json, "unable una xun"), (Ids{0, 4, 0}));
  EXPECT_EQ(encode(json, "unaable"), (Ids{4, 2}));
}

TEST(Tokenizer, AddsSpecialTokensAndLeavesThemOut) {
  const std::string json = tokenizer(
      kHello,
      R"("added_tokens": [{"id": 7, "content": "<s>", "special": true}, {"id": 8, "content": "<m>", "lstrip": true, "special": true}],
         "decoder": {"type": "Fuse"},
         "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
           "special_tokens": {"<s>": {"id": "<s>", "ids": [7]}}})");
  EXPECT_EQ(encode(json, "hello  <m>o", SpecialTokens::add), (Ids{7, 6, 3, 8, 3}));
  EXPECT_EQ(encode(json, "<s>he"), (Ids{7, 5}));
  const auto parsed = Tokenizer::parse(json);
  EXPECT_EQ(*parsed->decode(Ids{7, 6, 3, 8, 3}, SpecialTokens::leave_out), "helloo");
  EXPECT_EQ(*parsed->decode(Ids{7, 6, 3, 8, 3}, SpecialTokens::add), "<s>hello<m>o");
  EXPECT_EQ(parsed->end(), 9);
}

TEST(Tokenizer, SplitsText) {
  EXPECT_EQ(words(R"({"type": "ByteLevel", "add_prefix_space": false})", "I'll see  2 caf\u00e9s"),
            "I|'ll|\u0120see|\u0120|\u01202|\u0120caf\u00c3\u00a9s");
  EXPECT_EQ(words(R"({"type": "Metaspace", "replacement": "_"})", "a  b"), "_a|_|_b");
  EXPECT_EQ(
      words(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never", "split": false})", "a b"),
      "a_b");
  EXPECT_EQ(
      words(
          R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": true, "prepend_scheme": "first"})",
          " a b"),
      "_a|_b");
  EXPECT_EQ(words(R"({"type": "Whitespace"})", "don't\tstop"), "don|'|t|stop");
  EXPECT_EQ(words(R"({"type": "Digits", "individual_digits": true})", "ab12"), "ab|1|2");
  for (const auto& [behavior, expected] :
       {std::pair("Removed", "a|b|c"), std::pair("Isolated", "a|-|b|-|-|c"),
        std::pair("Contiguous", "a|-|b|--|c"), std::pair("MergedWithPrevious", "a-|b-|-|c"),
        std::pair("MergedWithNext", "a|-b|-|-c")})
    EXPECT_EQ(
        words(fmt::format(
                  R"({{"type": "Split", "pattern": {{"String": "-"}}, "behavior": "{}", "invert": false}})",
                  behavior),
              "a-b--c"),
        expected);
}

TEST(Tokenizer, NormalizesText) {
  EXPECT_EQ(words("null", "E\u0301", R"({"type": "NFC"})"), "\u00c9");
  EXPECT_EQ(words("null", "\u00c9",
                  R"({"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]})"),
            "E");
  EXPECT_EQ(words("null", "\u0130A", R"({"type": "Lowercase"})"), "i\u0307a");
  EXPECT_EQ(words("null", " a ", R"({"type": "Strip", "strip_left": true, "strip_right": false})"), "a ");
  EXPECT_EQ(words("null", "a b", R"({"type": "Prepend", "prepend": "_"})"), "_a b");
  EXPECT_EQ(words("null", "H\u00e9\u4e2d\x01", R"({"type": "BertNormalizer"})"), "he \u4e2d ");
}

// The text of the tokens "▁a", "##b", " .", "<0x41>" and "c</w>".
std::string decoded(std::string_view decoder) {
  const auto parsed = Tokenizer::parse(tokenizer(
      R"({"type": "WordLevel", "vocab": {"\u2581a": 0, "##b": 1, ".": 2, "<0x41>": 3, "c</w>": 4}, "unk_token": "."})",
      fmt::format(R"("decoder": {})", decoder)));
  return parsed.ok() ? *parsed->decode(Ids{0, 1, 2, 3, 4}, SpecialTokens::add) : parsed.error().message;
}

TEST(Tokenizer, JoinsTokensAsItsDecoderSays) {
  EXPECT_EQ(decoded("null"), "\u2581a ##b . <0x41> c</w>");
  EXPECT_EQ(decoded(R"({"type": "Metaspace", "replacement": "\u2581"})"), "a##b.<0x41>c</w>");
  EXPECT_EQ(decoded(R"({"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never"})"),
            " a##b.<0x41>c</w>");
  EXPECT_EQ(decoded(R"({"type": "WordPiece", "prefix": "##", "cleanup": true})"), "\u2581ab. <0x41> c</w>");
  EXPECT_EQ(decoded(R"({"type": "BPEDecoder", "suffix": "</w>"})"), "\u2581a##b.<0x41>c");
  EXPECT_EQ(
      decoded(
          R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                        {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})"),
      "a##b.Ac</w>");
  EXPECT_EQ(decoded(R"({"type": "CTC"})"), "decoder: the type 'CTC' is not supported");
}

TEST(Tokenizer, RestoresTheTextOfAByteLevelTokenizer) {
  auto read = Tokenizer::read(WEFT_SOURCE_DIR "/test/data/docs_bpe.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->end(), 512);
  for (const char* text : {"Weft runs on ranks.", "caf\u00e9 \u4e2d\u6587 \U0001F600", " \n\t  x", ""}) {
    const auto ids = read->encode(text, SpecialTokens::add);
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(*read->decode(*ids, SpecialTokens::add), text);
  }
  const std::string all = *read_file(WEFT_SOURCE_DIR "/docs/training.md", 1 << 20);
  const auto ids = read->encode(all, SpecialTokens::leave_out);
  EXPECT_LT(ids->size() * 3, all.size() * 2);  // more than 1.5 bytes per token
  EXPECT_EQ(*read->decode(*ids, SpecialTokens::add), all);
}

TEST(Tokenizer, RefusesWhatItCannotRead) {
  EXPECT_EQ(error_of(R"({"version": "1.0", "model": {"type": "BPE")"),
            "expected JSON, found an error at byte 43");
  EXPECT_EQ(error_of(R"({"version": "2.0", "model": {}})"), "expected version 1.0, found '2.0'");
  EXPECT_EQ(error_of(R"({"version": "1.0"})"), "expected model, found none");
  EXPECT_EQ(error_of(tokenizer(R"({"type": "Oracle"})")), "model: the type 'Oracle' is not supported");
  EXPECT_EQ(error_of(tokenizer(kHello, R"("normalizer": {"type": "Rot13"})")),
            "normalizer: the type 'Rot13' is not supported");
  EXPECT_EQ(error_of(tokenizer(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]})")),
            "model.merges[0]: expected tokens of the vocabulary, found 'b', which is not");
  EXPECT_EQ(error_of(tokenizer(R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})")),
            "model.vocab: expected an id from 0 to 16777215 for 'a', found -1");
  EXPECT_EQ(error_of(tokenizer(R"({"type": "BPE", "vocab": {}, "merges": [], "dropout": 0.1})")),
            "model: expected no dropout, found 0.1: ids would differ between runs");
  EXPECT_EQ(
      error_of(tokenizer(
          kHello,
          R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a)\\1"}, "behavior": "Isolated"})")),
      R"(pre_tokenizer.pattern: \1 is not supported at character 5 of the pattern '(a)\1')");
  EXPECT_EQ(error_of(tokenizer(
                kHello, R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAEAAA=="})")),
            "normalizer: precompiled_charsmap ends before its trie");
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  auto parsed = Tokenizer::parse(tokenizer(kHello));
  const auto ids = parsed->encode("he\xFFo", SpecialTokens::add);
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.error().message, "expected UTF-8, found byte 0xff at offset 2");
}

}  // namespace
}  // namespace weft::text
