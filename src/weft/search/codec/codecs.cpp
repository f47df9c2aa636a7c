#include "weft/search/codec/codecs.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/nearest.h"

namespace weft::search {
namespace {

constexpr std::string_view kExample = "for example: codecs = 'gradients: int8, weights: int8'";
constexpr std::array<std::string_view, 2> kCoded = {"gradients", "weights"};

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

Result<ops::CodecKind> read_codec(std::string_view word) {
  if (const auto found = ops::find_codec(word)) return *found;
  if (word == "one_bit" || word == "top_k")
    return user_error(
        fmt::format("{} needs what it loses to be added to what is sent next, which plans do not do", word),
        fmt::format("codecs of plans are {}", fmt::join(ops::plan_codecs(), ", ")));
  std::string hint = did_you_mean(word, ops::plan_codecs());
  return user_error(
      fmt::format("no codec: '{}'", word),
      hint.empty() ? fmt::format("codecs are {}", fmt::join(ops::plan_codecs(), ", ")) : std::move(hint));
}

}  // namespace

Result<Codecs> read_codecs(std::string_view text) {
  Codecs codecs;
  for (std::string_view rest = trimmed(text); !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = trimmed(rest.substr(0, comma));
    const bool more = comma < rest.size();
    rest = more ? rest.substr(comma + 1) : std::string_view();
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos || (more && trimmed(rest).empty()))
      return user_error(fmt::format("expected what is coded and by what, found '{}'", more ? rest : part),
                        std::string(kExample));
    const std::string_view what = trimmed(part.substr(0, colon));
    if (what != kCoded[0] && what != kCoded[1]) {
      std::string hint = did_you_mean(what, kCoded);
      return user_error(fmt::format("expected gradients or weights, found '{}'", what),
                        hint.empty() ? std::string(kExample) : std::move(hint));
    }
    WEFT_TRY(codec, read_codec(trimmed(part.substr(colon + 1))));
    std::optional<ops::CodecKind>& place = what == kCoded[0] ? codecs.gradients : codecs.weights;
    if (place) return user_error(fmt::format("{} are given two codecs", what));
    place = codec;
  }
  return codecs;
}

std::string print(const Codecs& codecs) {
  std::string text;
  if (codecs.gradients) text += fmt::format("gradients: {}", ops::name(*codecs.gradients));
  if (codecs.weights)
    text += fmt::format("{}weights: {}", text.empty() ? "" : ", ", ops::name(*codecs.weights));
  return text;
}

}  // namespace weft::search
