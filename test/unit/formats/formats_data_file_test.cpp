// Data files by name: the extension selects the format, and .gz is decompressed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "temporary_folder.h"
#include "weft/formats/csv.h"
#include "weft/formats/data_file.h"
#include "weft/formats/gzip.h"

namespace weft::formats {
namespace {

namespace fs = std::filesystem;
using plan::DType;

const std::vector<Field> kSmall = {{"pixels", 2, DType::f32}, {"label", 1, DType::i32}};

// The text as a gzip file (RFC 1952) with one stored, uncompressed block (RFC 1951): the length and
// its complement, the bytes, then their CRC-32 and length.
std::string gzip(const std::string& text) {
  std::string file("\x1f\x8b\x08\0\0\0\0\0\0\x03\x01", 11);
  const auto put = [&](std::uint64_t number, int bytes) {
    for (int i = 0; i < bytes; ++i) file += static_cast<char>(number >> (8 * i));
  };
  put(text.size(), 2);
  put(~text.size(), 2);
  file += text;
  std::uint32_t crc = ~0u;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
  }
  put(~crc, 4);
  put(text.size(), 4);
  return file;
}

class DataFileTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  const TemporaryFolder folder_;
};

TEST_F(DataFileTest, TheExtensionSelectsTheFormat) {
  const auto table = read_table(write("a.csv", "1,2,3\n4,5,6\n"), kSmall);
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->rows(), 2);
  EXPECT_EQ(read_table(folder_.path() + "/b.csv", kSmall).error().hint, "did you mean 'a.csv'?");
  EXPECT_TRUE(read_table(write("A.CSV", "1,2,3\n"), kSmall).ok());
  const std::string npy = write("a.npy", "1,2,3\n");
  EXPECT_EQ(read_table(npy, kSmall).error().message,
            npy + " is not an npy file: expected it to begin with \\x93NUMPY");
  EXPECT_EQ(read_table("a.parquet", kSmall).error().message,
            "a.parquet: expected a name that ends in .csv, .csv.gz, .npy or .npz");
  EXPECT_EQ(read_table("a.gz", kSmall).error().message,
            "a.gz: expected a name that ends in .csv, .csv.gz, .npy or .npz");
}

TEST_F(DataFileTest, ReadsPlainText) {
  EXPECT_EQ(*read_text(write("a.txt", std::string("a\0\r\n", 4))), std::string("a\0\r\n", 4));
  EXPECT_EQ(*read_text(write("a.txt.gz", gzip("hello"))), "hello");
}

TEST_F(DataFileTest, DecompressesOneOrMoreMembers) {
  const auto table = read_table(write("a.csv.gz", gzip("1,2,3\n") + gzip("4,5,6\n")), kSmall);
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->rows(), 2);
  EXPECT_EQ(*inflate_gzip(gzip(""), 0, "a.gz"), "");
}

TEST_F(DataFileTest, LimitsDecompression) {
  EXPECT_EQ(*inflate_gzip(gzip("12345"), 5, "a.gz"), "12345");
  EXPECT_EQ(inflate_gzip(gzip("12345"), 4, "a.gz").error().message,
            "a.gz is too large: expected at most 4 B when inflated");
  EXPECT_EQ(inflate_gzip(gzip("123") + gzip("45"), 4, "a.gz").error().message,
            "a.gz is too large: expected at most 4 B when inflated");
}

// Rows that cross the 1 MiB read blocks, and a last line without a newline.
TEST_F(DataFileTest, ReadsFilesLongerThanABlock) {
  std::string text = "a,b,label\n", packed = gzip(text);
  constexpr std::int64_t kRows = 250'000;
  std::string some;
  for (std::int64_t row = 0; row < kRows; ++row) {
    some += std::to_string(row % 1000) + ".5, -" + std::to_string(row % 7) + "," + std::to_string(row);
    if (row + 1 < kRows) some += '\n';
    if (some.size() < 60'000 && row + 1 < kRows) continue;
    text += some;
    packed += gzip(some);
    some.clear();
  }
  ASSERT_GT(text.size(), std::size_t{3} << 20);
  const auto check = [&](const Result<Table>& table) {
    ASSERT_TRUE(table.ok()) << table.error().message;
    ASSERT_EQ(table->rows(), kRows);
    for (std::int64_t row = 0; row < kRows; row += 997) {
      EXPECT_EQ(table->row<float>(0, row)[0], static_cast<float>(row % 1000) + 0.5F);
      EXPECT_EQ(table->row<std::int32_t>(1, row)[0], row);
    }
    EXPECT_EQ(table->row<std::int32_t>(1, kRows - 1)[0], kRows - 1);
  };
  check(read_table(write("long.csv", text), kSmall));
  check(parse_csv(text, kSmall, "long.csv"));
  check(read_table(write("long.csv.gz", packed), kSmall));
}

// A table uses at most the allowed memory, however small its file is.
TEST_F(DataFileTest, LimitsTheSizeOfATable) {
  std::string text;
  for (int row = 0; row < 1000; ++row) text += "1,2,3\n";
  const std::string csv = write("a.csv", text);
  EXPECT_TRUE(read_table(csv, kSmall, 30'000).ok());
  EXPECT_EQ(
      read_table(csv, kSmall, 5'000).error().message,
      csv + " is too large: rows of 12 B (pixels 2, label 1) may use 4.88 KiB, half of the free memory");
}

// A line that is too long is rejected long before the end of the text.
TEST_F(DataFileTest, LimitsTheLengthOfALine) {
  std::string packed;
  for (int i = 0; i < 40; ++i) packed += gzip(std::string(65'535, '0'));
  const std::string path = write("a.csv.gz", packed + "no gzip any more");
  const std::string message = read_table(path, kSmall).error().message;
  EXPECT_NE(message.find("line 1: expected 3 values (pixels 2, label 1), found a line of more than 1"),
            std::string::npos)
      << message;
}

// A header that announces more than the file contains allocates nothing.
TEST_F(DataFileTest, DoesNotTrustSizesInHeaders) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (100000000000, 3), }";
  header.resize(118, ' ');
  std::string npy("\x93NUMPY\x01\x00\x76\x00", 10);
  npy += header + std::string(24, '\0');
  const std::string path = write("a.npy", npy);
  EXPECT_EQ(read_table(path, kSmall, 1 << 20).error().message,
            path + " is truncated: its header states 100000000000 rows of 12 bytes, found 24 bytes");
}

TEST_F(DataFileTest, DetectsDamage) {
  const std::string good = gzip("1,2,3\n4,5,6\n");
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(inflate_gzip(good.substr(0, length), 100, "a.gz").ok()) << length;
  EXPECT_EQ(inflate_gzip(good.substr(0, good.size() - 1), 100, "a.gz").error().message,
            "a.gz is truncated after 12 bytes");
  std::string changed = good;
  changed[20] ^= 1;
  EXPECT_EQ(inflate_gzip(changed, 100, "a.gz").error().message, "a.gz is damaged: incorrect data check");
  EXPECT_EQ(inflate_gzip(good + "xy", 100, "a.gz").error().message,
            "a.gz is damaged: 2 bytes follow the end of its contents");
  EXPECT_EQ(inflate_gzip("1,2,3", 100, "a.gz").error().message,
            "a.gz is not a gzip file: expected it to begin with 1f 8b");
}

// The handwritten digits of the tutorial.
TEST_F(DataFileTest, ReadsTheDigits) {
  const fs::path digits = fs::path(WEFT_SOURCE_DIR) / "../shared/corpus/digits/digits.csv.gz";
  if (!fs::exists(digits)) GTEST_SKIP() << "no corpus here: " << digits;
  const std::vector<Field> fields = {{"pixels", 64, DType::f32}, {"label", 1, DType::i32}};
  const auto table = read_table(digits.string(), fields);
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->rows(), 1797);
  for (const std::int32_t label : table->values<std::int32_t>(1)) EXPECT_TRUE(label >= 0 && label < 10);
  for (const float pixel : table->values<float>(0)) EXPECT_TRUE(pixel >= 0 && pixel <= 16);
}

}  // namespace
}  // namespace weft::formats
