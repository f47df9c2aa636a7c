// Every error in test/golden/errors shows the source line, carets and a hint.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace {

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(GoldenErrors, EachHasCaretsAndAHint) {
  const std::regex error("error \\d+:\\d+: .*");
  const std::regex carets(" +\\^+");
  int errors = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WEFT_SOURCE_DIR "/test/golden/errors")) {
    const std::vector<std::string> lines = lines_of(entry.path());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (!std::regex_match(lines[i], error)) continue;
      ++errors;
      const std::string place = entry.path().filename().string() + ":" + std::to_string(i + 1);
      ASSERT_LT(i + 3, lines.size()) << place;
      EXPECT_TRUE(std::regex_match(lines[i + 2], carets)) << place << " has no carets";
      EXPECT_TRUE(lines[i + 3].starts_with("  ")) << place << " has no hint: " << lines[i];
      // A hint that begins with "write" must give complete code, without an ellipsis.
      const bool writes = lines[i + 3].starts_with("  write ");
      EXPECT_FALSE(writes && lines[i + 3].find("...") != std::string::npos) << place << lines[i + 3];
    }
  }
  EXPECT_GE(errors, 60);
}

}  // namespace
