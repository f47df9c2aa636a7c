#include "weft/formats/xml_document.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>
#include <pugixml.hpp>

namespace weft::formats {

// The parser works in place on `copy`, so names and values point into it. Offsets in `copy` equal
// those in `text`, which is unchanged.
struct XmlDocument::Tree {
  std::string_view text;
  std::unique_ptr<char[]> copy;
  pugi::xml_document document;

  std::uint32_t offset_of(const char* at) const { return static_cast<std::uint32_t>(at - copy.get()); }
};

namespace {

constexpr std::size_t kMaxAttributes = 64;                       // per element
constexpr std::size_t kMaxAllAttributes = std::size_t{1} << 25;  // per document

pugi::xml_node as_node(void* node) { return pugi::xml_node(static_cast<pugi::xml_node_struct*>(node)); }

pugi::xml_node element_from(pugi::xml_node node) {
  while (node && node.type() != pugi::node_element) node = node.next_sibling();
  return node;
}

// Faster than a library call for texts of a few letters, of which a document has hundreds of
// thousands.
std::size_t length(const char* text) {
  const char* end = text;
  while (*end != '\0') ++end;
  return static_cast<std::size_t>(end - text);
}

bool same(const char* text, std::string_view other) {
  for (const char letter : other)
    if (*text++ != letter) return false;
  return *text == '\0';
}

// The tree takes about 64 bytes per element and 40 per attribute, so the largest document could
// take gigabytes: count before building it.
Status check_size(std::string_view text) {
  if (text.size() > kMaxXmlBytes)
    return user_error(fmt::format("XML is longer than {} bytes: {}", kMaxXmlBytes, text.size()));
  if (const std::size_t zero = text.find('\0'); zero != text.npos)
    return user_error(fmt::format("XML has a zero byte: byte {}", zero),
                      "is it truncated, or not a text file?");
  constexpr std::size_t kShortestElement = 4;  // <a/>
  if (text.size() / kShortestElement <= kMaxXmlElements) return {};
  const auto many = [&](char mark, std::size_t most) {
    return static_cast<std::size_t>(std::ranges::count(text, mark)) > most;
  };
  if (many('<', 2 * kMaxXmlElements))  // an element has at most two tags
    return user_error(fmt::format("XML has more than {} elements", kMaxXmlElements));
  if (many('=', kMaxAllAttributes))
    return user_error(fmt::format("XML has more than {} attributes", kMaxAllAttributes));
  return {};
}

Error syntax_error(std::string_view text, const pugi::xml_parse_result& result) {
  const auto offset = static_cast<std::size_t>(std::max<std::ptrdiff_t>(result.offset, 0));
  const std::string place = describe_place(text, std::min(offset, text.size()));
  const Span span{static_cast<std::uint32_t>(offset), offset < text.size() ? 1u : 0u};
  switch (result.status) {
    case pugi::status_out_of_memory: return environment_error("not enough memory for the XML");
    case pugi::status_no_document_element: return user_error("XML has no element");
    case pugi::status_bad_doctype:
      return user_error(fmt::format("a DOCTYPE is not accepted: {}", place), "remove it", span);
    case pugi::status_end_element_mismatch:
      return user_error(fmt::format("XML has a mismatched end tag, or ends too early: {}", place),
                        "is the file truncated?", span);
    default:
      return user_error(fmt::format("XML is not well formed: {} at {}", result.description(), place),
                        "is the file truncated?", span);
  }
}

// Finds duplicate attributes of an element. One bit of 64 distinguishes most names, a hash the
// rest.
class Duplicates {
 public:
  bool full() const { return count_ == kMaxAttributes; }
  bool again(const char* name) {
    std::uint32_t hash = 0;
    for (const char* at = name; *at != '\0'; ++at) hash = hash * 33 + static_cast<unsigned char>(*at);
    const std::uint64_t bit = std::uint64_t{1} << ((hash * 0x9e3779b1u) >> 26);
    if ((bits_ & bit) != 0)
      for (std::size_t i = 0; i < count_; ++i)
        if (hashes_[i] == hash && std::strcmp(names_[i], name) == 0) return true;
    bits_ |= bit;
    hashes_[count_] = hash;
    names_[count_++] = name;
    return false;
  }

 private:
  std::size_t count_ = 0;
  std::uint64_t bits_ = 0;
  std::array<std::uint32_t, kMaxAttributes> hashes_;
  std::array<const char*, kMaxAttributes> names_;
};

}  // namespace

Status XmlDocument::check_attributes(void* node, Quotes quotes) const {
  Duplicates duplicates;
  const pugi::xml_node element = as_node(node);
  for (pugi::xml_attribute it = element.first_attribute(); it; it = it.next_attribute()) {
    const XmlElement at(this, node);
    if (duplicates.full())
      return at.error(
          fmt::format("<{}> at {} has more than {} attributes", at.tag(), at.place(), kMaxAttributes));
    if (duplicates.again(it.name()))
      return at.error(fmt::format("<{}> at {} has an attribute twice: {}", at.tag(), at.place(), it.name()));
    if (quotes == Quotes::double_only && tree_->text[tree_->offset_of(it.value()) - 1] != '"')
      return user_error(fmt::format("attribute {} of <{}> at {} is in single quotes", it.name(), at.tag(),
                                    at.place(it.name())),
                        "use double quotes: the loaders accept no others", at.span(it.name()));
  }
  return {};
}

// Rejects what the parser accepts: unlimited nesting, duplicate attributes, several roots, a
// DOCTYPE.
Status XmlDocument::check(Quotes quotes) const {
  const auto internal = [](pugi::xml_node node) { return static_cast<void*>(node.internal_object()); };
  pugi::xml_node root;
  for (pugi::xml_node node = tree_->document.first_child(); node; node = node.next_sibling()) {
    if (node.type() == pugi::node_doctype) return user_error("a DOCTYPE is not accepted", "remove it");
    if (node.type() != pugi::node_element) continue;
    if (root) {
      const XmlElement second(this, internal(node));
      return second.error(fmt::format("XML has a second root at {}: {}", second.place(), node.name()));
    }
    root = node;
  }
  int depth = 1;
  for (pugi::xml_node node = root; node;) {
    if (depth > kMaxXmlDepth) {
      const XmlElement deep(this, internal(node));
      return deep.error(fmt::format("elements are nested deeper than {}: {}", kMaxXmlDepth, deep.place()));
    }
    WEFT_TRY_STATUS(check_attributes(internal(node), quotes));
    if (const pugi::xml_node child = element_from(node.first_child()); child) {
      node = child;
      ++depth;
      continue;
    }
    for (; depth > 0; node = node.parent(), --depth) {
      if (depth == 1) return {};
      if (const pugi::xml_node next = element_from(node.next_sibling()); next) {
        node = next;
        break;
      }
    }
  }
  return {};
}

Result<XmlDocument> XmlDocument::parse(std::string_view text, Quotes quotes) {
  WEFT_TRY_STATUS(check_size(text));
  auto tree = std::make_unique<Tree>();
  tree->text = text;
  tree->copy = std::make_unique_for_overwrite<char[]>(text.size() + 1);
  text.copy(tree->copy.get(), text.size());
  // Keeps the DOCTYPE so that it can be rejected; entities would not be expanded in any case.
  constexpr unsigned kWhat = pugi::parse_minimal | pugi::parse_escapes | pugi::parse_doctype;
  const auto result =
      tree->document.load_buffer_inplace(tree->copy.get(), text.size(), kWhat, pugi::encoding_utf8);
  if (!result) return syntax_error(text, result);
  XmlDocument document(std::move(tree));
  WEFT_TRY_STATUS(document.check(quotes));
  return document;
}

XmlElement XmlDocument::root() const {
  return XmlElement(this, element_from(tree_->document.first_child()).internal_object());
}

std::string_view XmlDocument::text() const { return tree_->text; }

std::string_view XmlElement::tag() const { return as_node(node_).name(); }

XmlElement XmlElement::first_child() const {
  return XmlElement(document_, element_from(as_node(node_).first_child()).internal_object());
}

XmlElement XmlElement::next_sibling() const {
  return XmlElement(document_, element_from(as_node(node_).next_sibling()).internal_object());
}

void XmlElement::find_all(std::span<const std::string_view> names, std::span<std::string_view> values) const {
  std::ranges::fill(values, std::string_view());
  std::size_t expected = 0;
  for (pugi::xml_attribute it = as_node(node_).first_attribute(); it; it = it.next_attribute()) {
    const char* const name = it.name();
    if (expected == names.size() || !same(name, names[expected])) {
      expected = static_cast<std::size_t>(std::ranges::find(names, std::string_view(name)) - names.begin());
      if (expected == names.size()) continue;
    }
    const char* const value = it.value();
    values[expected++] = {value, length(value)};
  }
}

Span XmlElement::span(std::string_view attribute) const {
  const pugi::xml_node node = as_node(node_);
  const char* name = node.name();
  if (!attribute.empty())
    for (pugi::xml_attribute it = node.first_attribute(); it; it = it.next_attribute())
      if (attribute == it.name()) name = it.name();
  return {document_->tree_->offset_of(name), static_cast<std::uint32_t>(std::strlen(name))};
}

XmlDocument::XmlDocument(std::unique_ptr<Tree> tree) : tree_(std::move(tree)) {}
XmlDocument::XmlDocument(XmlDocument&&) noexcept = default;
XmlDocument& XmlDocument::operator=(XmlDocument&&) noexcept = default;
XmlDocument::~XmlDocument() = default;

}  // namespace weft::formats
