// Layers of virtual stages, as Megatron Core's flags state them.
#include <gtest/gtest.h>

#include "weft/translate/recipe/languages.h"
#include "weft/translate/recipe/pipeline_layout.h"

namespace weft::recipe {
namespace {

using Layers = std::vector<std::int64_t>;

std::string error_of(std::string_view layout) {
  const auto read = read_pipeline_layout(layout);
  return read.ok() ? "" : read.error().message;
}

TEST(PipelineLayout, WritesRepetitionsOut) {
  EXPECT_EQ(read_pipeline_layout("Et|t|tL").value(), (Layers{1, 1, 1}));
  EXPECT_EQ(read_pipeline_layout("Et*3|(tt|)*2,m|L").value(), (Layers{3, 2, 2, 0, 0}));
  EXPECT_EQ(read_pipeline_layout("E|((t|)*2t|)*2 L").value(), (Layers{0, 1, 1, 1, 1, 1, 1, 0}));
}

TEST(PipelineLayout, IsReadAsItIsPrinted) {
  for (const Layers& layers : {Layers{7, 8, 8, 8, 7}, Layers{1}, Layers{0, 4}, Layers{4, 0}, Layers{2, 3},
                               Layers{5, 5, 5, 2}, Layers{3, 1, 1, 2, 2, 1}})
    EXPECT_EQ(read_pipeline_layout(print_pipeline_layout(layers)).value(), layers)
        << print_pipeline_layout(layers);
  EXPECT_EQ(print_pipeline_layout(Layers{7, 8, 8, 8, 7}), "Et*7|(t*8|)*3t*7L");
}

TEST(PipelineLayout, NamesWhatIsWrong) {
  EXPECT_EQ(error_of("t|tL"), "expected one E, the embedding, at the start");
  EXPECT_EQ(error_of("Et|t"), "expected one L, the loss, at the end");
  EXPECT_EQ(error_of("EtxL"), "expected E, t, m, L, |, * or parentheses, found 'x' at 3");
  EXPECT_EQ(error_of("E(tL"), "a parenthesis is not closed");
  EXPECT_EQ(error_of("Et)L"), "expected E, t, m, L, |, * or parentheses, found ')' at 3");
  EXPECT_EQ(error_of("Et*0L"), "expected a number from 1 to 65536 after *");
  EXPECT_EQ(error_of("Et*L"), "expected a number from 1 to 65536 after *");
  EXPECT_EQ(error_of("E((t*60000)*60000)*60000L"), "more than 65536 layers and stages");
  EXPECT_EQ(error_of(std::string(20, '(')), "groups within more than 8 groups");
}

Layers layers_of(std::string_view flags) {
  const auto read = read_megatron(flags);
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
  return read.ok() ? read->stage_layers : Layers{};
}

TEST(PipelineLayout, IsReadFromFlags) {
  const std::string model = "--num-layers 126 --pipeline-model-parallel-size 16 ";
  Layers uneven(16, 8);
  uneven.front() = uneven.back() = 7;
  EXPECT_EQ(
      layers_of(model + "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split"),
      uneven);
  EXPECT_EQ(layers_of(model + "--decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 7"),
            uneven);
  EXPECT_EQ(layers_of(model + "--pipeline-model-parallel-layout 'Et*7|(t*8|)*14t*7L'"), uneven);
  EXPECT_EQ(
      layers_of(
          "--num-layers 6 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Et|t*2|t*2|tL"),
      (Layers{1, 2, 2, 1}));
  // Equal numbers need no layout.
  EXPECT_EQ(
      layers_of("--num-layers 4 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Ett|ttL"),
      Layers{});
}

TEST(PipelineLayout, IsWrittenAsAFlag) {
  Recipe recipe;
  recipe.pipeline = 4;
  recipe.stage_layers = {3, 4, 4, 3};
  const Written written = print_megatron(recipe);
  EXPECT_NE(written.text.find("--pipeline-model-parallel-layout \"Et*3|(t*4|)*2t*3L\""), std::string::npos)
      << written.text;
  const auto again = read_megatron(written.text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->stage_layers, recipe.stage_layers);
}

TEST(PipelineLayout, ContradictsNoOtherFlag) {
  const auto error = [](std::string_view flags) {
    const auto read = read_megatron(flags);
    return read.ok() ? std::string() : read.error().message;
  };
  EXPECT_EQ(
      error("--num-layers 8 --pipeline-model-parallel-size 4 --pipeline-model-parallel-layout Et*4|t*4L"),
      "--pipeline-model-parallel-layout has 2 virtual stages, for 4 stages");
  EXPECT_EQ(
      error("--num-layers 9 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Et*4|t*4L"),
      "--pipeline-model-parallel-layout has 8 layers, and --num-layers is 9");
  EXPECT_EQ(error("--num-layers 9 --pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 2"),
            "the stages do not share the layers evenly: 7 on 3 stages");
}

}  // namespace
}  // namespace weft::recipe
