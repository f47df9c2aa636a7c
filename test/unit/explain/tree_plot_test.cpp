// Trees as text and as a drawing.
#include "weft/app/explain/tree_plot.h"

#include <gtest/gtest.h>

namespace weft::explain {
namespace {

const std::vector<synthesis::Tree> kTrees = {{0, 3, {{0, 1, 0}, {1, 3, 1}, {0, 2, 2}}},
                                             {0, 1, {{0, 2, 2}, {2, 3, 3}, {3, 1, 4}}},
                                             {1, 4, {{1, 0, 5}, {1, 2, 6}, {1, 3, 7}}}};

TEST(TreePlot, TextHasAPathToEveryLeaf) {
  EXPECT_EQ(print_trees(kTrees, {}),
            "root 0, 3 times\n"
            "  0 -> 1 -> 3\n"
            "  0 -> 2\n"
            "root 0\n"
            "  0 -> 2 -> 3 -> 1\n");
}

TEST(TreePlot, ReportsOmittedTrees) {
  const std::string text = print_trees(kTrees, {"", 1});
  EXPECT_NE(text.find("and 1 more trees of this root\n"), std::string::npos);
  EXPECT_NE(draw_trees(kTrees, {"", 1}).find("and 1 more trees"), std::string::npos);
}

TEST(TreePlot, DrawsEveryDeviceAndArrow) {
  const std::string svg = draw_trees(kTrees, {"all_gather & more"});
  EXPECT_TRUE(svg.starts_with("<svg") || svg.starts_with("<?xml"));
  EXPECT_NE(svg.find("all_gather &amp; more"), std::string::npos);
  std::size_t circles = 0;
  for (std::size_t p = svg.find("<circle"); p != std::string::npos; p = svg.find("<circle", p + 1)) ++circles;
  EXPECT_EQ(circles, 8U);  // four devices in each of two trees
  EXPECT_FALSE(draw_trees({}, {}).empty());
}

}  // namespace
}  // namespace weft::explain
