// Any bytes are an index of tokens or a user error. The sequences of an index are counted once.

#include "promise.h"
#include "weft/text/token_file.h"

using weft::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto index = weft::text::parse_token_index({reinterpret_cast<const char*>(data), size}, "a.idx");
  if (!index.ok()) {
    promise(index.error().fault == weft::Fault::user, "a bad file is a user error");
    return 0;
  }
  promise(index->sequences >= 0 && static_cast<std::size_t>(index->sequences) * 12 <= size,
          "sequences fit the file");
  promise(index->tokens >= 0 && index->documents >= 0, "counts are not negative");
  return 0;
}
