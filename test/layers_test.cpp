// The folders of src/weft stand in one order, and an #include never looks down it.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = WEFT_SOURCE_DIR;

// A folder's place in layers.txt.
std::map<std::string, int, std::less<>> read_layers() {
  std::map<std::string, int, std::less<>> layers;
  std::ifstream in(kRoot / "src/weft/layers.txt");
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') layers.emplace(line, static_cast<int>(layers.size()));
  }
  return layers;
}

struct Include {
  fs::path file;  // from the root
  int line = 0;
  std::string path;  // between the quotes

  std::string where() const { return fmt::format("{}:{}", file.string(), line); }
};

// Every #include "..." of the sources under `folder`.
std::vector<Include> includes_under(const fs::path& folder) {
  std::vector<Include> includes;
  if (!fs::exists(kRoot / folder)) return includes;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
    const fs::path extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp" && extension != ".cu") continue;
    std::ifstream in(entry.path());
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      constexpr std::string_view kStart = "#include \"";
      if (!line.starts_with(kStart)) continue;
      const std::size_t end = line.find('"', kStart.size());
      includes.push_back(
          {fs::relative(entry.path(), kRoot), number, line.substr(kStart.size(), end - kStart.size())});
    }
  }
  return includes;
}

// "weft/plan/graph.h" is of plan; empty when the path is not of that shape.
std::string layer_of(std::string_view path) {
  constexpr std::string_view kStart = "weft/";
  if (!path.starts_with(kStart)) return {};
  path.remove_prefix(kStart.size());
  const std::size_t slash = path.find('/');
  return slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash));
}

// So a header that lacks an include does not compile.
TEST(Layers, EverySourceIncludesItsOwnHeaderFirst) {
  std::map<std::string, Include> first;
  for (const Include& include : includes_under("src/weft")) first.try_emplace(include.file.string(), include);
  for (const auto& [file, include] : first) {
    const fs::path header = fs::path(file).replace_extension(".h");
    if (fs::path(file).extension() != ".cpp" || !fs::exists(kRoot / header)) continue;
    EXPECT_EQ("src/" + include.path, header.string()) << include.where();
  }
}

TEST(Layers, EveryListedFolderHasFiles) {
  const auto layers = read_layers();
  ASSERT_FALSE(layers.empty());
  for (const auto& [layer, place] : layers) {
    const fs::path folder = kRoot / "src/weft" / layer;
    EXPECT_TRUE(fs::is_directory(folder) && !fs::is_empty(folder))
        << "layers.txt lists " << layer << ", but src/weft/" << layer << " is not there";
  }
}

TEST(Layers, EveryFolderIsListed) {
  const auto layers = read_layers();
  for (const auto& entry : fs::directory_iterator(kRoot / "src/weft")) {
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(layers.contains(entry.path().filename().string()))
        << "src/weft/" << entry.path().filename().string() << " is not in layers.txt";
  }
}

TEST(Layers, IncludesFollowTheOrder) {
  const auto layers = read_layers();
  const std::vector<Include> includes = includes_under("src/weft");
  ASSERT_FALSE(includes.empty());
  for (const Include& include : includes) {
    const std::string from = layer_of(fs::relative(include.file, "src").string());
    const std::string to = layer_of(include.path);
    if (!layers.contains(from)) continue;  // EveryFolderIsListed names it once
    if (to.empty() || !layers.contains(to)) {
      ADD_FAILURE() << include.where() << ": not a file of a listed folder: " << include.path;
      continue;
    }
    EXPECT_LE(layers.at(to), layers.at(from))
        << include.where() << ": " << from << " may not include " << to << ", which stands below it";
  }
}

// A neighbour, or found from the top folder that the file is in; of a test, also what tests share.
bool is_own(const Include& include) {
  return fs::exists(kRoot / include.file.parent_path() / include.path) ||
         fs::exists(kRoot / *include.file.begin() / include.path) ||
         (*include.file.begin() == "test" && fs::exists(kRoot / "test/unit/case" / include.path));
}

TEST(Layers, ProgramsIncludeTheLibraryAndThemselves) {
  for (const fs::path folder : {"apps", "bench"}) {
    for (const Include& include : includes_under(folder)) {
      EXPECT_TRUE(is_own(include) || !layer_of(include.path).empty())
          << include.where() << ": neither weft/ nor a neighbour: " << include.path;
    }
  }
}

TEST(Layers, IncludedFilesExist) {
  for (const fs::path folder : {"src", "apps", "bench", "test"}) {
    for (const Include& include : includes_under(folder)) {
      if (include.path.ends_with(".inc")) continue;  // the build writes it
      EXPECT_TRUE(is_own(include) || fs::exists(kRoot / "src" / include.path))
          << include.where() << ": " << include.path;
    }
  }
}

}  // namespace
