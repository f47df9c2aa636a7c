// weft/text/text_stream.h -- decodes tokens one by one, as a model generates them.
//
//   stream.push(id)    the text that became certain: "" while a character lacks bytes
//   stream.finish()    the rest; what is not UTF-8 as U+FFFD
//
// The text of a token can depend on its neighbours: bytes of one character, or the blank before the
// first word. So tokens are decoded together with those of the text before.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/text/tokenizer.h"

namespace weft::text {

class TextStream {
 public:
  // `before`: the tokens that the text continues. They are not part of the output.
  static Result<TextStream> after(const Tokenizer& tokenizer, std::span<const std::int32_t> before);

  Result<std::string> push(std::int32_t id);
  Result<std::string> finish();

 private:
  explicit TextStream(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  Result<std::string> take(bool all);

  const Tokenizer* tokenizer_;
  std::vector<std::int32_t> ids_;  // tokens of the last output, then tokens without output so far
  std::size_t done_ = 0;           // number of the former
  std::string shown_;              // their text
};

}  // namespace weft::text
