// Any bytes are an execution plan or an error. The checker reaches a verdict on a plan, and a
// written plan reads back the same.

#include "promise.h"
#include "weft/collectives/one_sided/one_sided.h"
#include "weft/formats/mscclpp_json.h"

using weft::formats::read_mscclpp_json;
using weft::formats::write_mscclpp_json;
using weft::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = read_mscclpp_json(text);
  if (!plan.ok()) {
    promise(!plan.error().message.empty(), "an error has a message");
    return 0;
  }
  if (weft::collective::check_form(*plan)) return 0;
  const auto report = weft::collective::check(*plan);
  promise(!report.finding || !report.finding->text.empty(), "a finding has a text");
  const auto written = write_mscclpp_json(*plan);
  promise(written.ok(), "a well-formed plan can be written", text);
  const auto again = read_mscclpp_json(*written);
  promise(again.ok() && *again == *plan, "a written plan reads back the same", *written);
  promise(*write_mscclpp_json(*again) == *written, "equal plans give equal text", *written);
  return 0;
}
