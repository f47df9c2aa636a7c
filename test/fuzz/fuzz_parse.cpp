// Any bytes either parse or are complained about; what parses prints, and the print parses to
// the same syntax: the same text even with every pair of parentheses written out.

#include "promise.h"
#include "weft/language/complaint.h"
#include "weft/language/parser.h"
#include "weft/language/print.h"

using weft::fuzz::promise;
using weft::language::Parentheses;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto script = weft::language::parse(text);
  if (!script.ok()) {
    promise(!script.error().message.empty(), "an error has a message");
    promise(weft::language::complain(script.error(), text).ends_with('\n'), "a complaint ends its last line");
    return 0;
  }
  const std::string printed = weft::language::print(*script);
  const auto again = weft::language::parse(printed);
  promise(again.ok(), "what print writes, parse reads", printed);
  promise(weft::language::print(*again) == printed, "print after parse changes nothing", printed);
  promise(weft::language::print(*again, Parentheses::all) == weft::language::print(*script, Parentheses::all),
          "the print means what the text meant", printed);
  return 0;
}
