// weft/text/decoder.h -- turns tokens back into text.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/json_node.h"

namespace weft::text {

class Decoder {
 public:
  // Reads the value of "decoder". Sequences become one list of steps.
  static Result<Decoder> read(const formats::JsonNode& node);

  Result<std::string> apply(std::vector<std::string> tokens) const;

 private:
  using Step = std::function<Result<std::vector<std::string>>(std::vector<std::string>)>;

  Status add(const formats::JsonNode& node);

  std::vector<Step> steps_;
};

}  // namespace weft::text
