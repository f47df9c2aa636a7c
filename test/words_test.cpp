// Checks that retired words stay out of string literals, comments, names, help and documents.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = WEFT_SOURCE_DIR;

struct Retired {
  std::string_view word, instead;
};

constexpr Retired kRetired[] = {
    {"} a rank", "per rank"},     {"} a step", "per step"},       {"} a parameter", "per parameter"},
    {"} a device", "per device"}, {"giving way", "yielding"},     {"gives way", "yields"},
    {"looked at", "tried"},       {"pretended", "fake"},          {"is no number", "is not a number"},
    {"renews ", "updates"},       {"hears of", "is notified of"}, {"comes home", "returns"},
    {"nobody", "no rank"},        {"whoever", "any rank that"},
};

// "15.5 GiB a rank" should be "15.5 GiB per rank".
const std::regex kUnitPrice(
    R"(\b(GiB|MiB|KiB|bytes|ms|us|TFLOP|tokens|rows) a (rank|step|parameter|device|GPU)\b)");

// The string literals in a line of C++, except the file name of an #include.
std::vector<std::string> literals_of(const std::string& line) {
  std::vector<std::string> literals;
  if (line.starts_with("#include")) return literals;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line.compare(at, 2, "//") == 0) break;
    if (line[at] == '\'' && at + 2 < line.size()) {  // a character literal, not the start of a string
      at = line.find('\'', at + (line[at + 1] == '\\' ? 3 : 2));
      if (at == std::string::npos) break;
      continue;
    }
    if (line[at] != '"') continue;
    std::string text;
    for (++at; at < line.size() && line[at] != '"'; ++at) {
      if (line[at] == '\\') ++at;
      if (at < line.size()) text += line[at];
    }
    literals.push_back(std::move(text));
  }
  return literals;
}

template <class Visit>
void for_lines(const fs::path& file, const Visit& visit) {
  std::ifstream in(file);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number)
    visit(line, fmt::format("{}:{}", fs::relative(file, kRoot).string(), number));
}

void expect_plain(const std::string& text, const std::string& where) {
  for (const auto& [word, instead] : kRetired)
    EXPECT_EQ(text.find(word), std::string::npos)
        << where << ": write '" << instead << "' instead of '" << word << "': " << text;
  if (text.find(" a ") == std::string::npos) return;  // the expression below takes long
  EXPECT_FALSE(std::regex_search(text, kUnitPrice)) << where << ": write 'per' instead of 'a': " << text;
}

TEST(Words, ExtractsStringLiterals) {
  EXPECT_EQ(literals_of(R"(say("a \"b\" c", 'x', "d");  // "not this")"),
            (std::vector<std::string>{"a \"b\" c", "d"}));
  EXPECT_TRUE(literals_of("#include \"weft/base/hash.h\"").empty());
  EXPECT_EQ(literals_of(R"(if (c == '"' || c == '\'') say("e");)"), (std::vector<std::string>{"e"}));
}

TEST(Words, ProgramAvoidsRetiredWords) {
  int files = 0;
  for (const char* folder : {"src", "apps"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const fs::path extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp") continue;
      ++files;
      for_lines(entry.path(), [](const std::string& line, const std::string& where) {
        if (line.find("WEFT_CHECK(") != std::string::npos) return;  // read by developers only
        for (const std::string& literal : literals_of(line)) expect_plain(literal, where);
      });
    }
  EXPECT_GT(files, 500);
}

// The comment of a line of C++; empty if it has none.
std::string comment_of(const std::string& line) {
  bool quoted = false;
  for (std::size_t at = 0; at + 1 < line.size(); ++at) {
    if (line[at] == '\\') {
      ++at;
    } else if (line[at] == '"') {
      quoted = !quoted;
    } else if (!quoted && line.compare(at, 2, "//") == 0) {
      return line.substr(at + 2);
    }
  }
  return {};
}

TEST(Words, ExtractsComments) {
  EXPECT_EQ(comment_of("int a;  // what it is"), " what it is");
  EXPECT_EQ(comment_of(R"(open("http://x");)"), "");
}

// Names that were coined here; the field's names have taken their places.
const std::regex kRetiredNames(
    R"(\b(Porch|Reception|Mourn|Crew|Pretended\w*|Renewed|InTime|PlanInTime|PricedInTime|Way[A-Z]\w*|)"
    R"(Quickest\w*|MeetingPlace|Stillborn|LaidOut\w*|WhichSchedule|gives_way_\w*|\w*_a_rank|\w*_a_step)\b)");

// The expression above takes long: most lines have nothing like it.
bool may_have_retired_name(const std::string& code) {
  for (const char* part :
       {"Porch", "Reception", "Mourn", "Crew", "Pretended", "Renewed", "InTime", "Way", "Quickest",
        "MeetingPlace", "Stillborn", "LaidOut", "WhichSchedule", "gives_way", "_a_"})
    if (code.find(part) != std::string::npos) return true;
  return false;
}

TEST(Words, CommentsAndNamesAvoidRetiredWords) {
  int files = 0;
  for (const char* folder : {"src", "apps", "bench"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const fs::path extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp" && extension != ".cuh") continue;
      ++files;
      for_lines(entry.path(), [](const std::string& line, const std::string& where) {
        const std::string comment = comment_of(line);
        expect_plain(comment, where);
        const std::string code = line.substr(0, line.size() - comment.size());
        if (code.find('"') == std::string::npos && may_have_retired_name(code))
          EXPECT_FALSE(std::regex_search(code, kRetiredNames)) << where << ": " << code;
      });
    }
  EXPECT_GT(files, 1000);
}

TEST(Words, DocumentsAvoidRetiredWords) {
  std::vector<fs::path> files = {kRoot / "README.md", kRoot / "CONTRIBUTING.md"};
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs"))
    if (entry.path().extension() == ".md" || entry.path().extension() == ".txt")
      files.push_back(entry.path());
  EXPECT_GT(files.size(), 60u);
  for (const fs::path& file : files) for_lines(file, expect_plain);
}

}  // namespace
