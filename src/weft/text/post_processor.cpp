#include "weft/text/post_processor.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/formats/value.h"
#include "weft/text/tokenizer_json.h"

namespace weft::text {

using formats::JsonNode;

// {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
//  "special_tokens": {"<s>": {"ids": [1]}}}
Status PostProcessor::add_template(const JsonNode& node) {
  WEFT_TRY(parts, node.list("single"));
  Step step;
  for (const JsonNode& part : parts) {
    if (part.has("Sequence")) {
      step.parts.push_back(kText);
      continue;
    }
    WEFT_TRY(token, part.at("SpecialToken"));
    WEFT_TRY(name, token.text("id"));
    WEFT_TRY(tokens, node.at("special_tokens"));
    WEFT_TRY_STATUS(tokens.expect_object());
    if (!tokens.value().contains(name))
      return token.error(fmt::format("'{}' is not among special_tokens", formats::shown(name)));
    const std::string key(name);  // nodes refer to their keys
    WEFT_TRY(entry, tokens.at(key.c_str()));
    WEFT_TRY(ids, entry.wholes("ids", 0, kMostTokens - 1));
    step.parts.insert(step.parts.end(), ids.begin(), ids.end());
  }
  steps_.push_back(std::move(step));
  return {};
}

// {"cls": ["<s>", 0], "sep": ["</s>", 2]}
Status PostProcessor::add_pair(const JsonNode& node) {
  Step step;
  for (const char* key : {"cls", "sep"}) {
    WEFT_TRY(items, node.list(key));
    if (items.size() != 2) return node.error(fmt::format("expected a token and its id in {}", key));
    WEFT_TRY(id, items[1].whole(0, kMostTokens - 1));
    step.parts.push_back(id);
  }
  step.parts.insert(step.parts.begin() + 1, kText);
  steps_.push_back(std::move(step));
  return {};
}

Status PostProcessor::add(const JsonNode& node) {
  WEFT_TRY(type, node.text("type"));
  if (type == "ByteLevel") return {};  // changes offsets only
  if (type == "TemplateProcessing") return add_template(node);
  if (type == "BertProcessing" || type == "RobertaProcessing") return add_pair(node);
  if (type != "Sequence") return unknown_type(node, type);
  WEFT_TRY(parts, node.list("processors"));
  for (const JsonNode& part : parts) WEFT_TRY_STATUS(add(part));
  return {};
}

Result<PostProcessor> PostProcessor::read(const JsonNode& node) {
  PostProcessor made;
  WEFT_TRY_STATUS(made.add(node));
  for (const Step& step : made.steps_)
    for (const std::int32_t part : step.parts) made.end_ = std::max(made.end_, part + 1);
  return made;
}

void PostProcessor::apply(std::vector<std::int32_t>& ids) const {
  for (const Step& step : steps_) {
    std::vector<std::int32_t> made;
    for (const std::int32_t part : step.parts)
      if (part == kText)
        made.insert(made.end(), ids.begin(), ids.end());
      else
        made.push_back(part);
    ids = std::move(made);
  }
}

}  // namespace weft::text
