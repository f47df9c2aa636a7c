// Layouts as text, meshes, and which rank holds which block.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"

namespace weft::plan {
namespace {

Mesh mesh_of(std::string_view text) { return read_mesh(text).value(); }

// A value with a layout: [b=8, d=5, "two words"=2].
class LayoutTest : public testing::Test {
 protected:
  Graph graph;
  std::vector<Dim> dims = {{graph.symbol("b"), 8}, {graph.symbol("d"), 5}, {graph.symbol("two words"), 2}};
  Type type = graph.type(graph.intern_type(DType::f32, dims).value());

  std::string reprinted(std::string_view text, const Mesh& mesh) {
    const Result<Layout> layout = read_layout(text, mesh, type, graph.symbols());
    return layout.ok() ? print(*layout, mesh, graph.symbols()) : "! " + layout.error().message;
  }
};

TEST(Mesh, CountsRanksWithTheLastAxisFastest) {
  const Mesh mesh = mesh_of("node=2, gpu=3");
  EXPECT_EQ(mesh.ranks(), 6);
  EXPECT_EQ(mesh.coordinate(4, 0), 1);
  EXPECT_EQ(mesh.coordinate(4, 1), 1);
  EXPECT_EQ(mesh.group(4, 0), (std::vector<std::int32_t>{1, 4}));
  EXPECT_EQ(mesh.group(4, 1), (std::vector<std::int32_t>{3, 4, 5}));
  EXPECT_EQ(mesh.find("gpu"), 1);
  EXPECT_EQ(mesh.find("rack"), -1);
  EXPECT_EQ(print(mesh), "node=2, gpu=3");
  EXPECT_EQ(Mesh{}.ranks(), 1);
}

TEST(Mesh, ReportsErrors) {
  const auto error_of = [](std::string_view text) {
    const Result<Mesh> mesh = read_mesh(text);
    return mesh.ok() ? std::string("fine") : mesh.error().message;
  };
  EXPECT_EQ(error_of(""), "fine");
  EXPECT_EQ(error_of("gpu"), "expected a mesh axis and its ranks, found 'gpu'");
  EXPECT_EQ(error_of("gpu=two"), "expected the number of ranks of mesh axis gpu, found 'two'");
  EXPECT_EQ(error_of("gpu=99999999999"),
            "expected the number of ranks of mesh axis gpu, found '99999999999'");
  EXPECT_EQ(error_of("gpu=0"), "mesh axis gpu must have at least 1 rank, found 0");
  EXPECT_EQ(error_of("gpu=2, gpu=2"), "two mesh axes are named gpu");
  EXPECT_EQ(error_of("a=100000, b=100000"), "a mesh has at most 1048576 ranks");
  EXPECT_EQ(error_of("gpu=2 node=2"), "expected a comma between mesh axes, found 'node=2'");
  EXPECT_EQ(error_of("\"\"=2"), "a mesh axis needs a name");
}

TEST(Share, UsesCeilBlocksWithShorterOrEmptyLastOnes) {
  const auto sizes = [](std::int64_t size, std::int32_t parts) {
    std::vector<std::int64_t> all;
    for (std::int32_t part = 0; part < parts; ++part) all.push_back(share_of(size, parts, part).size);
    return all;
  };
  EXPECT_EQ(sizes(8, 4), (std::vector<std::int64_t>{2, 2, 2, 2}));
  EXPECT_EQ(sizes(8, 3), (std::vector<std::int64_t>{3, 3, 2}));
  EXPECT_EQ(sizes(5, 4), (std::vector<std::int64_t>{2, 2, 1, 0}));
  EXPECT_EQ(sizes(1, 3), (std::vector<std::int64_t>{1, 0, 0}));
  EXPECT_EQ(sizes(0, 2), (std::vector<std::int64_t>{0, 0}));
}

RC_GTEST_PROP(Share, SharesAreContiguousAndCoverAll, ()) {
  const auto parts = *rc::gen::inRange<std::int32_t>(1, kMostRanks);
  const auto size = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 56);
  const auto part = *rc::gen::inRange<std::int32_t>(0, parts);
  const Share share = share_of(size, parts, part);
  RC_ASSERT(share.size >= 0 && share.begin + share.size <= size);
  if (part + 1 < parts)
    RC_ASSERT(share_of(size, parts, part + 1).begin == share.begin + share.size);
  else
    RC_ASSERT(share.begin + share.size == size);
}

TEST_F(LayoutTest, TheOuterAxisSlicesFirst) {
  const Mesh mesh = mesh_of("node=2, gpu=3");
  const Layout layout =
      read_layout("sliced(b) on gpu, sliced(b) on node", mesh, type, graph.symbols()).value();
  std::vector<Share> shares;
  for (std::int32_t rank = 0; rank < 6; ++rank) shares.push_back(shares_of(type, layout, mesh, rank)[0]);
  EXPECT_EQ(shares, (std::vector<Share>{{0, 2}, {2, 2}, {4, 0}, {4, 2}, {6, 2}, {8, 0}}));
  EXPECT_EQ(shares_of(type, layout, mesh, 5)[1], (Share{0, 5}));
}

TEST_F(LayoutTest, ReadsWhatItPrints) {
  const Mesh mesh = mesh_of("node=2, gpu=3, \"odd one\"=2");
  EXPECT_EQ(reprinted("", mesh), "replicated");
  EXPECT_EQ(reprinted("replicated", mesh), "replicated");
  EXPECT_EQ(reprinted("replicated on gpu", mesh), "replicated");
  EXPECT_EQ(reprinted("partial(sum) on gpu,sliced( b ) on node", mesh),
            "sliced(b) on node, partial(sum) on gpu");
  EXPECT_EQ(reprinted("varying on \"odd one\"", mesh), "varying on \"odd one\"");
  EXPECT_EQ(reprinted("sliced(\"two words\") on gpu", mesh), "sliced(\"two words\") on gpu");
  EXPECT_EQ(reprinted("partial(max) on gpu, partial(max) on node", mesh),
            "partial(max) on node, partial(max) on gpu");
}

TEST_F(LayoutTest, ReportsErrors) {
  const Mesh mesh = mesh_of("node=2, gpu=3");
  EXPECT_EQ(reprinted("slice(b) on gpu", mesh),
            "! expected replicated, sliced, partial or varying in a layout, found 'slice(b) on gpu'");
  EXPECT_EQ(reprinted("sliced on gpu", mesh), "! expected ( after sliced in a layout, found 'on gpu'");
  EXPECT_EQ(reprinted("sliced() on gpu", mesh), "! expected an index in a layout, found ') on gpu'");
  EXPECT_EQ(reprinted("sliced(b", mesh), "! expected ) in a layout, found the end");
  EXPECT_EQ(reprinted("sliced(\"b", mesh), "! expected an index in a layout, found '\"b'");
  EXPECT_EQ(reprinted("sliced(q) on gpu", mesh),
            "! layout slices index q, which is not among [b, d, two words]");
  EXPECT_EQ(reprinted("partial(mean) on gpu", mesh),
            "! layout must be partial(sum), partial(max) or partial(min), found partial(mean)");
  EXPECT_EQ(reprinted("sliced(b)", mesh), "! expected 'on' and a mesh axis after sliced(b), found the end");
  EXPECT_EQ(reprinted("sliced(b) on", mesh), "! expected a mesh axis after 'on', found the end");
  EXPECT_EQ(reprinted("sliced(b) on rack", mesh), "! the mesh has no axis rack: it is node=2, gpu=3");
  EXPECT_EQ(reprinted("sliced(b) on gpu, varying on gpu", mesh), "! layout names mesh axis gpu twice");
  EXPECT_EQ(reprinted("sliced(b) on gpu varying on node", mesh),
            "! expected a comma between the axes of a layout, found 'varying on node'");
  EXPECT_EQ(reprinted("partial(sum) on gpu, partial(max) on node", mesh),
            "! a layout may have only one kind of partial, found partial(sum) and partial(max)");
}

// Hostile text: a result or an error, never a crash.
RC_GTEST_PROP(Layout, AcceptsOrRejectsAnyText, ()) {
  static const std::vector<std::string> kPieces = {"sliced", "(",       "b",   ")",       " on ",      "gpu",
                                                   ",",      "partial", "sum", "varying", "\"",        "\\",
                                                   "=",      "2",       " ",   "max",     "replicated"};
  std::string text;
  for (const int piece : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 17)))
    text += kPieces[static_cast<std::size_t>(piece)];
  Graph graph;
  const Dim dim{graph.symbol("b"), 4};
  const Type type{DType::f32, {&dim, 1}};
  const Mesh mesh = mesh_of("gpu=2");
  const Result<Layout> layout = read_layout(text, mesh, type, graph.symbols());
  if (layout.ok())
    RC_ASSERT(read_layout(print(*layout, mesh, graph.symbols()), mesh, type, graph.symbols()).value() ==
              *layout);
  (void)read_mesh(text).ok();
}

}  // namespace
}  // namespace weft::plan
