// Arrays by name, and files that are not quite that.
#include <fstream>
#include <string>

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

// Cut short anywhere it is refused; with a byte changed it is refused or a table of the same shape.
TEST(Npz, SurvivesDamage) {
  for (const std::string name : {"pixels.npz", "pixels_packed.npz"}) {
    const std::string whole = npz_bytes(name);
    for (std::size_t length = 0; length < whole.size(); ++length)
      EXPECT_FALSE(parse_npz(std::string_view(whole).substr(0, length), kNpzFields, name).ok()) << length;
    for (std::size_t at = 0; at < whole.size(); ++at)
      for (const int change : {0x01, 0x80, 0xff}) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ change);
        if (const auto table = parse_npz(damaged, kNpzFields, name); table.ok()) EXPECT_EQ(table->rows(), 4);
      }
  }
}

}  // namespace
}  // namespace weft::formats
