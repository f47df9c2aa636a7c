// weft/formats/xml_document.h -- XML as the readers here see it: elements with attributes.
//
//   <gpu id="0" i_chunks="4">            tag()                      "gpu"
//     <tb id="0" send="1"/>              integer("id", 0, 7)        0
//   </gpu>                               first_child().tag()        "tb"
//
// Text between elements, comments and processing instructions are skipped. What a document may be is
// bounded: see the limits below. A DOCTYPE is refused, so there are no entities but the five of XML, and
// an element that has an attribute twice is refused.
//
// Errors say where: "attribute id of <gpu> at line 2 column 6 is not a whole number from 0 to 7: 9".
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::formats {

inline constexpr std::size_t kMaxXmlBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMaxXmlElements = std::size_t{1} << 22;
inline constexpr int kMaxXmlDepth = 32;

class XmlDocument;

// An element of a document, which must outlive it; false where there is none.
class XmlElement {
 public:
  XmlElement() = default;
  explicit operator bool() const { return node_ != nullptr; }

  std::string_view tag() const;
  XmlElement first_child() const;
  XmlElement next_sibling() const;
  XmlElement first_child(std::string_view tag) const;   // the first that is a `tag`
  XmlElement next_sibling(std::string_view tag) const;  // the next that is a `tag`

  std::optional<std::string_view> find(std::string_view attribute) const;
  // Every one of `names` at once: values[i] belongs to names[i] and has a null data() where there is
  // no such attribute. Quickest where the file has them in the order of `names`.
  void find_all(std::span<const std::string_view> names, std::span<std::string_view> values) const;

  Result<std::string_view> text(std::string_view attribute) const;
  Result<std::int64_t> integer(std::string_view attribute, std::int64_t low, std::int64_t high) const;
  Result<std::int64_t> integer_or(std::string_view attribute, std::int64_t low, std::int64_t high,
                                  std::int64_t absent) const;

  // "line 12 column 7": of the element, or of its attribute where it has that.
  std::string place(std::string_view attribute = {}) const;
  Error missing(std::string_view attribute) const;
  // "attribute id of <gpu> at line 2 column 6 is not EXPECTED: 9"
  Error unexpected(std::string_view attribute, std::string_view expected, std::string hint = {}) const;
  Error not_in_range(std::string_view attribute, std::int64_t low, std::int64_t high) const;
  Error error(std::string message, std::string hint = {}) const;  // with the element's span

 private:
  friend class XmlDocument;
  XmlElement(const XmlDocument* document, void* node) : document_(document), node_(node) {}
  Span span(std::string_view attribute) const;

  const XmlDocument* document_ = nullptr;
  void* node_ = nullptr;
};

// Whether the attributes' values stand between double quotes only: what the loaders of NCCL and MSCCL need.
enum class Quotes : std::uint8_t { any, double_only };

class XmlDocument {
 public:
  // `text` must outlive the document: errors point into it.
  static Result<XmlDocument> parse(std::string_view text, Quotes quotes = Quotes::any);

  XmlDocument(XmlDocument&&) noexcept;
  XmlDocument& operator=(XmlDocument&&) noexcept;
  ~XmlDocument();

  XmlElement root() const;
  std::string_view text() const;  // what was parsed

 private:
  friend class XmlElement;
  struct Tree;
  explicit XmlDocument(std::unique_ptr<Tree> tree);
  Status check(Quotes quotes) const;
  Status check_attributes(void* node, Quotes quotes) const;
  std::unique_ptr<Tree> tree_;
};

// "line 12 column 7": where byte `offset` of `text` stands.
std::string describe_place(std::string_view text, std::size_t offset);

// `text` as it may stand between double quotes.
std::string escape_attribute(std::string_view text);

}  // namespace weft::formats
