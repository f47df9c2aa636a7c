// weft/formats/protobuf_wire.h -- protobuf's wire format: numbered fields, varints of seven bits
// per byte.
//
//   08 96 01        field 1, a varint: 150
//   12 02 68 69     field 2, two bytes: "hi"
//
// Zero-copy: results point into the input.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace weft::formats {

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t whole = 0;      // a varint, or the bits of fixed64 and fixed32
  std::string_view bytes = {};  // length-delimited
};

// Every read_ function returns false, without advancing, if the bytes are truncated or invalid.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return at_ == bytes_.size(); }
  std::size_t offset() const { return at_; }

  bool read_varint(std::uint64_t& value);
  bool read_field(WireField& field);
  // A length followed by that many bytes, as messages are stored in a file.
  bool read_delimited(std::string_view& message);

 private:
  bool read_fixed(std::size_t bytes, std::uint64_t& value);

  std::string_view bytes_;
  std::size_t at_ = 0;
};

class WireWriter {
 public:
  void varint(std::uint64_t value);
  void field(std::uint32_t number, std::uint64_t value);
  void field(std::uint32_t number, std::string_view bytes);
  void packed(std::uint32_t number, std::span<const std::uint64_t> values);  // writes nothing if empty
  void delimited(std::string_view message);

  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// For sint32 and sint64, which encode small negative numbers compactly.
constexpr std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

}  // namespace weft::formats
