#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "weft/base/number.h"

#include "weft/formats/value.h"
#include "weft/formats/xml_document.h"

namespace weft::formats {

std::string describe_place(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t newline = before.rfind('\n');
  return fmt::format("line {} column {}", std::ranges::count(before, '\n') + 1,
                     newline == before.npos ? offset + 1 : offset - newline);
}

std::string escape_attribute(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    switch (letter) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\t':
      case '\n':
      case '\r': out += fmt::format("&#{};", static_cast<int>(letter)); break;
      default: out += letter;
    }
  }
  return out;
}

XmlElement XmlElement::first_child(std::string_view tag) const {
  const XmlElement child = first_child();
  return !child || child.tag() == tag ? child : child.next_sibling(tag);
}

XmlElement XmlElement::next_sibling(std::string_view tag) const {
  XmlElement next = next_sibling();
  while (next && next.tag() != tag) next = next.next_sibling();
  return next;
}

std::optional<std::string_view> XmlElement::find(std::string_view attribute) const {
  std::string_view value;
  find_all({&attribute, 1}, {&value, 1});
  if (value.data() == nullptr) return std::nullopt;
  return value;
}

Result<std::string_view> XmlElement::text(std::string_view attribute) const {
  if (const auto value = find(attribute)) return *value;
  return missing(attribute);
}

Result<std::int64_t> XmlElement::integer(std::string_view attribute, std::int64_t low,
                                         std::int64_t high) const {
  const auto value = find(attribute);
  if (!value) return missing(attribute);
  if (const auto number = read_number<std::int64_t>(*value, low, high)) return *number;
  return not_in_range(attribute, low, high);
}

Result<std::int64_t> XmlElement::integer_or(std::string_view attribute, std::int64_t low, std::int64_t high,
                                            std::int64_t absent) const {
  if (!find(attribute)) return absent;
  return integer(attribute, low, high);
}

std::string XmlElement::place(std::string_view attribute) const {
  return describe_place(document_->text(), span(attribute).offset);
}

Error XmlElement::missing(std::string_view attribute) const {
  return error(fmt::format("<{}> at {} has no attribute {}", tag(), place(), attribute));
}

Error XmlElement::not_in_range(std::string_view attribute, std::int64_t low, std::int64_t high) const {
  constexpr std::int64_t kHighest = std::numeric_limits<std::int32_t>::max();
  return unexpected(attribute, high >= kHighest ? fmt::format("a whole number from {}", low)
                                                : fmt::format("a whole number from {} to {}", low, high));
}

Error XmlElement::unexpected(std::string_view attribute, std::string_view expected, std::string hint) const {
  return user_error(fmt::format("attribute {} of <{}> at {} is not {}: {}", attribute, tag(),
                                place(attribute), expected, shown(find(attribute).value_or(""))),
                    std::move(hint), span(attribute));
}

Error XmlElement::error(std::string message, std::string hint) const {
  return user_error(std::move(message), std::move(hint), span({}));
}

}  // namespace weft::formats
