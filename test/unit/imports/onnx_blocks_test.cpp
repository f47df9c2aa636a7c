// Repeated blocks of an ONNX graph become a layer; the rest stays as it is.
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "weft/translate/imports/onnx.h"
#include "weft/translate/imports/onnx_blocks.h"

namespace weft::imports {
namespace {

using formats::ModelOperation;

// x, then `blocks` times a linear map with its sigmoid, added to its input; each map has its own
// weights.
OnnxModel chain_of(std::size_t blocks, std::int64_t last_width = 8) {
  OnnxModel model;
  formats::ModelFile& file = model.file;
  file.name = "chain";
  file.inputs = 1;
  file.weights = static_cast<std::uint32_t>(blocks);
  file.values.push_back({"image", {4, 8}});
  for (std::size_t i = 0; i < blocks; ++i)
    file.values.push_back({"layers." + std::to_string(i) + ".weight", {8, i + 1 == blocks ? last_width : 8}});
  const auto add = [&](ModelOperation operation, std::vector<std::uint32_t> operands,
                       formats::ModelShape shape) {
    formats::ModelNode node;
    node.operation = operation;
    node.operands = std::move(operands);
    file.nodes.push_back(std::move(node));
    model.stems.emplace_back("part");
    file.values.push_back({"v" + std::to_string(file.values.size()), std::move(shape)});
    return static_cast<std::uint32_t>(file.values.size() - 1);
  };
  std::uint32_t x = add(ModelOperation::tanh, {0}, {4, 8});
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::int64_t width = i + 1 == blocks ? last_width : 8;
    const std::uint32_t product =
        add(ModelOperation::matmul, {x, static_cast<std::uint32_t>(1 + i)}, {4, width});
    const std::uint32_t gate = add(ModelOperation::sigmoid, {product}, {4, width});
    if (width == 8) model.infixes[file.nodes.size()] = " + ";
    x = width == 8 ? add(ModelOperation::add, {x, gate}, {4, 8}) : gate;
  }
  file.outputs = {x};
  return model;
}

TEST(OnnxBlocks, AreFound) {
  const auto blocks = find_blocks(chain_of(5));
  ASSERT_TRUE(blocks);
  EXPECT_EQ(blocks->layer.file.nodes.size(), 3u);
  EXPECT_EQ(blocks->rest.file.nodes.size(), 2u);
  EXPECT_EQ(blocks->rest.repeated->times, 5);
  ASSERT_EQ(blocks->weights.size(), 5u);
  EXPECT_EQ(blocks->weights[3], (std::vector<std::uint32_t>{4}));
  const auto text = print_onnx(chain_of(5), "chain");
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_NE(text->text.find("REPEAT 5 TIMES"), std::string::npos) << text->text;
  EXPECT_EQ(text->parameters, 5 * 64);
  EXPECT_EQ(text->names.at(4), "chain_block.3.weight");
}

TEST(OnnxBlocks, ExcludeDifferentBlocks) {
  EXPECT_FALSE(find_blocks(chain_of(1)));
  // The last of four is wider: three repeat, and the last stays separate.
  const auto three = find_blocks(chain_of(4, 16));
  ASSERT_TRUE(three);
  EXPECT_EQ(three->rest.repeated->times, 3);
  // A value from within a block that is also read later, and the input of the first block, read at
  // the end.
  OnnxModel peeked = chain_of(3);
  peeked.file.outputs.push_back(peeked.file.result(2));
  const auto later = find_blocks(peeked);
  EXPECT_TRUE(!later || later->rest.repeated->times == 2);
  OnnxModel kept = chain_of(3);
  kept.file.outputs.push_back(kept.file.result(0));
  const auto after = find_blocks(kept);
  EXPECT_TRUE(!after || after->rest.repeated->times == 2);
  // One weight shared by all is not a weight of the layer.
  OnnxModel tied = chain_of(3);
  for (formats::ModelNode& node : tied.file.nodes)
    if (node.operation == ModelOperation::matmul) node.operands[1] = 1;
  const auto shared = find_blocks(tied);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->rest.repeated->shared, (std::vector<std::uint32_t>{1}));
  EXPECT_TRUE(shared->weights[0].empty());
}

}  // namespace
}  // namespace weft::imports
