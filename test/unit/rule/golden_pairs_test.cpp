// Every rule in rules/ has a golden pair: test/golden/rule has a plan that it rewrites and one that
// it declines.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "weft/base/file.h"
#include "weft/rules/rule/library.h"

namespace weft::rule {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLargestGolden = 1 << 20;

struct Cases {
  std::vector<std::string> names;             // in order, without repeats
  std::set<std::string> rewritten, declined;  // by name
};

Cases cases_in(const fs::path& path) {
  Cases cases;
  const Result<std::string> text = read_file(path.string(), kLargestGolden);
  if (!text.ok()) ADD_FAILURE() << text.error().message;
  std::istringstream lines(text.ok() ? *text : std::string());
  constexpr std::string_view kCommand = "rule name=";
  for (std::string line, name; std::getline(lines, line);) {
    if (line.starts_with(kCommand)) {
      name = line.substr(kCommand.size(), line.find(' ', kCommand.size()) - kCommand.size());
      if (std::ranges::find(cases.names, name) == cases.names.end()) cases.names.push_back(name);
    } else if (line == "----" && std::getline(lines, line)) {
      if (line.starts_with("plan ")) cases.rewritten.insert(name);
      if (line.starts_with("declines: ")) cases.declined.insert(name);
    }
  }
  return cases;
}

TEST(GoldenPairs, EveryRuleHasAPlanThatItRewritesAndOneThatItDeclines) {
  const fs::path source = WEFT_SOURCE_DIR;
  const auto rules = load_rules((source / "rules").string());
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  std::map<std::string, std::vector<std::string>> names;  // by file, in order
  for (const Rule& rule : *rules)
    // A rule that holds in both directions shows its reverse with its forward direction.
    if (!rule.name.ends_with(".reverse")) names[fs::path(rule.file).stem().string()].push_back(rule.name);
  for (const auto& [file, expected] : names) {
    const fs::path path = source / "test" / "golden" / "rule" / (file + ".test");
    const Cases cases = cases_in(path);
    for (const std::string& name : expected) {
      EXPECT_TRUE(cases.rewritten.contains(name)) << path << " lacks a plan that " << name << " rewrites";
      EXPECT_TRUE(cases.declined.contains(name)) << path << " lacks a plan that " << name << " declines";
    }
    EXPECT_EQ(cases.names, expected) << path << ": cases are in the order of the rules";
  }
}

}  // namespace
}  // namespace weft::rule
