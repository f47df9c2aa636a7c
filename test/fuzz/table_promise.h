// table_promise.h -- what every table reader guarantees for any bytes: a valid table, or an error
// with a message.
#pragma once
#include <algorithm>
#include <cmath>

#include "promise.h"
#include "weft/formats/table.h"

namespace weft::fuzz {

// The fields that the fuzzed readers read: two reals and a label per row.
inline const formats::Field kFields[] = {{"x", 2, plan::DType::f32}, {"label", 1, plan::DType::i32}};

inline void promise_table(const Result<formats::Table>& table) {
  if (!table.ok()) {
    promise(!table.error().message.empty(), "an error has a message");
    return;
  }
  const auto rows = static_cast<std::size_t>(table->rows());
  promise(rows > 0, "a table has rows");
  promise(table->values<float>(0).size() == 2 * rows, "two reals per row");
  promise(table->values<std::int32_t>(1).size() == rows, "one label per row");
  promise(std::ranges::all_of(table->values<float>(0), [](float x) { return std::isfinite(x); }),
          "numbers are finite");
}

}  // namespace weft::fuzz
