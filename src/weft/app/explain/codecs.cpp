#include "weft/app/explain/codecs.h"

#include <fmt/format.h>

#include "weft/app/explain/lines.h"
#include "weft/plan/ops/codec.h"

namespace weft::explain {

std::string codecs_lines(std::span<const search::CodedExchanges> coded, std::size_t width) {
  std::string text;
  for (const search::CodedExchanges& kind : coded)
    text += wrap(fmt::format("codecs: {}\n", search::print(kind)), width);
  return text;
}

nlohmann::ordered_json codecs_json(std::span<const search::CodedExchanges> coded) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const search::CodedExchanges& kind : coded)
    json.push_back({{"what", kind.what},
                    {"codec", ops::name(kind.codec.kind)},
                    {"exchanges", kind.coded},
                    {"tensors", kind.tensors},
                    {"bytes", kind.bytes},
                    {"code_bytes", kind.code_bytes},
                    {"times", kind.times},
                    {"error_bound", ops::error_bound_text(kind.codec.kind)},
                    {"feedback", kind.codec.feedback},
                    {"lost_bytes", kind.lost_bytes},
                    {"unworthy", kind.unworthy},
                    {"exact_exchanges", kind.exact},
                    {"exact_bytes", kind.exact_bytes}});
  return json;
}

}  // namespace weft::explain
