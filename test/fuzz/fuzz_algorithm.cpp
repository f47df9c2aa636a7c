// Any text is an algorithm or complained about; an algorithm prints, the print means the same, and for
// whatever parameters a trace ends with moves that lie within their buffers, or with an error.

#include "promise.h"
#include "weft/collectives/algorithm/algorithm.h"
#include "weft/collectives/algorithm/claims.h"
#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/chunks/check_moves.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/language/complaint.h"

using weft::fuzz::promise;
using namespace weft::collective;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto reference = parse_reference(text); reference.ok())
    promise(parse_reference(print(*reference)).value() == *reference, "a reference reads back");
  const auto algorithm = parse_algorithm(text);
  if (!algorithm.ok()) {
    promise(!algorithm.error().message.empty(), "an error has a message");
    promise(weft::language::complain(algorithm.error(), text).ends_with('\n'),
            "a complaint ends its last line");
    return 0;
  }
  const std::string printed = print(*algorithm);
  const auto again = parse_algorithm(printed);
  promise(again.ok(), "what print writes, parse reads", printed);
  promise(print(*again) == printed, "print after parse changes nothing", printed);

  AlgorithmLibrary library;  // so that it can call itself
  library.add(*algorithm);
  const TraceLimits limits{.moves = 2000, .moved_chunks = 5000, .memory_chunks = 5000, .work = 20000};
  for (const std::int64_t ranks : {1, 2, 3, 4}) {
    const Arguments arguments = {{"ranks", ranks}};
    const auto moves = trace(*algorithm, arguments, library, limits);
    const auto same = trace(*again, arguments, library, limits);
    promise(moves.ok() == same.ok(), "the print runs as the text does", printed);
    if (!moves.ok()) {
      promise(!moves.error().message.empty(), "an error has a message");
      continue;
    }
    promise(*moves == *same, "the print means what the text meant", printed);
    promise(check_moves(*moves).ok(), "moves lie within their buffers", printed);
    const Measure measured = measure(*moves);
    promise(measured.steps <= static_cast<std::int64_t>(moves->moves.size()), "a chain is made of moves");
    const auto read = parse_moves(print(*moves));
    promise(read.ok() && *read == *moves, "moves read back", print(*moves));
  }
  return 0;
}
