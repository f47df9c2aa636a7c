// Any text is a table of times or a user error. Sizes ascend, times are finite, and a printed table
// reads back with the same sizes.

#include <cmath>

#include "promise.h"
#include "weft/formats/nccl_tests_log.h"

using weft::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = weft::formats::parse_collective_table(text, "a.log");
  if (!table.ok()) {
    promise(table.error().fault == weft::Fault::user, "a bad file is a user error");
    promise(!table.error().message.empty(), "an error has a message");
    return 0;
  }
  promise(!table->rows.empty(), "a table has rows");
  std::int64_t last = 0;
  for (const auto& row : table->rows) {
    promise(row.bytes > last, "sizes ascend");
    promise(std::isfinite(row.out_of_place_us) && std::isfinite(row.in_place_us), "times are finite");
    promise(row.out_of_place_us >= 0 && row.in_place_us >= 0, "times are not negative");
    last = row.bytes;
  }
  const std::string printed = weft::formats::print_nccl_tests_log(*table);
  const auto again = weft::formats::parse_collective_table(printed, "again.log");
  promise(again.ok(), "printed text can be read", printed);
  promise(again->rows.size() == table->rows.size(), "the number of rows reads back", printed);
  promise(again->ranks == table->ranks, "the rank count reads back", printed);
  for (std::size_t i = 0; i < table->rows.size(); ++i) {
    promise(again->rows[i].bytes == table->rows[i].bytes, "sizes read back", printed);
    const double before = table->rows[i].in_place_us, after = again->rows[i].in_place_us;
    promise(std::fabs(after - before) <= 0.06 * before, "times read back up to rounding", printed);
  }
  return 0;
}
