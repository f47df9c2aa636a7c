// Every shipped model is proven, trained and inferred, on meshes with axes of 2 and of 3 ranks; and so are models
// whose sizes are tied in ways that no shipped one has.
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weft/session/plans.h"

namespace weft::session {
namespace {

struct ProvenModel {
  std::string_view name, script;
};

// Depthwise convolutions: as many groups as channels.
constexpr std::string_view kDepthwise = R"(
CREATE LAYER depthwise(x[b, c, h, w]) (b = 1, c = 96, h = 56, w = 56, o = c, i = 1, r = 3, q = 3, groups_ = c)
  PARAMETER kernel[o, i, r, q] INIT normal(0, 0.05)
AS SELECT relu(conv2d(x, kernel, padding => 1, groups => groups_)) FROM x, kernel;
CREATE MODEL mobile (b = 1, c = 3, h = 224, w = 224, classes = 1000) INPUT image[b, c, h, w], label[b] OF int32
AS WITH
  x AS (SELECT * FROM conv(image, o = 96, stride = 2) AS stem),
  y AS (SELECT * FROM depthwise(x[b, o AS c, h, w]) AS spatial),
  z AS (SELECT * FROM conv(y[b, o AS c, h, w], o = 32, r = 1, padding = 0) AS narrow),
  pooled AS (SELECT mean(z) FROM z GROUP BY b, o),
  logits AS (SELECT * FROM dense(pooled, o = classes) AS fc)
SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label;
TRAIN mobile ON pod WITH (b = 1024, distribution = 'node=4: slice b; gpu=8: slice o')
)";

// Two towers that meet in a square of similarities: its rows and columns are one size.
constexpr std::string_view kTowers = R"(
CREATE MODEL towers (b = 1024, p = 3072, s = 77, v = 49408, d = 512)
  INPUT image[b, p], text[b, s] OF int32
  PARAMETER wi[p, d] INIT normal(0, 0.02), wt[v, d] INIT normal(0, 0.02)
AS WITH
  i AS (SELECT sum(image * wi) FROM image, wi GROUP BY b, d),
  t AS (SELECT sum(wt) FROM text JOIN wt ON v = text GROUP BY b, d),
  similar AS (SELECT sum(i * t) * 14.3 FROM i, t[b AS a, d] GROUP BY b, a),
  chance AS (SELECT softmax(similar) OVER (PARTITION BY b) FROM similar)
SELECT mean(CASE WHEN a = b THEN chance ELSE 0 END) AS loss FROM chance;
TRAIN towers ON pod WITH (distribution = 'node=4: slice b; gpu=8: slice d')
)";

// Many experts whose sizes stand in the text as numbers: what is picked, sent and seated shrinks with them.
constexpr std::string_view kExperts = R"(
CREATE MODEL deep (b = 1, s = 4096, d = 5120) INPUT x[b, s, d] AS
  WITH y AS (SELECT * FROM rotary_attention(x, h = 128))
  SELECT mean(z) AS loss FROM expert_mlp(y, f = 1536, x = 64, k = 6) AS z;
TRAIN deep ON pod WITH (b = 64, distribution = 'node=4: slice b; gpu=8: slice h, x')
)";

const ProvenModel kProven[] = {
    {"mlp", "TRAIN digits_mlp ON pod WITH (b = 4096, distribution = 'node=4: slice b; gpu=8: slice f')"},
    {"digits_conv",
     "TRAIN digits_conv ON pod WITH (b = 1024, distribution = 'node=4: slice b; gpu=8: slice b')"},
    {"gpt2",
     "TRAIN gpt2 ON pod WITH (b = 64, layers = 2, distribution = 'node=4: slice b, shard parameters; gpu=8: "
     "slice h, f, v, s')"},
    {"llama",
     "TRAIN llama2_7b ON pod WITH (b = 64, layers = 1, distribution = 'node=4: slice b; gpu=8: slice h, f, "
     "v')"},
    {"mixtral",
     "TRAIN mixtral_8x7b ON pod WITH (b = 64, layers = 1, distribution = 'node=4: slice b; gpu=8: slice x, "
     "b')"},
    {"bert",
     "INFER bert_large ON pod WITH (b = 64, layers = 2, distribution = 'node=4: slice b; gpu=8: slice h, "
     "f')"},
    {"alexnet", "TRAIN alexnet ON pod WITH (b = 1024, distribution = 'node=4: slice b; gpu=8: slice o')"},
    {"alexnet_infer", "INFER alexnet ON pod WITH (distribution = 'node=4: slice h; gpu=8: slice o')"},
    {"vgg16_infer", "INFER vgg16 ON pod WITH (b = 64, distribution = 'node=4: slice b; gpu=8: slice o')"},
    {"resnet50_infer", "INFER resnet50 ON pod WITH (distribution = 'node=4: slice o; gpu=8: slice o')"},
    {"resnet50", "TRAIN resnet50 ON pod WITH (b = 1024, distribution = 'node=4: slice b; gpu=8: slice b')"},
    {"depthwise", kDepthwise},
    {"towers", kTowers},
    {"experts", kExperts},
};

class ProvenModels : public ::testing::TestWithParam<ProvenModel> {};

TEST_P(ProvenModels, AreProven) {
  const Reply reply = run(PlanProve{.what = {std::string(GetParam().script)}, .format = Format::json});
  ASSERT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  const auto json = nlohmann::json::parse(reply.output);
  EXPECT_TRUE(json.at("proven")) << reply.output;
  for (const char* mesh : {"2 x 3", "3 x 2"})
    EXPECT_NE(json.at("sizes").get<std::string>().find(mesh), std::string::npos) << reply.output;
}

INSTANTIATE_TEST_SUITE_P(OneByOne, ProvenModels, ::testing::ValuesIn(kProven),
                         [](const auto& model) { return std::string(model.param.name); });

}  // namespace
}  // namespace weft::session
