// weft/formats/xml_document.h -- a small XML reader: elements with attributes.
//
//   <gpu id="0" i_chunks="4">            tag()                      "gpu"
//     <tb id="0" send="1"/>              integer("id", 0, 7)        0
//   </gpu>                               first_child().tag()        "tb"
//
// Text between elements, comments and processing instructions are skipped. Documents are limited in
// size, see below. A DOCTYPE is rejected, so that there are only XML's five entities. Duplicate
// attributes are rejected.
//
// Errors give the location: "attribute id of <gpu> at line 2 column 6 is not a whole number from 0
// to 7: 9".
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

// An element of a document, which must outlive it. Converts to false if there is none.
class XmlElement {
 public:
  XmlElement() = default;
  explicit operator bool() const { return node_ != nullptr; }

  std::string_view tag() const;
  XmlElement first_child() const;
  XmlElement next_sibling() const;
  XmlElement first_child(std::string_view tag) const;   // the first with this tag
  XmlElement next_sibling(std::string_view tag) const;  // the next with this tag

  std::optional<std::string_view> find(std::string_view attribute) const;
  // Finds all of `names` at once: values[i] belongs to names[i] and has a null data() if there is
  // no such attribute. Fastest if the file has them in the order of `names`.
  void find_all(std::span<const std::string_view> names, std::span<std::string_view> values) const;

  Result<std::string_view> text(std::string_view attribute) const;
  Result<std::int64_t> integer(std::string_view attribute, std::int64_t low, std::int64_t high) const;
  Result<std::int64_t> integer_or(std::string_view attribute, std::int64_t low, std::int64_t high,
                                  std::int64_t absent) const;

  // "line 12 column 7": the location of the attribute if the element has it, else of the element.
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

// Whether attribute values must be in double quotes, as the loaders of NCCL and MSCCL require.
enum class Quotes : std::uint8_t { any, double_only };

class XmlDocument {
 public:
  // `text` must outlive the document, since errors point into it.
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

// "line 12 column 7": the location of byte `offset` of `text`.
std::string describe_place(std::string_view text, std::size_t offset);

// `text` escaped for use between double quotes.
std::string escape_attribute(std::string_view text);

}  // namespace weft::formats
