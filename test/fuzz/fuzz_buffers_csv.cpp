// Any text is a list of buffers or a user error. If the buffers can be packed, the packing passes
// the checker.

#include "promise.h"
#include "weft/formats/buffers_csv.h"
#include "weft/program/memory/check.h"

using weft::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = weft::formats::read_buffers_csv(text);
  if (!read.ok()) {
    promise(read.error().fault == weft::Fault::user, "a bad file is a user error");
    return 0;
  }
  promise(read->ids.size() == read->buffers.size(), "every buffer has an id");
  const weft::memory::PackOptions options{.effort = 100};
  const auto packing = weft::memory::pack(read->buffers, options);
  if (packing.ok())
    promise(weft::memory::check(read->buffers, *packing, options).ok(), "the packing passes the checker",
            text);
  return 0;
}
