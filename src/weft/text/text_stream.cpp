#include "weft/text/text_stream.h"

#include <algorithm>

namespace weft::text {
namespace {

constexpr std::string_view kIncomplete = "\xEF\xBF\xBD";

// Context that decoding needs: no decoder looks further back than the bytes of a character.
constexpr std::size_t kContextTokens = 16;

// Tokens without output so far: more than the four bytes of a character are not one.
constexpr std::size_t kMostHeldTokens = 8;

}  // namespace

Result<TextStream> TextStream::after(const Tokenizer& tokenizer, std::span<const std::int32_t> before) {
  TextStream stream(tokenizer);
  const auto context = before.last(std::min(before.size(), kContextTokens));
  stream.ids_.assign(context.begin(), context.end());
  stream.done_ = stream.ids_.size();
  WEFT_TRY(shown, tokenizer.decode(stream.ids_, SpecialTokens::add));
  stream.shown_ = std::move(shown);
  return stream;
}

Result<std::string> TextStream::push(std::int32_t id) {
  ids_.push_back(id);
  return take(false);
}

Result<std::string> TextStream::finish() { return take(true); }

Result<std::string> TextStream::take(bool all) {
  WEFT_TRY(text, tokenizer_->decode(ids_, SpecialTokens::add));
  const bool incomplete = text.ends_with(kIncomplete) && ids_.size() - done_ < kMostHeldTokens;
  if (incomplete && !all) return std::string();
  std::string fresh = text.size() > shown_.size() ? text.substr(shown_.size()) : std::string();
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(std::min(done_, ids_.size() - 1)));
  if (ids_.size() > kContextTokens) ids_.erase(ids_.begin(), ids_.end() - kContextTokens);
  done_ = ids_.size();
  WEFT_TRY(shown, tokenizer_->decode(ids_, SpecialTokens::add));
  shown_ = std::move(shown);
  return fresh;
}

}  // namespace weft::text
