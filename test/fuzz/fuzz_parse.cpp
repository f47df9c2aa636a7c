// Any bytes parse or give an error. A script prints, and the printed text parses to the same syntax
// tree: it prints the same even with all parentheses written out.

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
    promise(weft::language::complain(script.error(), text).ends_with('\n'),
            "a complaint ends with a newline");
    return 0;
  }
  const std::string printed = weft::language::print(*script);
  const auto again = weft::language::parse(printed);
  promise(again.ok(), "printed text parses", printed);
  promise(weft::language::print(*again) == printed, "parsed text prints the same", printed);
  promise(weft::language::print(*again, Parentheses::all) == weft::language::print(*script, Parentheses::all),
          "printed text means the same", printed);
  return 0;
}
