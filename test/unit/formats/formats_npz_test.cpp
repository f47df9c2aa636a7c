// Arrays by name, and damaged archives.
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "weft/formats/npz.h"

namespace weft::formats {
namespace {

const Field kNpzFields[] = {{"pixels", 2, plan::DType::f32}, {"label", 1, plan::DType::i32}};

std::string npz_bytes(const std::string& name) {
  std::ifstream file(WEFT_SOURCE_DIR "/test/data/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Npz, ReadsArraysByName) {
  for (const std::string name : {"pixels.npz", "pixels_packed.npz"}) {
    const auto table = parse_npz(npz_bytes(name), kNpzFields, name);
    ASSERT_TRUE(table.ok()) << table.error().message;
    EXPECT_EQ(table->rows(), 4);
    EXPECT_EQ(table->row<float>(0, 3)[1], 15);
    EXPECT_EQ(table->row<std::int32_t>(1, 2)[0], 2);
  }
}

TEST(Npz, NamesAMissingArray) {
  const Field other[] = {{"pixel", 2, plan::DType::f32}};
  const auto table = parse_npz(npz_bytes("pixels.npz"), other, "x.npz");
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.error().message, "x.npz has no array pixel");
  EXPECT_EQ(table.error().hint, "did you mean 'pixels'?");
}

std::string values_of(const Table& table) {
  return fmt::format("{} {}", table.values<float>(0), table.values<std::int32_t>(1));
}

// A truncated file is rejected. A file with a changed bit is rejected, or the bit belongs to no
// number.
TEST(Npz, SurvivesDamage) {
  for (const std::string name : {"pixels.npz", "pixels_packed.npz"}) {
    const std::string whole = npz_bytes(name);
    const std::string values = values_of(*parse_npz(whole, kNpzFields, name));
    for (std::size_t length = 0; length < whole.size(); ++length)
      EXPECT_FALSE(parse_npz(std::string_view(whole).substr(0, length), kNpzFields, name).ok()) << length;
    for (std::size_t at = 0; at < whole.size(); ++at)
      for (const int change : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ change);
        if (const auto table = parse_npz(damaged, kNpzFields, name); table.ok())
          EXPECT_EQ(values_of(*table), values) << name << " byte " << at << " changed by " << change;
      }
  }
}

// Any damage to an array is reported as damage.
TEST(Npz, VerifiesTheChecksumOfEachMember) {
  const std::string whole = npz_bytes("pixels.npz");
  const std::size_t begin = whole.find("\x93NUMPY", whole.find("pixels.npy"));
  for (std::size_t at = begin; at < begin + 160; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    const auto table = parse_npz(damaged, kNpzFields, "x.npz");
    ASSERT_FALSE(table.ok()) << at;
    EXPECT_TRUE(table.error().message.starts_with("x.npz: pixels.npy is damaged: expected CRC-32 "))
        << table.error().message;
  }
  // Members without a field of that name are ignored.
  std::string label = whole;
  label[whole.find("\x93NUMPY") + 140] ^= 4;
  EXPECT_TRUE(parse_npz(label, std::span(kNpzFields).first(1), "x.npz").ok());
}

std::string little_endian(std::uint64_t number, int bytes) {
  std::string made;
  for (; bytes > 0; --bytes, number >>= 8) made += static_cast<char>(number);
  return made;
}

// A zip file with one deflated member, with the given directory entry.
std::string packed_zip(const std::string& name, const std::string& bytes, std::uint32_t checksum) {
  std::string packed(compressBound(bytes.size()), '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  const std::string about = little_endian(20, 2) + little_endian(0, 2) + little_endian(8, 2) +
                            little_endian(0, 4) + little_endian(checksum, 4) +
                            little_endian(packed.size(), 4) + little_endian(bytes.size(), 4) +
                            little_endian(name.size(), 2) + little_endian(0, 2);
  const std::string member = "PK\x03\x04" + about + name + packed;
  const std::string listed = "PK\x01\x02" + little_endian(20, 2) + about + little_endian(0, 14) + name;
  return member + listed + "PK\x05\x06" + little_endian(0, 4) + little_endian(1, 2) + little_endian(1, 2) +
         little_endian(listed.size(), 4) + little_endian(member.size(), 4) + little_endian(0, 2);
}

// A small array followed by much data: the rest is not decompressed to report the error.
TEST(Npz, DoesNotDecompressTheRestOfABomb) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }";
  header.resize(117, ' ');
  const std::string array = "\x93NUMPY" + std::string("\1\0v\0", 4) + header + "\n" + std::string(8, '\0');
  const auto pixels = std::span(kNpzFields).first(1);
  const auto checksum_of = [](const std::string& bytes) {
    return static_cast<std::uint32_t>(
        ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
  };
  const auto table = parse_npz(packed_zip("pixels.npy", array, checksum_of(array)), pixels, "x.npz");
  EXPECT_TRUE(table.ok()) << table.error().message;
  const auto damaged = parse_npz(packed_zip("pixels.npy", array + "x", checksum_of(array)), pixels, "x.npz");
  ASSERT_FALSE(damaged.ok());
  EXPECT_NE(damaged.error().message.find("is damaged: expected CRC-32"), std::string::npos)
      << damaged.error().message;
  const std::string vast = array + std::string(std::size_t{16} << 20, '\0');
  const auto bomb = parse_npz(packed_zip("pixels.npy", vast, checksum_of(array)), pixels, "x.npz");
  ASSERT_FALSE(bomb.ok());
  EXPECT_EQ(bomb.error().message, "x.npz: pixels.npy: expected 8 bytes of numbers, found more");
}

}  // namespace
}  // namespace weft::formats
