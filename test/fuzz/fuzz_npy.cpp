// Any bytes are a table or an error; a table has as many values as its rows want, all finite.

#include <algorithm>
#include <cmath>

#include "promise.h"
#include "weft/formats/npy.h"

using weft::formats::Field;
using weft::fuzz::promise;
using weft::plan::DType;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Field fields[] = {{"x", 2, DType::f32}, {"label", 1, DType::i32}};
  const auto table = weft::formats::parse_npy(bytes, fields, "a.npy");
  if (!table.ok()) {
    promise(!table.error().message.empty(), "an error has a message");
    return 0;
  }
  const auto rows = static_cast<std::size_t>(table->rows());
  promise(rows > 0, "a table has rows");
  promise(table->values<float>(0).size() == 2 * rows, "two reals in a row");
  promise(table->values<std::int32_t>(1).size() == rows, "one label in a row");
  promise(std::ranges::all_of(table->values<float>(0), [](float x) { return std::isfinite(x); }),
          "numbers are finite");
  return 0;
}
