// weft/text/post_processor.h -- adds special tokens around a text, such as <s> before it.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/json_node.h"

namespace weft::text {

class PostProcessor {
 public:
  // Reads the value of "post_processor".
  static Result<PostProcessor> read(const formats::JsonNode& node);

  void apply(std::vector<std::int32_t>& ids) const;
  std::int32_t end() const { return end_; }  // above all ids that it adds

 private:
  // A template may repeat the ids of the text or leave them out.
  struct Step {
    std::vector<std::int32_t> parts;  // ids, or kText for those of the text
  };
  static constexpr std::int32_t kText = -1;

  Status add(const formats::JsonNode& node);
  Status add_template(const formats::JsonNode& node);
  Status add_pair(const formats::JsonNode& node);

  std::vector<Step> steps_;
  std::int32_t end_ = 0;
};

}  // namespace weft::text
