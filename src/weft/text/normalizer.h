// weft/text/normalizer.h -- changes text before it is split: Unicode forms, case, accents.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/json_node.h"

namespace weft::text {

class Normalizer {
 public:
  // Reads the value of "normalizer". Sequences become one list of steps.
  static Result<Normalizer> read(const formats::JsonNode& node);

  Result<std::string> apply(std::string text) const;
  bool changes() const { return !steps_.empty(); }

 private:
  using Step = std::function<Result<std::string>(std::string)>;

  Status add(const formats::JsonNode& node);

  std::vector<Step> steps_;
};

// The normalizer of BERT, as one step.
Result<std::function<Result<std::string>(std::string)>> read_bert_normalizer(const formats::JsonNode& node);

}  // namespace weft::text
