// Every complaint in test/golden/errors shows the line, carets under the place, and a remedy.
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

TEST(GoldenErrors, EachHasACaretAndARemedy) {
  const std::regex complaint("error \\d+:\\d+: .*");
  const std::regex carets(" +\\^+");
  int complaints = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WEFT_SOURCE_DIR "/test/golden/errors")) {
    const std::vector<std::string> lines = lines_of(entry.path());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (!std::regex_match(lines[i], complaint)) continue;
      ++complaints;
      const std::string place = entry.path().filename().string() + ":" + std::to_string(i + 1);
      ASSERT_LT(i + 3, lines.size()) << place;
      EXPECT_TRUE(std::regex_match(lines[i + 2], carets)) << place << " has no carets";
      EXPECT_TRUE(lines[i + 3].starts_with("  ")) << place << " has no remedy: " << lines[i];
      // What is to be written can be; what only shows a form says so.
      const bool writes = lines[i + 3].starts_with("  write ");
      EXPECT_FALSE(writes && lines[i + 3].find("...") != std::string::npos) << place << lines[i + 3];
    }
  }
  EXPECT_GE(complaints, 60);
}

}  // namespace
