// Any bytes are a table or an error. A table has exactly the values of its rows, and all are
// finite.

#include "table_promise.h"
#include "weft/formats/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  weft::fuzz::promise_table(weft::formats::parse_npy(bytes, weft::fuzz::kFields, "a.npy"));
  return 0;
}
