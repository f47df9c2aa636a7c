// weft/collectives/chunks/collective_text.h -- the text header that programs and moves share.
//
//   collective all_gather, 3 ranks, 1 chunk, counts [3, 1, 4], in place
//   want output[0] of 1 = input[0] of 0 + input[0] of 2
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/token_reader.h"
#include "weft/collectives/chunks/collective.h"
#include "weft/collectives/chunks/program.h"

namespace weft::collective {

std::string print_collective(const Collective& collective, Placement placement);

// Reads from the word `collective` on, including the wants. Errors are recorded in the reader.
void read_collective(TokenReader& reader, Collective& collective, Placement& placement);

// "2 ranks", "1 chunk"
std::string print_amount(std::int64_t amount, std::string_view what);
void read_plural(TokenReader& reader, std::string_view singular);  // "rank" or "ranks"

// "input[2..4]": `count` chunks, the first of them at `slot`.
std::string print_slots(const Slot& slot, std::int32_t count);
struct SlotRange {
  Slot first;
  std::int32_t count = 1;
};
SlotRange read_slots(TokenReader& reader);

// "[3, 1, 4]"
std::vector<std::int32_t> read_numbers(TokenReader& reader, std::string_view what);

}  // namespace weft::collective
