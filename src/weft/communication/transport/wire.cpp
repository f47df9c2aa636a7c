#include "weft/communication/transport/wire.h"

#include <fmt/format.h>

#include <concepts>
#include <cstring>

#include "weft/base/crc32c.h"

namespace weft::transport {

namespace {

constexpr std::uint32_t kFrameMagic = 0x74666557;  // "Weft"
constexpr std::uint32_t kHelloMagic = 0x6f6c6548;  // "Helo"
constexpr std::uint16_t kChecked = 1;

class Writer {
 public:
  explicit Writer(std::byte* at) : at_(at) {}

  template <std::unsigned_integral Number>
  Writer& put(Number number) {
    for (std::size_t i = 0; i < sizeof number; ++i) *at_++ = static_cast<std::byte>(number >> (8 * i));
    return *this;
  }

 private:
  std::byte* at_;
};

class Reader {
 public:
  explicit Reader(const std::byte* at) : at_(at) {}

  template <std::unsigned_integral Number>
  Number get() {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i)
      number |= std::to_integer<std::uint64_t>(*at_++) << (8 * i);
    return static_cast<Number>(number);
  }

 private:
  const std::byte* at_;
};

// The last four bytes are the checksum of all preceding ones.
template <std::size_t kBytes>
std::uint32_t own_checksum(const std::array<std::byte, kBytes>& bytes) {
  return crc32c(std::span(bytes).template first<kBytes - 4>());
}

template <std::size_t kBytes>
void seal(std::array<std::byte, kBytes>& bytes) {
  Writer(bytes.data() + kBytes - 4).put(own_checksum(bytes));
}

template <std::size_t kBytes>
bool sealed(const std::array<std::byte, kBytes>& bytes) {
  return Reader(bytes.data() + kBytes - 4).get<std::uint32_t>() == own_checksum(bytes);
}

Deviation damaged(std::string text) { return {WireFault::What::damaged, std::move(text)}; }
Deviation other_call(std::string text) { return {WireFault::What::other_call, std::move(text)}; }

}  // namespace

FrameBytes encode(const FrameHeader& header) {
  FrameBytes bytes;
  Writer(bytes.data())
      .put(kFrameMagic)
      .put(kWireVersion)
      .put(header.checked ? kChecked : std::uint16_t{0})
      .put(header.sequence)
      .put(header.length)
      .put(header.label)
      .put(header.checksum);
  seal(bytes);
  return bytes;
}

std::variant<FrameHeader, Deviation> decode(const FrameBytes& bytes) {
  Reader reader(bytes.data());
  const auto magic = reader.get<std::uint32_t>();
  const auto version = reader.get<std::uint16_t>(), flags = reader.get<std::uint16_t>();
  if (magic != kFrameMagic)
    return damaged(fmt::format("it begins with {:#010x}, expected {:#010x}", magic, kFrameMagic));
  if (!sealed(bytes)) {
    const auto stated = Reader(bytes.data() + kFrameHeaderBytes - 4).get<std::uint32_t>();
    return damaged(fmt::format("header checksum {:#010x}, expected {:#010x}", own_checksum(bytes), stated));
  }
  if (version != kWireVersion)
    return damaged(fmt::format("version {} of the protocol, expected {}", version, kWireVersion));
  if ((flags & ~kChecked) != 0) return damaged(fmt::format("unknown flags {:#06x}", flags));
  FrameHeader header;
  header.checked = (flags & kChecked) != 0;
  header.sequence = reader.get<std::uint32_t>();
  header.length = reader.get<std::uint32_t>();
  header.label = reader.get<std::uint64_t>();
  header.checksum = reader.get<std::uint32_t>();
  return header;
}

std::optional<Deviation> check_turn(const FrameHeader& header, std::uint32_t sequence, bool checked,
                                    std::int64_t slot_bytes) {
  if (header.sequence != sequence)
    return damaged(fmt::format("sequence number {}, expected {}", header.sequence, sequence));
  if (checked && !header.checked) return damaged("it has no checksum although it came from another machine");
  if (static_cast<std::int64_t>(header.length) > slot_bytes)
    return damaged(fmt::format("{} bytes, expected at most {}", header.length, slot_bytes));
  return std::nullopt;
}

std::optional<Deviation> check_call(const FrameHeader& header, std::uint64_t label, std::size_t length) {
  if (header.label != label)
    return other_call(fmt::format("call {:#018x}, expected {:#018x}", header.label, label));
  if (header.length != length) return other_call(fmt::format("{} bytes, expected {}", header.length, length));
  return std::nullopt;
}

std::optional<Deviation> check_payload(const FrameHeader& header, std::uint32_t checksum) {
  if (!header.checked || header.checksum == checksum) return std::nullopt;
  return damaged(fmt::format("checksum {:#010x}, expected {:#010x}", checksum, header.checksum));
}

HelloBytes encode(const Hello& hello) {
  HelloBytes bytes;
  Writer(bytes.data())
      .put(kHelloMagic)
      .put(kWireVersion)
      .put(std::uint16_t{0})
      .put(hello.group)
      .put(hello.opening)
      .put(static_cast<std::uint32_t>(hello.wire.from))
      .put(static_cast<std::uint32_t>(hello.wire.to))
      .put(static_cast<std::uint32_t>(hello.wire.channel));
  seal(bytes);
  return bytes;
}

std::optional<Hello> decode(const HelloBytes& bytes) {
  Reader reader(bytes.data());
  if (reader.get<std::uint32_t>() != kHelloMagic || reader.get<std::uint16_t>() != kWireVersion ||
      reader.get<std::uint16_t>() != 0 || !sealed(bytes))
    return std::nullopt;
  Hello hello;
  hello.group = reader.get<std::uint64_t>();
  hello.opening = reader.get<std::uint64_t>();
  for (std::int32_t* field : {&hello.wire.from, &hello.wire.to, &hello.wire.channel})
    *field = static_cast<std::int32_t>(reader.get<std::uint32_t>());
  return hello;
}

}  // namespace weft::transport
