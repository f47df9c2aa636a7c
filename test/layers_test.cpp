// Checks that every #include follows the folder order in src/weft/layers.txt.

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

// Maps each folder of layers.txt to its position.
std::map<std::string, int, std::less<>> read_layers() {
  std::map<std::string, int, std::less<>> layers;
  std::ifstream in(kRoot / "src/weft/layers.txt");
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') layers.emplace(line, static_cast<int>(layers.size()));
  }
  return layers;
}

struct Include {
  fs::path file;  // relative to the repository root
  int line = 0;
  std::string path;  // between the quotes

  std::string where() const { return fmt::format("{}:{}", file.string(), line); }
};

// Every #include "..." of the source files under `folder`.
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

// The listed folder of a file: predict/cost for "weft/predict/cost/roofline.h", device for
// "weft/device/cpu/gemm.h". Empty if no listed folder contains it.
std::string layer_of(std::string_view path, const std::map<std::string, int, std::less<>>& layers) {
  constexpr std::string_view kStart = "weft/";
  if (!path.starts_with(kStart)) return {};
  path.remove_prefix(kStart.size());
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    if (layers.contains(path.substr(0, slash))) return std::string(path.substr(0, slash));
  }
  return {};
}

// "predict" for "predict/cost".
std::string_view component_of(std::string_view layer) { return layer.substr(0, layer.find('/')); }

// This way a header that lacks an include does not compile.
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
        << "layers.txt lists " << layer << ", but src/weft/" << layer << " does not exist";
  }
}

TEST(Layers, EveryFolderIsListed) {
  const auto layers = read_layers();
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src/weft")) {
    if (!entry.is_regular_file() || entry.path().filename() == "README.md") continue;
    const std::string file = fs::relative(entry.path(), kRoot / "src").string();
    if (fs::path(file).parent_path() == "weft") continue;  // layers.txt itself and CMakeLists.txt
    EXPECT_FALSE(layer_of(file, layers).empty()) << "src/" << file << " is in no folder of layers.txt";
  }
}

// The modules of a component are adjacent in layers.txt, module names are unique and differ from
// component names, and every component has a README.
TEST(Layers, ComponentsAreContiguous) {
  std::map<int, std::string> in_order;
  std::map<std::string, int> modules;
  for (const auto& [layer, place] : read_layers()) {
    in_order[place] = layer;
    EXPECT_EQ(++modules[fs::path(layer).filename().string()], 1) << layer << ": another folder has this name";
  }
  std::map<std::string, std::string, std::less<>> seen;
  std::string_view last;
  for (const auto& [place, layer] : in_order) {
    const std::string_view component = component_of(layer);
    if (component != last) {
      EXPECT_FALSE(seen.contains(component)) << layer << " is separate from " << seen.find(component)->second;
      EXPECT_TRUE(fs::exists(kRoot / "src/weft" / component / "README.md"))
          << "src/weft/" << component << " lacks a README.md";
    }
    seen.emplace(component, layer);
    last = component;
  }
}

// The README of a component is short and names all of its modules.
TEST(Layers, ReadmesListTheirModules) {
  for (const auto& [layer, place] : read_layers()) {
    const fs::path path = kRoot / "src/weft" / component_of(layer) / "README.md";
    std::ifstream in(path);
    std::string text;
    int lines = 0;
    for (std::string line; std::getline(in, line); ++lines) text += line + "\n";
    EXPECT_LE(lines, 15) << path;
    if (layer.find('/') == std::string::npos) continue;
    EXPECT_NE(text.find("`" + fs::path(layer).filename().string() + "`"), std::string::npos)
        << path << " does not name " << layer;
  }
}

TEST(Layers, IncludesFollowLayerOrder) {
  const auto layers = read_layers();
  const std::vector<Include> includes = includes_under("src/weft");
  ASSERT_FALSE(includes.empty());
  for (const Include& include : includes) {
    const std::string from = layer_of(fs::relative(include.file, "src").string(), layers);
    const std::string to = layer_of(include.path, layers);
    if (from.empty()) continue;  // EveryFolderIsListed reports it
    if (to.empty()) {
      ADD_FAILURE() << include.where() << ": not a file of a listed folder: " << include.path;
      continue;
    }
    EXPECT_LE(layers.at(to), layers.at(from)) << include.where() << ": " << from << " may not include " << to
                                              << ", which is below it in layers.txt";
  }
}

// Whether the path is relative to the including file, to its top folder, or to the tests' shared
// folder.
bool is_own(const Include& include) {
  return fs::exists(kRoot / include.file.parent_path() / include.path) ||
         fs::exists(kRoot / *include.file.begin() / include.path) ||
         (*include.file.begin() == "test" && fs::exists(kRoot / "test/unit/case" / include.path));
}

TEST(Layers, ProgramsIncludeTheLibraryAndThemselves) {
  const auto layers = read_layers();
  for (const fs::path folder : {"apps", "bench"}) {
    for (const Include& include : includes_under(folder)) {
      EXPECT_TRUE(is_own(include) || !layer_of(include.path, layers).empty())
          << include.where() << ": neither a library header nor a file of this program: " << include.path;
    }
  }
}

TEST(Layers, IncludedFilesExist) {
  for (const fs::path folder : {"src", "apps", "bench", "test"}) {
    for (const Include& include : includes_under(folder)) {
      if (include.path.ends_with(".inc")) continue;  // generated by the build
      EXPECT_TRUE(is_own(include) || fs::exists(kRoot / "src" / include.path))
          << include.where() << ": " << include.path;
    }
  }
}

}  // namespace
