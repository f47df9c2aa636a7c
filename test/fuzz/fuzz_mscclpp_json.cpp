// Any bytes are an execution plan or an error; a plan has a verdict, and comes back equal when it is written.

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
  promise(!report.finding || !report.finding->text.empty(), "a finding says what it found");
  const auto written = write_mscclpp_json(*plan);
  promise(written.ok(), "a plan of good form can be written", text);
  const auto again = read_mscclpp_json(*written);
  promise(again.ok() && *again == *plan, "a plan that is written and read is the same", *written);
  promise(*write_mscclpp_json(*again) == *written, "the same plan is the same text", *written);
  return 0;
}
