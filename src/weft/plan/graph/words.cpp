#include "weft/plan/graph/words.h"

#include "weft/base/letters.h"

namespace weft::plan {

void append_word(std::string& out, std::string_view text) {
  if (is_plain_word(text)) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string quote_unless_plain(std::string_view text) {
  std::string out;
  append_word(out, text);
  return out;
}

}  // namespace weft::plan
