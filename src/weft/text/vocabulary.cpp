#include "weft/text/vocabulary.h"

#include <fmt/format.h>

#include "weft/formats/value.h"
#include "weft/text/tokenizer_json.h"

namespace weft::text {

Result<Vocabulary> Vocabulary::read(const formats::JsonNode& node) {
  WEFT_TRY_STATUS(node.expect_object());
  Vocabulary vocabulary;
  vocabulary.ids_.reserve(node.value().size());
  for (const auto& [token, id] : node.value().items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= kMostTokens)
      return node.error(fmt::format("expected an id from 0 to {} for '{}', found {}", kMostTokens - 1,
                                    formats::shown(token), formats::shown(id.dump())));
    vocabulary.add(token, id.get<std::int32_t>());
  }
  return vocabulary;
}

void Vocabulary::add(std::string token, std::int32_t id) {
  if (tokens_.size() <= static_cast<std::size_t>(id)) tokens_.resize(static_cast<std::size_t>(id) + 1);
  tokens_[static_cast<std::size_t>(id)] = token;
  ids_.insert_or_assign(std::move(token), id);
}

std::optional<std::int32_t> Vocabulary::find(std::string_view token) const {
  const auto at = ids_.find(token);
  return at == ids_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<std::string_view> Vocabulary::token(std::int32_t id) const {
  if (id < 0 || id >= end() || !tokens_[static_cast<std::size_t>(id)]) return std::nullopt;
  return std::string_view(*tokens_[static_cast<std::size_t>(id)]);
}

std::optional<std::int32_t> Vocabulary::byte_token(char byte) const {
  return find(fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte)));
}

}  // namespace weft::text
