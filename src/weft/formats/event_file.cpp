#include "weft/formats/event_file.h"

#include <bit>
#include <span>

#include "weft/base/crc32c.h"
#include "weft/formats/protobuf_wire.h"

namespace weft::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

template <class T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// TFRecord's masking, so that a CRC over data that contains CRCs is safe.
std::uint32_t masked_crc(std::string_view bytes) {
  constexpr std::uint32_t kDelta = 0xa282ead8;
  return std::rotr(crc32c(std::as_bytes(std::span(bytes))), 15) + kDelta;
}

std::string record(const std::string& event) {
  const std::string length = bytes_of(static_cast<std::uint64_t>(event.size()));
  return length + bytes_of(masked_crc(length)) + event + bytes_of(masked_crc(event));
}

// A fixed-width field: its key, then the bits.
template <class T>
std::string fixed(std::uint32_t number, WireType type, T value) {
  WireWriter key;
  key.varint(number << 3 | static_cast<std::uint32_t>(type));
  return key.take() + bytes_of(value);
}

}  // namespace

std::string first_event(double wall_seconds) {
  WireWriter version;
  version.field(3, std::string_view("brain.Event:2"));
  return record(fixed(1, WireType::fixed64, wall_seconds) + version.bytes());
}

std::string scalar_event(double wall_seconds, std::int64_t step, std::string_view tag, double value) {
  WireWriter named, summary, event;
  named.field(1, tag);
  summary.field(1, std::string_view(named.bytes() + fixed(2, WireType::fixed32, static_cast<float>(value))));
  event.field(2, static_cast<std::uint64_t>(step));
  event.field(5, std::string_view(summary.bytes()));
  return record(fixed(1, WireType::fixed64, wall_seconds) + event.bytes());
}

}  // namespace weft::formats
