// Files of tokens: what is written is read back, and files that are wrong.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "temporary_folder.h"
#include "weft/base/file.h"
#include "weft/text/token_file.h"

namespace weft::text {
namespace {

using Ids = std::vector<std::int32_t>;

void write_documents(const std::string& prefix, std::int64_t end, const std::vector<Ids>& documents) {
  auto writer = TokenFileWriter::open(prefix, end);
  ASSERT_TRUE(writer.ok());
  for (const Ids& ids : documents) ASSERT_TRUE(writer->add_document(ids).ok());
  ASSERT_TRUE(writer->finish().ok());
}

Ids all_tokens(const TokenFile& file) {
  Ids ids;
  for (std::int64_t i = 0; i < file.size(); ++i) ids.push_back(static_cast<std::int32_t>(file[i]));
  return ids;
}

TEST(TokenFile, ReadsWhatItWrote) {
  const TemporaryFolder folder;
  for (const std::int64_t end : {1000, 100'000}) {
    const std::string prefix = folder / "tokens";
    const auto large = static_cast<std::int32_t>(end - 1);
    write_documents(prefix, end, {{1, 2, large}, {}, {4}});
    EXPECT_FALSE(std::filesystem::exists(prefix + ".bin.partial"));
    EXPECT_EQ(std::filesystem::file_size(prefix + ".bin"), end == 1000 ? 8u : 16u);
    for (const char* suffix : {".bin", ".idx"}) {
      const auto file = TokenFile::open(prefix + suffix);
      ASSERT_TRUE(file.ok()) << file.error().message;
      EXPECT_EQ(all_tokens(*file), (Ids{1, 2, large, 4}));
      EXPECT_EQ(file->documents(), 3);
      EXPECT_EQ(file->find_outside(end), 4);
      EXPECT_EQ(file->find_outside(large), 2);
    }
  }
}

TEST(TokenFile, LeavesNoFileThatIsNotFinished) {
  const TemporaryFolder folder;
  {
    auto writer = TokenFileWriter::open(folder / "t", 1000);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->add_document(Ids{1}).ok());
    EXPECT_TRUE(std::filesystem::exists(folder / "t.bin.partial"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder / ""));
}

TEST(TokenFile, HasTheLayoutOfMegatron) {
  const TemporaryFolder folder;
  write_documents(folder / "t", 1000, {{7, 8}, {9}});
  const std::string index = *read_file(folder / "t.idx", 1000);
  const std::string expected(
      "MMIDIDX\0\0"
      "\1\0\0\0\0\0\0\0"
      "\10"
      "\2\0\0\0\0\0\0\0"
      "\3\0\0\0\0\0\0\0"
      "\2\0\0\0"
      "\1\0\0\0"
      "\0\0\0\0\0\0\0\0"
      "\4\0\0\0\0\0\0\0"
      "\0\0\0\0\0\0\0\0"
      "\1\0\0\0\0\0\0\0"
      "\2\0\0\0\0\0\0\0",
      34 + 24 + 24);
  EXPECT_EQ(index, expected);
  EXPECT_EQ(*read_file(folder / "t.bin", 1000), std::string("\7\0\10\0\11\0", 6));
}

TEST(TokenFile, RefusesWhatItCannotRead) {
  const TemporaryFolder folder;
  write_documents(folder / "t", 1000, {{7, 8}, {9}});
  const std::string index = *read_file(folder / "t.idx", 1000);
  const auto error = [](std::string_view bytes) {
    const auto parsed = parse_token_index(bytes, "t.idx");
    return parsed.ok() ? "no error" : parsed.error().message;
  };
  const auto changed = [&](std::size_t at, char byte) {
    std::string bytes = index;
    bytes[at] = byte;
    return error(bytes);
  };
  EXPECT_EQ(error(index), "no error");
  EXPECT_EQ(error("text"), "t.idx: expected an index of tokens, which begins with MMIDIDX");
  EXPECT_EQ(error(std::string_view(index).substr(0, 20)), "t.idx: expected at least 34 bytes, found 20");
  EXPECT_EQ(error(std::string_view(index).substr(0, 80)),
            "t.idx: expected 82 bytes for 2 sequences and 3 document boundaries, found 80");
  EXPECT_EQ(changed(9, 2), "t.idx: expected version 1, found 2");
  EXPECT_EQ(changed(17, 7), "t.idx: expected a type of whole numbers (1 to 5, or 8), found 7");
  EXPECT_EQ(changed(25, 1),
            "t.idx: expected more bytes for 72057594037927938 sequences and 3 document boundaries, found 82");
  EXPECT_EQ(changed(50, 5), "t.idx: expected sequence 1 at byte 4 of the .bin, found 5");
  EXPECT_EQ(changed(66, 9), "t.idx: document 1 begins with sequence 9 of 2");
  std::ofstream(folder / "t.bin", std::ios::app) << "x";
  const auto longer = TokenFile::open(folder / "t.bin");
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.error().message, folder / "t.bin: expected 6 bytes for 3 tokens, found 7");
}

}  // namespace
}  // namespace weft::text
