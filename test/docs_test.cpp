// Checks that the documents match the program.
//
//   ```console          each `$ weft ...` runs in the repository's root and must print the rest;
//   $ weft --version    a line `...` matches any lines, and `...` within a line any text.
//   weft 0.2.0          A command continues on lines that begin with `> `.
//   ```
//
// Blocks with the fence ```console thorough take long and run only if WEFT_THOROUGH is set.
// ```sql blocks must parse, except with the fence ```sql fragment. Relative links must resolve.
// `docs_test --rewrite` refills the console blocks that have no `...`.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "own_data.h"
#include "thorough.h"
#include "weft/language/complaint.h"
#include "weft/language/parser.h"

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = WEFT_SOURCE_DIR;
bool rewrite = false;

using Lines = std::vector<std::string>;

Lines read_lines(const fs::path& file) {
  std::ifstream in(file);
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// README.md and docs/*.md, or every .md of the repository.
std::vector<fs::path> documents(bool all) {
  std::vector<fs::path> found;
  for (auto entry = fs::recursive_directory_iterator(kRoot); entry != fs::recursive_directory_iterator();
       ++entry) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory() && (name == "build" || name.starts_with('.')))
      entry.disable_recursion_pending();
    if (entry->path().extension() != ".md") continue;
    const fs::path file = fs::relative(entry->path(), kRoot);
    if (all || file == "README.md" || *file.begin() == "docs") found.push_back(file);
  }
  std::sort(found.begin(), found.end());
  return found;
}

struct Block {
  std::string fence;               // the text after ```
  std::size_t begin = 0, end = 0;  // the lines between the fences: [begin, end), from 0
};

std::vector<Block> blocks_of(const Lines& lines) {
  std::vector<Block> blocks;
  bool open = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t indent = std::min(lines[i].find_first_not_of(' '), lines[i].size());
    const std::string_view line = std::string_view(lines[i]).substr(indent);
    if (!line.starts_with("```")) continue;
    if (open) {
      blocks.back().end = i;
    } else {
      blocks.push_back({std::string(line.substr(3)), i + 1, lines.size()});
    }
    open = !open;
  }
  return blocks;
}

// The lines that the command prints to stdout and stderr.
Lines run(const std::string& command) {
  const std::string folder = fs::path(WEFT_PROGRAM).parent_path().string();
  const std::string full = fmt::format("cd '{}' && PATH='{}':\"$PATH\" && {{ {}\n}} 2>&1 </dev/null",
                                       kRoot.string(), folder, command);
  Lines lines;
  FILE* pipe = popen(full.c_str(), "r");
  if (pipe == nullptr) return {"cannot run sh"};
  std::string output;
  char chunk[4096];
  for (std::size_t got; (got = fread(chunk, 1, sizeof chunk, pipe)) > 0;) output.append(chunk, got);
  pclose(pipe);
  std::istringstream in(output);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool is_gap(const std::string& line) { return line == "..."; }

// Whether the line matches the expected one, where `...` matches any text.
bool fits(std::string_view expected, std::string_view found) {
  constexpr std::string_view kAny = "...";
  const std::size_t first = expected.find(kAny);
  if (first == std::string_view::npos) return expected == found;
  if (!found.starts_with(expected.substr(0, first))) return false;
  found.remove_prefix(first);
  expected.remove_prefix(first + kAny.size());
  for (std::size_t next; (next = expected.find(kAny)) != std::string_view::npos;) {
    const std::size_t at = found.find(expected.substr(0, next));
    if (at == std::string_view::npos) return false;
    found.remove_prefix(at + next);
    expected.remove_prefix(next + kAny.size());
  }
  return found.ends_with(expected);
}

// Whether `found` matches `expected`, where a gap matches any number of lines.
bool fits(const Lines& expected, const Lines& found) {
  // reach[j]: the expected lines so far can match the first j lines of `found`.
  std::vector<bool> reach(found.size() + 1, false);
  reach[0] = true;
  for (const std::string& line : expected) {
    std::vector<bool> next(found.size() + 1, false);
    for (std::size_t j = 0; j <= found.size(); ++j) {
      if (is_gap(line)) {
        next[j] = reach[j] || (j > 0 && next[j - 1]);
      } else {
        next[j] = j > 0 && reach[j - 1] && fits(line, found[j - 1]);
      }
    }
    reach = std::move(next);
  }
  return reach[found.size()];
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += "    " + line + '\n';
  return text;
}

struct Example {
  std::size_t line = 0;  // of its `$`, from 0
  Lines command;         // as in the document
  Lines expected;

  std::string shell() const {
    std::string text;
    for (const std::string& piece : command) text += (text.empty() ? "" : "\n") + piece.substr(2);
    return text;
  }
};

std::vector<Example> examples_of(const Lines& lines, const Block& block) {
  std::vector<Example> examples;
  for (std::size_t i = block.begin; i < block.end; ++i) {
    if (lines[i].starts_with("$ ")) {
      examples.push_back({i, {lines[i]}, {}});
    } else if (!examples.empty() && examples.back().expected.empty() && lines[i].starts_with("> ")) {
      examples.back().command.push_back(lines[i]);
    } else if (!examples.empty()) {
      examples.back().expected.push_back(lines[i]);
    }
  }
  return examples;
}

// Blank lines before the next `$` are formatting: the last line of a program's output is not blank.
void drop_trailing_blank_lines(Lines& lines) {
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
}

TEST(Docs, ConsoleBlocksShowWhatWeftPrints) {
  for (const fs::path& file : documents(false)) {
    Lines lines = read_lines(kRoot / file);
    const std::vector<Block> blocks = blocks_of(lines);
    bool changed = false;
    // Last block first, so that refilling a block does not move blocks still to come.
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
      if (block->fence != "console" && (block->fence != "console thorough" || !weft::is_thorough())) continue;
      std::vector<Example> examples = examples_of(lines, *block);
      EXPECT_FALSE(examples.empty()) << file.string() << ':' << block->begin << ": no line starts with $";
      bool has_gap = false;
      Lines refilled;
      for (Example& example : examples) {
        const std::string shell = example.shell();
        EXPECT_TRUE(shell == "weft" || shell.starts_with("weft ") ||
                    shell.find("| weft") != std::string::npos)
            << file.string() << ':' << example.line + 1 << ": console blocks may run only weft: " << shell;
        const std::size_t blank_lines = example.expected.size();
        drop_trailing_blank_lines(example.expected);
        Lines found = run(shell);
        drop_trailing_blank_lines(found);
        for (const std::string& line : example.expected) has_gap |= line.find("...") != std::string::npos;
        refilled.insert(refilled.end(), example.command.begin(), example.command.end());
        refilled.insert(refilled.end(), found.begin(), found.end());
        refilled.insert(refilled.end(), blank_lines - example.expected.size(), "");
        if (!rewrite || has_gap) {
          EXPECT_TRUE(fits(example.expected, found))
              << file.string() << ':' << example.line + 1 << ": " << shell << "\n  expected\n"
              << joined(example.expected) << "  found\n"
              << joined(found);
        }
      }
      if (!rewrite || has_gap || examples.empty()) continue;
      const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(block->begin);
      const auto end = lines.begin() + static_cast<std::ptrdiff_t>(block->end);
      if (std::equal(begin, end, refilled.begin(), refilled.end())) continue;
      lines.insert(lines.erase(begin, end), refilled.begin(), refilled.end());
      changed = true;
    }
    if (!changed) continue;
    std::ofstream out(kRoot / file, std::ios::trunc);
    for (const std::string& line : lines) out << line << '\n';
    fmt::print("{}: rewritten\n", file.string());
  }
}

TEST(Docs, EllipsesMatchAnyText) {
  EXPECT_TRUE(fits(std::string_view("a ... c"), std::string_view("a b c")));
  EXPECT_TRUE(fits(std::string_view("in ...: ... of 2"), std::string_view("in 3 s: 1 of 2 of 2")));
  EXPECT_FALSE(fits(std::string_view("a ... c"), std::string_view("a b d")));
  EXPECT_FALSE(fits(std::string_view("a ... a"), std::string_view("a a")));
}

// Other documents may show measurements in blocks without a fence.
TEST(Docs, ReadmeExamplesAreInConsoleBlocks) {
  const Lines lines = read_lines(kRoot / "README.md");
  for (const Block& block : blocks_of(lines))
    for (std::size_t i = block.begin; i < block.end; ++i)
      EXPECT_FALSE(lines[i].starts_with("$ ") && block.fence != "console")
          << "README.md:" << i + 1 << ": not in a console block: " << lines[i];
}

// Checks phrases such as "174 of them in [rules/](rules)".
TEST(Docs, ReadmeCountsAreCorrect) {
  const std::string_view mark = " of them in [";
  std::size_t checked = 0;
  for (const std::string& line : read_lines(kRoot / "README.md"))
    for (std::size_t at = line.find(mark); at != std::string::npos; at = line.find(mark, at + 1)) {
      const std::size_t number = line.find_last_not_of("0123456789,", at - 1) + 1, name = at + mark.size();
      std::size_t count = 0;
      for (const fs::directory_entry& entry :
           fs::directory_iterator(kRoot / line.substr(name, line.find('/', name) - name)))
        if (entry.path().extension() != ".md")
          for (const std::string& text : read_lines(entry.path()))
            count += text.starts_with("rule ") || text.starts_with("ALGORITHM ") ? 1 : 0;
      EXPECT_EQ(line.substr(number, at - number), std::to_string(count)) << line;
      ++checked;
    }
  EXPECT_EQ(checked, 2u);
}

TEST(Docs, SqlBlocksParse) {
  for (const fs::path& file : documents(false)) {
    const Lines lines = read_lines(kRoot / file);
    for (const Block& block : blocks_of(lines)) {
      if (block.fence != "sql") continue;
      std::string text;
      for (std::size_t i = block.begin; i < block.end; ++i) text += lines[i] + '\n';
      const auto script = weft::language::parse(text);
      EXPECT_TRUE(script.ok()) << file.string() << ':' << block.begin + 1 << ": "
                               << weft::language::complain(script.error(), text);
    }
  }
}

// The targets of [text](target) in a line.
Lines links_of(const std::string& line) {
  Lines targets;
  for (std::size_t at = 0; (at = line.find("](", at)) != std::string::npos;) {
    at += 2;
    const std::size_t end = line.find_first_of(" )", at);
    if (end != std::string::npos) targets.push_back(line.substr(at, end - at));
  }
  return targets;
}

// Names such as `predict/cost/roofline.h` and `src/weft/layers.txt` refer to files of the library.
// Those that end in .h or .cpp must exist.
TEST(Docs, NamedSourcesExist) {
  static const std::regex kNamed("`((?:src/weft/)?[a-z_0-9]+/[a-z_0-9/]+\\.(?:h|cpp))`");
  std::size_t checked = 0;
  for (const fs::path& file : documents(/*all=*/true)) {
    const Lines lines = read_lines(kRoot / file);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      for (auto named = std::sregex_iterator(lines[i].begin(), lines[i].end(), kNamed);
           named != std::sregex_iterator(); ++named, ++checked) {
        const std::string path = (*named)[1];
        if (path.starts_with("include/")) continue;  // the path after installation
        EXPECT_TRUE(fs::exists(kRoot / path) || fs::exists(kRoot / "src/weft" / path) ||
                    fs::exists((kRoot / file).parent_path() / path))
            << file.string() << ":" << i + 1 << ": " << path;
      }
    }
  }
  EXPECT_GT(checked, 20u);
}

TEST(Docs, RelativeLinksResolve) {
  for (const fs::path& file : documents(true)) {
    const Lines lines = read_lines(kRoot / file);
    const std::vector<Block> blocks = blocks_of(lines);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto inside = [&](const Block& block) { return block.begin <= i && i < block.end; };
      if (std::any_of(blocks.begin(), blocks.end(), inside)) continue;
      for (const std::string& target : links_of(lines[i])) {
        const std::string path = target.substr(0, target.find('#'));
        if (path.empty() || path.find(':') != std::string::npos) continue;  // an anchor or a URL
        EXPECT_TRUE(fs::exists(kRoot / file.parent_path() / path))
            << file.string() << ':' << i + 1 << ": no such file: " << target;
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new weft::OwnData);  // documents show the output of a new machine
  for (int i = 1; i < argc; ++i) rewrite |= std::string_view(argv[i]) == "--rewrite";
  return RUN_ALL_TESTS();
}
