// Any text is a schedule or a user error. What is read is a valid schedule, and reads back from what it
// prints.

#include "promise.h"
#include "weft/parallel/pipeline/torch_csv.h"
#include "weft/parallel/pipeline/verify.h"

using weft::fuzz::promise;
using namespace weft::pipeline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = parse_torch_csv(text);
  if (!read.ok()) {
    promise(read.error().fault == weft::Fault::user, "a bad file is a user error");
    return 0;
  }
  promise(verify(read->schedule).ok(), "what is read is valid", text);
  for (const TorchFormat format : {TorchFormat::compute_only, TorchFormat::compute_comms}) {
    const auto printed = print_torch_csv(read->schedule, format);
    promise(printed.ok(), "what is read can be printed", text);
    const auto again = parse_torch_csv(*printed);
    promise(again.ok() && again->schedule.orders == read->schedule.orders, "what is printed reads back",
            text);
  }
  return 0;
}
