// Frames and hellos read back as written, and every error has its own message.

#include "weft/communication/transport/wire.h"

#include <gtest/gtest.h>

#include <limits>

#include "weft/base/crc32c.h"
#include "weft/base/random.h"

namespace {

using namespace weft::transport;
using What = WireFault::What;

FrameHeader example() {
  return {
      .sequence = 7, .length = 4096, .label = 0x1122334455667788, .checked = true, .checksum = 0xdeadbeef};
}

std::string what_is_wrong(const FrameBytes& bytes) {
  const auto decoded = decode(bytes);
  const auto* deviation = std::get_if<Deviation>(&decoded);
  return deviation ? deviation->text : "";
}

// As from a faulty sender: the checksum of the header is correct.
FrameBytes resealed(FrameBytes bytes) {
  const std::uint32_t checksum = weft::crc32c(std::span(bytes).first(28));
  for (std::size_t i = 0; i < 4; ++i) bytes[28 + i] = static_cast<std::byte>(checksum >> (8 * i));
  return bytes;
}

TEST(Wire, FrameLayoutIsFixed) {
  const FrameBytes bytes = encode(example());
  const unsigned char expected[28] = {'W',  'e',  'f',  't',  1,    0,    1,    0,    7,    0,
                                      0,    0,    0,    0x10, 0,    0,    0x88, 0x77, 0x66, 0x55,
                                      0x44, 0x33, 0x22, 0x11, 0xef, 0xbe, 0xad, 0xde};
  for (std::size_t i = 0; i < 28; ++i) EXPECT_EQ(std::to_integer<int>(bytes[i]), expected[i]) << i;
  EXPECT_EQ(resealed(bytes), bytes);
}

TEST(Wire, FramesReadBack) {
  weft::Random random(4);
  for (int i = 0; i < 200; ++i) {
    const FrameHeader header{.sequence = static_cast<std::uint32_t>(random.next()),
                             .length = static_cast<std::uint32_t>(random.next()),
                             .label = random.next(),
                             .checked = random.below(2) == 1,
                             .checksum = static_cast<std::uint32_t>(random.next())};
    const auto decoded = decode(encode(header));
    ASSERT_TRUE(std::holds_alternative<FrameHeader>(decoded));
    EXPECT_EQ(std::get<FrameHeader>(decoded), header);
  }
}

TEST(Wire, DetectsEveryFlippedBitOfAHeader) {
  const FrameBytes right = encode(example());
  for (std::size_t bit = 0; bit < 8 * right.size(); ++bit) {
    FrameBytes wrong = right;
    wrong[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto decoded = decode(wrong);
    ASSERT_TRUE(std::holds_alternative<Deviation>(decoded)) << bit;
    EXPECT_EQ(std::get<Deviation>(decoded).what, What::damaged);
  }
}

TEST(Wire, ReportsErrorsInAHeader) {
  FrameBytes bytes = encode(example());
  bytes[0] = std::byte{'H'};
  EXPECT_EQ(what_is_wrong(bytes), "it begins with 0x74666548, expected 0x74666557");
  bytes = encode(example());
  bytes[28] ^= std::byte{1};
  EXPECT_NE(what_is_wrong(bytes).find("header checksum 0x"), std::string::npos);
  bytes = encode(example());
  bytes[4] = std::byte{2};
  EXPECT_EQ(what_is_wrong(resealed(bytes)), "version 2 of the protocol, expected 1");
  bytes = encode(example());
  bytes[7] = std::byte{0x80};
  EXPECT_EQ(what_is_wrong(resealed(bytes)), "unknown flags 0x8001");
  EXPECT_EQ(what_is_wrong(encode(example())), "");
}

TEST(Wire, ChecksTheSequenceNumber) {
  EXPECT_FALSE(check_turn(example(), 7, true, 4096));
  EXPECT_FALSE(check_turn(example(), 7, false, 4096));
  EXPECT_EQ(check_turn(example(), 8, true, 4096)->text, "sequence number 7, expected 8");
  EXPECT_EQ(check_turn(example(), 7, true, 4095)->text, "4096 bytes, expected at most 4095");
  FrameHeader bare = example();
  bare.checked = false;
  EXPECT_EQ(check_turn(bare, 7, true, 4096)->text,
            "it has no checksum although it came from another machine");
  FrameHeader huge = example();
  huge.length = std::numeric_limits<std::uint32_t>::max();
  EXPECT_EQ(check_turn(huge, 7, true, kLongestMessage)->what, What::damaged);
}

TEST(Wire, ChecksTheCall) {
  const FrameHeader header = example();
  EXPECT_FALSE(check_call(header, header.label, header.length));
  const auto other = check_call(header, 5, header.length);
  EXPECT_EQ(other->what, What::other_call);
  EXPECT_EQ(other->text, "call 0x1122334455667788, expected 0x0000000000000005");
  EXPECT_EQ(check_call(header, header.label, 12)->text, "4096 bytes, expected 12");
}

TEST(Wire, ChecksPayloadsThatHaveAChecksum) {
  FrameHeader header = example();
  EXPECT_FALSE(check_payload(header, 0xdeadbeef));
  EXPECT_EQ(check_payload(header, 1)->text, "checksum 0x00000001, expected 0xdeadbeef");
  header.checked = false;
  EXPECT_FALSE(check_payload(header, 1));
}

TEST(Wire, HellosReadBackOrAreRejected) {
  const Hello hello{.group = 1ULL << 63, .opening = 9, .wire = {.from = 3, .to = 0, .channel = -1}};
  const HelloBytes right = encode(hello);
  EXPECT_EQ(decode(right), hello);
  for (std::size_t bit = 0; bit < 8 * right.size(); ++bit) {
    HelloBytes wrong = right;
    wrong[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(decode(wrong)) << bit;
  }
  EXPECT_FALSE(decode(HelloBytes{}));
}

}  // namespace
