// Any text is a table or an error of the user; a table has as many values as its rows want, all finite.

#include "table_promise.h"
#include "weft/formats/csv.h"

using weft::formats::Field;
using weft::plan::DType;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // A wide whole number besides: text can write one that no field of 32 bits holds.
  const Field fields[] = {weft::fuzz::kFields[0], weft::fuzz::kFields[1], {"token", 1, DType::i64}};
  const auto table = weft::formats::parse_csv(text, fields, "a.csv");
  weft::fuzz::promise_table(table);
  if (table.ok())
    weft::fuzz::promise(static_cast<std::int64_t>(table->values<std::int64_t>(2).size()) == table->rows(),
                        "one token in a row");
  return 0;
}
