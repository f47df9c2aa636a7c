// Text that grows token by token equals the text of all tokens.
#include <gtest/gtest.h>

#include <string>

#include "weft/text/text_stream.h"

namespace weft::text {
namespace {

TEST(TextStream, EqualsTheTextOfAllTokens) {
  auto tokenizer = Tokenizer::read(WEFT_SOURCE_DIR "/test/data/docs_bpe.json");
  ASSERT_TRUE(tokenizer.ok());
  const std::string text = "ranks \u4e2d\u6587 caf\u00e9 \U0001F600\U0001F680 end\n";
  const auto ids = *tokenizer->encode(text, SpecialTokens::leave_out);
  for (std::size_t prompt = 0; prompt <= ids.size(); ++prompt) {
    const std::span<const std::int32_t> all(ids);
    auto stream = TextStream::after(*tokenizer, all.first(prompt));
    std::string grown;
    for (const std::int32_t id : all.subspan(prompt)) {
      const std::string part = *stream->push(id);
      EXPECT_EQ(part.find("\uFFFD"), std::string::npos) << part;
      grown += part;
    }
    grown += *stream->finish();
    const std::string before = *tokenizer->decode(all.first(prompt), SpecialTokens::add);
    if (before.ends_with("\uFFFD")) continue;  // a prompt that ends within a character
    EXPECT_EQ(before + grown, text);
  }
}

TEST(TextStream, PassesOnBytesThatAreNoCharacter) {
  auto tokenizer = Tokenizer::read(WEFT_SOURCE_DIR "/test/data/docs_bpe.json");
  const std::int32_t continuation = *tokenizer->find("\u00c3");  // byte C3, which begins a character
  auto stream = TextStream::after(*tokenizer, {});
  std::string grown;
  for (int i = 0; i < 20; ++i) grown += *stream->push(continuation);
  grown += *stream->finish();
  std::string expected;
  for (int i = 0; i < 20; ++i) expected += "\uFFFD";
  EXPECT_EQ(grown, expected);
}

}  // namespace
}  // namespace weft::text
