// weft/communication/transport/wire.h -- wire format of a socket: frames, and the hello that
// identifies the connection.
//
//   frame     0      4     6     8         12       16       24         28         32
//             "Weft" |vers.|flags|sequence | length | label  | checksum | checksum | payload ...
//                                                            of payload  of 0..28
//
//   hello     0      4     6     8         16       24    28    32        36         40
//             "Helo" |vers.|  0  | group   | opening| from| to  | channel | checksum of 0..36
//
// Little endian. Sequence numbers count the frames of a connection from 0, so lost or duplicated
// ones are detected. Payloads carry a checksum (flag 1) on connections between machines; otherwise
// the field is available to the two ends. Nothing here accesses a socket.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "weft/communication/transport/endpoint.h"

namespace weft::transport {

inline constexpr std::uint16_t kWireVersion = 1;
inline constexpr std::size_t kFrameHeaderBytes = 32, kHelloBytes = 40;
inline constexpr std::int64_t kLongestMessage = std::int64_t{1} << 30;

struct FrameHeader {
  std::uint32_t sequence = 0;
  std::uint32_t length = 0;  // of the payload, in bytes
  std::uint64_t label = 0;
  bool checked = false;
  std::uint32_t checksum = 0;  // crc32c of the payload; any value if unchecked

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

// A mismatch: "checksum 0x1234, expected 0x5678".
struct Deviation {
  WireFault::What what = WireFault::What::damaged;
  std::string text;
};

using FrameBytes = std::array<std::byte, kFrameHeaderBytes>;

FrameBytes encode(const FrameHeader& header);
// Decodes a header and checks its version and checksum; its numbers may be arbitrary.
std::variant<FrameHeader, Deviation> decode(const FrameBytes& bytes);

// Whether this is the next frame in sequence, and fits the receiver's buffer.
std::optional<Deviation> check_turn(const FrameHeader& header, std::uint32_t sequence, bool checked,
                                    std::int64_t slot_bytes);
// Whether it belongs to the receiver's current call.
std::optional<Deviation> check_call(const FrameHeader& header, std::uint64_t label, std::size_t length);
// Whether the payload is intact.
std::optional<Deviation> check_payload(const FrameHeader& header, std::uint32_t checksum);

struct Hello {
  std::uint64_t group = 0;
  std::uint64_t opening = 0;  // which open() of the group's endpoint
  Wire wire;

  friend bool operator==(const Hello&, const Hello&) = default;
};

using HelloBytes = std::array<std::byte, kHelloBytes>;

HelloBytes encode(const Hello& hello);
std::optional<Hello> decode(const HelloBytes& bytes);

}  // namespace weft::transport
