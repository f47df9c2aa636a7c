// Any text is a chunk program or an error. A printed program reads back the same, and the checker
// finds it malformed, wrong or correct but never crashes. The same holds for moves.

#include <algorithm>

#include "promise.h"
#include "weft/collectives/algorithm/claims.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/language/complaint.h"

using weft::fuzz::promise;
using namespace weft::collective;

namespace {

// A valid program may have very large buffers and transfers, for which the checker takes too long
// here.
bool is_small(const Program& program) {
  constexpr std::int32_t kMost = 100;
  const Collective& collective = program.collective;
  if (collective.ranks > kMost || collective.chunks > kMost) return false;
  if (std::ranges::any_of(collective.counts, [](std::int32_t count) { return count > kMost; })) return false;
  for (const RankProgram& rank : program.ranks) {
    if (std::max({rank.input_chunks, rank.output_chunks, rank.scratch_chunks}) > kMost) return false;
    for (const Threadblock& block : rank.blocks)
      if (std::ranges::any_of(block.steps, [](const Step& step) { return step.count > kMost; })) return false;
  }
  return true;
}

void read_program(std::string_view text) {
  const auto program = parse_program(text);
  if (!program.ok()) {
    promise(!program.error().message.empty(), "an error has a message");
    promise(weft::language::complain(program.error(), text).ends_with('\n'),
            "a complaint ends with a newline");
    return;
  }
  const std::string printed = print(*program);
  const auto again = parse_program(printed);
  promise(again.ok(), "printed text parses", printed);
  promise(*again == *program, "printed text means the same", printed);
  if (check_form(*program) || !is_small(*program)) return;
  const Report report = check(*program);
  promise(!report.finding || !report.finding->text.empty(), "a finding has a text", printed);
}

void read_moves(std::string_view text) {
  const auto moves = parse_moves(text);
  if (!moves.ok()) {
    promise(!moves.error().message.empty(), "an error has a message");
    return;
  }
  const std::string printed = print(*moves);
  const auto again = parse_moves(printed);
  promise(again.ok() && *again == *moves, "moves read back", printed);
  measure(*moves);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_program(text);
  read_moves(text);
  return 0;
}
