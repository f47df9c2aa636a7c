// Any pattern compiles or is a user error. Its matches are in order, without overlap, and begin and
// end between characters.

#include "promise.h"
#include "weft/base/utf8.h"
#include "weft/text/pattern.h"

using weft::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string pattern = weft::valid_utf8({reinterpret_cast<const char*>(data), size});
  const auto compiled = weft::text::Pattern::parse(pattern);
  if (!compiled.ok()) {
    promise(compiled.error().fault == weft::Fault::user, "a bad pattern is a user error");
    promise(!compiled.error().message.empty(), "an error has a message");
    return 0;
  }
  const std::string_view text = "It's 1995,\r\n  caf\u00e9 \u4e2d\u6587 aaab";
  const auto matches = compiled->find_all(text);
  if (!matches.ok()) return 0;
  std::size_t done = 0;
  for (const weft::text::Match& match : *matches) {
    promise(done <= match.begin && match.begin <= match.end && match.end <= text.size(),
            "matches are in order");
    for (const std::size_t at : {match.begin, match.end})
      promise(at == text.size() || weft::starts_character(text[at]), "matches are whole characters");
    done = match.end;
  }
  return 0;
}
