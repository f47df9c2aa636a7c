// weft/text/pre_tokenizer.h -- splits text into the words that a model tokenizes.
#pragma once
#include <functional>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/json_node.h"
#include "weft/text/pieces.h"

namespace weft::text {

class PreTokenizer {
 public:
  // Reads the value of "pre_tokenizer". Sequences become one list of steps.
  static Result<PreTokenizer> read(const formats::JsonNode& node);

  Status apply(Pieces& pieces) const;

 private:
  using Step = std::function<Status(Pieces& pieces)>;

  Status add(const formats::JsonNode& node);

  std::vector<Step> steps_;
};

// Replaces blanks by a character, usually U+2581, and prepends one.
Result<std::function<Status(Pieces& pieces)>> read_metaspace(const formats::JsonNode& node);

// Whether Metaspace prepends its character: "always", "never", or "first" for the start of the text.
enum class Prepending : std::uint8_t { always, first, never };
Result<Prepending> read_prepending(const formats::JsonNode& node);

}  // namespace weft::text
