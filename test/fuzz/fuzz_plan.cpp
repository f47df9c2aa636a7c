// Any text is a plan or an error. A plan is well formed, and reads back with the same text and
// hash.

#include "promise.h"
#include "weft/plan/graph/hash.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/operators.h"

using weft::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto graph =
      weft::plan::read(std::string_view(reinterpret_cast<const char*>(data), size), weft::ops::all());
  if (!graph.ok()) {
    promise(!graph.error().message.empty(), "an error has a message");
    return 0;
  }
  const std::string printed = weft::plan::print(*graph);
  const weft::Status verified = weft::plan::verify(*graph);
  promise(verified.ok(), "a plan that was read is well formed", printed);
  const auto again = weft::plan::read(printed, weft::ops::all());
  promise(again.ok(), "printed text can be read", printed);
  promise(weft::plan::print(*again) == printed, "a plan that was read prints the same", printed);
  promise(weft::plan::structural_hash(*again) == weft::plan::structural_hash(*graph),
          "the hash is the same after reading back", printed);
  return 0;
}
