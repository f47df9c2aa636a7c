#include "weft/formats/protobuf_wire.h"

namespace weft::formats {

bool WireReader::read_varint(std::uint64_t& value) {
  constexpr int kMostBits = 64, kBitsAByte = 7;
  std::uint64_t read = 0;
  std::size_t at = at_;
  for (int shift = 0; shift < kMostBits; shift += kBitsAByte) {
    if (at == bytes_.size()) return false;
    const auto byte = static_cast<unsigned char>(bytes_[at++]);
    const std::uint64_t bits = byte & 0x7fU;
    if (shift + kBitsAByte > kMostBits && bits > 1) return false;  // the tenth byte holds a single bit
    read |= bits << shift;
    if (byte < 0x80) {
      value = read;
      at_ = at;
      return true;
    }
  }
  return false;
}

bool WireReader::read_fixed(std::size_t bytes, std::uint64_t& value) {
  if (bytes_.size() - at_ < bytes) return false;
  value = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes_[at_ + i])} << (8 * i);
  at_ += bytes;
  return true;
}

bool WireReader::read_delimited(std::string_view& message) {
  const std::size_t begin = at_;
  std::uint64_t length = 0;
  if (!read_varint(length)) return false;
  if (length > bytes_.size() - at_) {
    at_ = begin;
    return false;
  }
  message = bytes_.substr(at_, static_cast<std::size_t>(length));
  at_ += static_cast<std::size_t>(length);
  return true;
}

bool WireReader::read_field(WireField& field) {
  constexpr std::uint64_t kMostNumber = (1U << 29) - 1;
  const std::size_t begin = at_;
  std::uint64_t key = 0;
  field = {};
  if (!read_varint(key)) return false;
  field.number = static_cast<std::uint32_t>(key >> 3);
  field.type = static_cast<WireType>(key & 7);
  bool read = key >> 3 != 0 && key >> 3 <= kMostNumber;
  if (read) {
    switch (field.type) {
      case WireType::varint: read = read_varint(field.whole); break;
      case WireType::fixed64: read = read_fixed(8, field.whole); break;
      case WireType::fixed32: read = read_fixed(4, field.whole); break;
      case WireType::bytes: read = read_delimited(field.bytes); break;
      default: read = false;
    }
  }
  if (!read) at_ = begin;
  return read;
}

void WireWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
  bytes_ += static_cast<char>(value);
}

void WireWriter::field(std::uint32_t number, std::uint64_t value) {
  varint(std::uint64_t{number} << 3 | static_cast<std::uint64_t>(WireType::varint));
  varint(value);
}

void WireWriter::field(std::uint32_t number, std::string_view bytes) {
  varint(std::uint64_t{number} << 3 | static_cast<std::uint64_t>(WireType::bytes));
  delimited(bytes);
}

void WireWriter::packed(std::uint32_t number, std::span<const std::uint64_t> values) {
  if (values.empty()) return;
  WireWriter list;
  for (const std::uint64_t value : values) list.varint(value);
  field(number, list.bytes());
}

void WireWriter::delimited(std::string_view message) {
  varint(message.size());
  bytes_ += message;
}

}  // namespace weft::formats
