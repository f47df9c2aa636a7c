// Any text is an algorithm or an error. An algorithm prints, and the printed text means the same.
// For any parameters, a trace ends with moves within their buffers or with an error.

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
            "a complaint ends with a newline");
    return 0;
  }
  const std::string printed = print(*algorithm);
  const auto again = parse_algorithm(printed);
  promise(again.ok(), "printed text parses", printed);
  promise(print(*again) == printed, "parsed text prints the same", printed);

  AlgorithmLibrary library;  // so that the algorithm can call itself
  library.add(*algorithm);
  const TraceLimits limits{.moves = 2000, .moved_chunks = 5000, .memory_chunks = 5000, .work = 20000};
  for (const std::int64_t ranks : {1, 2, 3, 4}) {
    const Arguments arguments = {{"ranks", ranks}};
    const auto moves = trace(*algorithm, arguments, library, limits);
    const auto same = trace(*again, arguments, library, limits);
    promise(moves.ok() == same.ok(), "printed text traces the same", printed);
    if (!moves.ok()) {
      promise(!moves.error().message.empty(), "an error has a message");
      continue;
    }
    promise(*moves == *same, "printed text means the same", printed);
    promise(check_moves(*moves).ok(), "moves lie within their buffers", printed);
    const Measure measured = measure(*moves);
    promise(measured.steps <= static_cast<std::int64_t>(moves->moves.size()),
            "there are at most as many steps as moves");
    const auto read = parse_moves(print(*moves));
    promise(read.ok() && *read == *moves, "moves read back", print(*moves));
  }
  return 0;
}
