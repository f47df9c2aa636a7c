#include "weft/app/session/generated_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/utf8.h"
#include "weft/text/code_points.h"

namespace weft::session {

void GeneratedText::append(std::string_view text) {
  if (ended_) return;
  const std::size_t before = text_.size();
  text_ += text;
  if (stop_.empty()) return pass_on(text_.size() - text::unfinished_bytes(text_));
  const std::size_t from = before < stop_.size() ? 0 : before - stop_.size() + 1;
  if (const std::size_t found = text_.find(stop_, std::min(from, before)); found != std::string::npos) {
    text_.resize(found);
    ended_ = true;
    return pass_on(found);
  }
  // Holds back what the stop text may begin with.
  std::size_t held = std::min(stop_.size() - 1, text_.size());
  while (held > 0 && !stop_.starts_with(std::string_view(text_).substr(text_.size() - held))) --held;
  const std::string_view certain = std::string_view(text_).substr(0, text_.size() - held);
  pass_on(certain.size() - text::unfinished_bytes(certain));
}

void GeneratedText::finish() { pass_on(text_.size()); }

void GeneratedText::pass_on(std::size_t end) {
  if (end <= passed_) return;
  if (on_text_) on_text_(printable(std::string_view(text_).substr(passed_, end - passed_)));
  passed_ = end;
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text));
    const bool layout = text[0] == '\n' || text[0] == '\t';
    if (layout || (utf8_length(text) > 0 && !begins_with_control(text)))
      result += text.substr(0, length);
    else if (utf8_length(text) == 0)
      result += "\xEF\xBF\xBD";
    else
      for (const char byte : text.substr(0, length))
        result += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace weft::session
