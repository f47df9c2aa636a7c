// Any bytes are a model graph or an error. A model is a well-formed plan that prints and reads back
// the same.

#include "promise.h"
#include "weft/formats/model_json.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/operators.h"

using weft::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto graph = weft::formats::parse_model_json(text);
  if (!graph.ok()) {
    promise(!graph.error().message.empty(), "an error has a message");
    return 0;
  }
  promise(!graph->outputs().empty(), "a model has an output", text);
  promise(weft::plan::verify(*graph).ok(), "a model that was read is well formed", text);
  const std::string printed = weft::plan::print(*graph);
  const auto again = weft::plan::read(printed, weft::ops::all());
  promise(again.ok() && weft::plan::print(*again) == printed, "the plan reads back", printed);
  return 0;
}
