// Arrays by name, and files that are not quite that.
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

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

TEST(Npz, NamesTheArrayThatIsMissing) {
  const Field other[] = {{"pixel", 2, plan::DType::f32}};
  const auto table = parse_npz(npz_bytes("pixels.npz"), other, "x.npz");
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.error().message, "x.npz has no array pixel");
  EXPECT_EQ(table.error().hint, "did you mean 'pixels'?");
}

std::string values_of(const Table& table) {
  return fmt::format("{} {}", table.values<float>(0), table.values<std::int32_t>(1));
}

// Cut short anywhere it is refused; with a bit changed it is refused, or it was a bit of no number.
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

// Whatever the damage makes of an array, it is called damage.
TEST(Npz, ComparesEachMemberWithItsChecksum) {
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
  // A member that no field is named after is left alone.
  std::string label = whole;
  label[whole.find("\x93NUMPY") + 140] ^= 4;
  EXPECT_TRUE(parse_npz(label, std::span(kNpzFields).first(1), "x.npz").ok());
}

}  // namespace
}  // namespace weft::formats
