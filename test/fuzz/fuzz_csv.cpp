// Any text is a table or a user error. A table has exactly the values of its rows, and all are
// finite.

#include "table_promise.h"
#include "weft/formats/csv.h"

using weft::formats::Field;
using weft::plan::DType;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Adds an i64 field, since text can hold integers that do not fit into 32 bits.
  const Field fields[] = {weft::fuzz::kFields[0], weft::fuzz::kFields[1], {"token", 1, DType::i64}};
  const auto table = weft::formats::parse_csv(text, fields, "a.csv");
  weft::fuzz::promise_table(table);
  if (table.ok())
    weft::fuzz::promise(static_cast<std::int64_t>(table->values<std::int64_t>(2).size()) == table->rows(),
                        "one token per row");
  return 0;
}
