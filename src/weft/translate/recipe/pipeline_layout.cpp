#include "weft/translate/recipe/pipeline_layout.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/formats/value.h"

namespace weft::recipe {
namespace {

constexpr std::size_t kMostUnrolled = 1 << 16;
constexpr int kMostDepth = 8;

// Writes repetitions out: "E(t|)*2" becomes "Et|t|".
class Unroller {
 public:
  explicit Unroller(std::string_view text) : text_(text) {}

  Result<std::string> run() {
    WEFT_TRY(all, sequence(0));
    if (at_ < text_.size()) return wrong();
    return all;
  }

 private:
  Error wrong() const {
    return user_error(fmt::format("expected E, t, m, L, |, * or parentheses, found '{}' at {}",
                                  formats::shown(text_.substr(at_, 1)), at_ + 1),
                      "for example: \"Et*3|(t*4|)*6t*3L\"");
  }

  Result<std::string> sequence(int depth) {
    if (depth > kMostDepth) return user_error(fmt::format("groups within more than {} groups", kMostDepth));
    std::string all;
    while (at_ < text_.size() && text_[at_] != ')') {
      const char letter = text_[at_];
      if (letter == ',' || letter == ' ') {
        ++at_;
        continue;
      }
      std::string once;
      if (letter == '(') {
        ++at_;
        WEFT_TRY(group, sequence(depth + 1));
        if (at_ == text_.size()) return user_error("a parenthesis is not closed");
        once = std::move(group);
      } else if (std::string_view("EtmL|").find(letter) != std::string_view::npos) {
        once = letter;
      } else {
        return wrong();
      }
      ++at_;
      WEFT_TRY(times, repetitions());
      if (once.size() * times + all.size() > kMostUnrolled)
        return user_error(fmt::format("more than {} layers and stages", kMostUnrolled));
      for (std::size_t i = 0; i < times; ++i) all += once;
    }
    return all;
  }

  Result<std::size_t> repetitions() {
    if (at_ == text_.size() || text_[at_] != '*') return std::size_t{1};
    ++at_;
    const std::size_t end = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    const auto times = read_number<std::size_t>(text_.substr(at_, end - at_), 1, kMostUnrolled);
    if (!times) return user_error(fmt::format("expected a number from 1 to {} after *", kMostUnrolled));
    at_ = end;
    return *times;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::vector<std::int64_t>> read_pipeline_layout(std::string_view text) {
  WEFT_TRY(letters, Unroller(text).run());
  if (!letters.starts_with('E') || std::ranges::count(letters, 'E') != 1)
    return user_error("expected one E, the embedding, at the start");
  if (!letters.ends_with('L') || std::ranges::count(letters, 'L') != 1)
    return user_error("expected one L, the loss, at the end");
  std::vector<std::int64_t> layers(1);
  for (const char letter : letters) {
    if (letter == '|') layers.push_back(0);
    if (letter == 't') ++layers.back();
  }
  return layers;
}

std::string print_pipeline_layout(std::span<const std::int64_t> layers) {
  const auto stage = [](std::int64_t count) {
    return count == 0 ? std::string() : count == 1 ? std::string("t") : fmt::format("t*{}", count);
  };
  std::string text = "E";
  for (std::size_t first = 0, next = 0; first < layers.size(); first = next) {
    for (next = first + 1; next + 1 < layers.size() && first > 0 && layers[next] == layers[first];) ++next;
    const bool is_last = next == layers.size();
    const std::string one = stage(layers[first]) + (is_last ? "" : "|");
    text += next - first > 1 ? fmt::format("({})*{}", one, next - first) : one;
  }
  return text + "L";
}

}  // namespace weft::recipe
