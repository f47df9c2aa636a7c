// Shipped models of every kind are proven, for training or inference, on meshes with axes of 2 and
// of 3 ranks. So are smaller models with the size constraints of large ones.
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "thorough.h"
#include "weft/app/command/plans.h"

namespace weft::command {

using namespace session;
namespace {

struct ProvenModel {
  std::string_view name, script;
};

// Two towers whose outputs form a square similarity matrix: its rows and columns have one size.
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

// The structure of MobileNetV2: grouped convolutions between batch norms, in inverted residuals.
constexpr std::string_view kInverted = R"(
CREATE OR REPLACE LAYER conv_norm(x[b, c, h, w])
  (b = 1, c = 32, h = 112, w = 112, o = 32, i = c, r = 3, q = r, stride = 1, padding = 1, groups = 1)
  PARAMETER kernel[o, i, r, q] INIT normal(0, 0.05), gain[o] INIT ones, bias[o]
  STATE     mean[o], variance[o] INIT ones
AS WITH
  y AS (SELECT conv2d(x, kernel, stride => stride, padding => padding, groups => groups) FROM x, kernel)
SELECT batch_norm(y, mean, variance) OVER (PARTITION BY o) * gain + bias FROM y, mean, variance, gain, bias;

CREATE OR REPLACE LAYER inverted(x[b, c, h, w]) (b = 1, c = 16, h = 112, w = 112, m = 6 * c, o = 24, stride = 1)
AS WITH
  e AS (SELECT least(relu(z), 6) FROM conv_norm(x, o = m, r = 1, padding = 0) AS z),
  s AS (SELECT least(relu(z), 6) FROM conv_norm(e, o = m, i = 1, stride = stride, groups = m) AS z)
SELECT * FROM conv_norm(s, o = o, r = 1, padding = 0) AS narrow;

CREATE OR REPLACE LAYER inverted_bottleneck(x[b, c, h, w]) (b = 1, c = 16, h = 112, w = 112, o = c, m = 6 * c)
AS WITH
  y AS (SELECT * FROM inverted(x, o = c, m = m) AS narrow)
SELECT y + x FROM y, x[b, c AS o, h, w];

CREATE MODEL mobile (b = 64, c = 3, h = 224, w = 224, classes = 1000)
  INPUT image[b, c, h, w], label[b] OF int32
AS WITH
  x AS (SELECT least(relu(z), 6) FROM conv_norm(image, o = 32, stride = 2) AS z),
  x AS (SELECT least(relu(z), 6) FROM conv_norm(x, o = 32, i = 1, groups = 32) AS z),
  x AS (SELECT * FROM conv_norm(x, o = 16, r = 1, padding = 0) AS first),
  x AS (SELECT * FROM inverted(x, o = 24, stride = 2) AS a1),
  REPEAT 2 TIMES x AS (SELECT * FROM inverted_bottleneck(x) AS a2),
  x AS (SELECT least(relu(z), 6) FROM conv_norm(x, o = 1280, r = 1, padding = 0) AS z),
  pooled AS (SELECT mean(x) FROM x GROUP BY b, o),
  logits AS (SELECT * FROM dense(pooled, o = classes) AS fc)
SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label;
TRAIN mobile ON pod WITH (b = 1024, distribution = 'node=4: slice b; gpu=8: slice o')
)";

// The structure of CLIP: image patches and text tokens through two towers, and a square similarity
// matrix whose rows and columns have one size. Rules move its slices and merge equal counts.
constexpr std::string_view kPair = R"(
CREATE OR REPLACE LAYER tower_block(x[b, s, d])
  (b = 1, s = 50, d = 768, h = 12, e = d / h, f = 4 * d)
  PARAMETER gain[d] INIT ones, bias[d], wq[d, h, e] INIT normal(0, 0.02), wk[d, h, e] INIT normal(0, 0.02),
            wv[d, h, e] INIT normal(0, 0.02), wo[h, e, d] INIT normal(0, 0.02), w1[d, f] INIT normal(0, 0.02), w2[f, d] INIT normal(0, 0.02)
AS WITH
  n      AS (SELECT layer_norm(x) OVER (PARTITION BY b, s) * gain + bias FROM x, gain, bias),
  q      AS (SELECT sum(n * wq) FROM n, wq GROUP BY b, h, s, e),
  k      AS (SELECT sum(n * wk) FROM n, wk GROUP BY b, h, s, e),
  v      AS (SELECT sum(n * wv) FROM n, wv GROUP BY b, h, s, e),
  scores AS (SELECT sum(q * k) / sqrt(e) FROM q, k[b, h, s AS t, e] GROUP BY b, h, s, t),
  probs  AS (SELECT softmax(scores) OVER (PARTITION BY b, h, s) FROM scores),
  ctx    AS (SELECT sum(probs * v) FROM probs, v[b, h, s AS t, e] GROUP BY b, h, s, e),
  a      AS (SELECT x + sum(ctx * wo) FROM x, ctx, wo GROUP BY b, s, d),
  up     AS (SELECT gelu(sum(a * w1)) FROM a, w1 GROUP BY b, s, f)
SELECT a + sum(up * w2) FROM a, up, w2 GROUP BY b, s, d;

CREATE OR REPLACE LAYER image_tower(image[b, c, height, width])
  (b = 1, c = 3, height = 224, width = 224, r = 32, q = r, step = r, d = 768, h = 12, layers = 12, o = 512, p = height / r * width / q)
  PARAMETER patch[d, c, r, q] INIT normal(0, 0.02), place[p, d] INIT normal(0, 0.02), project[d, o] INIT normal(0, 0.02)
AS WITH
  grid    AS (SELECT conv2d(image, patch, stride => step) FROM image, patch),
  patches AS (SELECT grid FROM grid[b, d, (height, width) AS s] GROUP BY b, s, d),
  x       AS (SELECT patches + place FROM patches JOIN place ON p = s),
  REPEAT layers TIMES x AS (SELECT * FROM tower_block(x, h = h)),
  first   AS (SELECT x FROM x WHERE s = 0)
SELECT sum(first * project) FROM first, project GROUP BY b, o;

CREATE OR REPLACE LAYER text_tower(tokens[b, s] OF int32)
  (b = 1, s = 77, p = 77, v = 49408, d = 512, h = 8, layers = 12, o = 512)
  PARAMETER embed[v, d] INIT normal(0, 0.02), place[p, d] INIT normal(0, 0.01), project[d, o] INIT normal(0, 0.02)
AS WITH
  x    AS (SELECT embed + place FROM tokens JOIN embed ON v = tokens JOIN place ON p = s),
  REPEAT layers TIMES x AS (SELECT * FROM tower_block(x, h = h)),
  last AS (SELECT x FROM x WHERE s = 76)
SELECT sum(last * project) FROM last, project GROUP BY b, o;

CREATE MODEL pair
  (b = 64, c = 3, height = 224, width = 224, s = 77, v = 49408, layers = 12, o = 512)
  INPUT     image[b, c, height, width], tokens[b, s] OF int32
AS WITH
  images  AS (SELECT * FROM image_tower(image, layers = layers, o = o) AS image_tower),
  words   AS (SELECT * FROM text_tower(tokens, p = s, v = v, layers = layers, o = o) AS text_tower),
  i       AS (SELECT images * rsqrt(sum(images * images) OVER (PARTITION BY b)) FROM images),
  t       AS (SELECT words * rsqrt(sum(words * words) OVER (PARTITION BY b)) FROM words),
  similar AS (SELECT sum(i * t) * 14.3 FROM i, t[b AS a, o] GROUP BY b, a)
SELECT mean(cross_entropy(similar, b) OVER (PARTITION BY b)) / 2 + mean(cross_entropy(similar, a) OVER (PARTITION BY a)) / 2 AS loss
FROM similar;
TRAIN pair ON pod WITH (b = 1024, layers = 1, distribution = 'node=4: slice b; gpu=8: slice b')
)";

// The structure of DeepSeek-V2: keys and values from a latent, with a separate rotary part; shared
// and routed experts. Every layer has counts that equal those of another.
constexpr std::string_view kLatent = R"(
CREATE OR REPLACE LAYER compressed_attention(x[b, s, d])
  (b = 1, s = 4096, d = 2048, h = 16, e = 128, l = 512, m = 64, u = 128)
  PARAMETER gain[d] INIT ones, wq[d, h, e] INIT normal(0, 0.02), wqr[d, h, m] INIT normal(0, 0.02),
            wl[d, l] INIT normal(0, 0.02), lgain[l] INIT ones, wkr[d, m] INIT normal(0, 0.02),
            wk[l, h, e] INIT normal(0, 0.02), wv[l, h, u] INIT normal(0, 0.02), wo[h, u, d] INIT normal(0, 0.02)
AS WITH
  n      AS (SELECT rms_norm(x) OVER (PARTITION BY b, s) * gain FROM x, gain),
  q      AS (SELECT sum(n * wq) FROM n, wq GROUP BY b, h, s, e),
  qr     AS (SELECT rotary(sum(n * wqr), along => s, pairs => m) FROM n, wqr GROUP BY b, h, s, m),
  c      AS (SELECT sum(n * wl) FROM n, wl GROUP BY b, s, l),
  cn     AS (SELECT rms_norm(c) OVER (PARTITION BY b, s) * lgain FROM c, lgain),
  kr     AS (SELECT rotary(sum(n * wkr), along => s, pairs => m) FROM n, wkr GROUP BY b, s, m),
  k      AS (SELECT sum(cn * wk) FROM cn, wk GROUP BY b, h, s, e),
  v      AS (SELECT sum(cn * wv) FROM cn, wv GROUP BY b, h, s, u),
  near   AS (SELECT sum(q * k) FROM q, k[b, h, s AS t, e] GROUP BY b, h, s, t),
  far    AS (SELECT sum(qr * kr) FROM qr, kr[b, s AS t, m] GROUP BY b, h, s, t),
  probs  AS (SELECT softmax(CASE WHEN t <= s THEN (near + far) / sqrt(192) ELSE -inf END) OVER (PARTITION BY b, h, s) FROM near, far),
  ctx    AS (SELECT sum(probs * v) FROM probs, v[b, h, s AS t, u] GROUP BY b, h, s, u)
SELECT x + sum(ctx * wo) FROM x, ctx, wo GROUP BY b, s, d;

CREATE OR REPLACE LAYER shared_experts(y[b, s, d])
  (b = 1, s = 4096, d = 2048, f = 1408, g = 2 * f, x = 64, k = 6, c = s * k / x, n = x * c)
  PARAMETER norm_gain[d] INIT ones, router[d, x] INIT normal(0, 0.02),
            gate[x, d, f] INIT normal(0, 0.02), up[x, d, f] INIT normal(0, 0.02), down[x, f, d] INIT normal(0, 0.02),
            sgate[d, g] INIT normal(0, 0.02), sup[d, g] INIT normal(0, 0.02), sdown[g, d] INIT normal(0, 0.02)
AS WITH
  z      AS (SELECT rms_norm(y) OVER (PARTITION BY b, s) * norm_gain FROM y, norm_gain),
  scores AS (SELECT softmax(sum(z * router)) OVER (PARTITION BY b, s) FROM z, router GROUP BY b, s, x),
  weight AS (SELECT top_k(scores, k) OVER (PARTITION BY b, s) FROM scores),
  place  AS (SELECT slot(top_k_positions(scores, k) OVER (PARTITION BY b, s), x, c) OVER (PARTITION BY b) FROM scores),
  sent   AS (SELECT sum(z) FROM z, place GROUP BY b, place AS n, d),
  hidden AS (SELECT silu(sum(sent * gate)) * sum(sent * up) FROM sent[b, n AS (x, c), d], gate, up GROUP BY b, x, c, f),
  done   AS (SELECT sum(hidden * down) FROM hidden, down GROUP BY b, x, c, d),
  mixed  AS (SELECT sum(weight * done) FROM weight, place JOIN done[b, (x, c) AS n, d] ON n = place GROUP BY b, s, d),
  sh     AS (SELECT silu(sum(z * sgate)) * sum(z * sup) FROM z, sgate, sup GROUP BY b, s, g),
  always AS (SELECT sum(sh * sdown) FROM sh, sdown GROUP BY b, s, d)
SELECT y + mixed + always FROM y, mixed, always;

CREATE MODEL deep
  (b = 1, s = 4096, d = 2048, h = 16, layers = 26, v = 102400)
  INPUT     tokens[b, s] OF int32, targets[b, s] OF int32
  PARAMETER embed[v, d] INIT normal(0, 0.02), norm_gain[d] INIT ones, head[d, v] INIT normal(0, 0.02)
AS WITH
  x      AS (SELECT embed FROM tokens JOIN embed ON v = tokens),
  a      AS (SELECT * FROM compressed_attention(x, h = h) AS first_attention),
  x      AS (SELECT * FROM gated_mlp(a, f = 10944) AS first_mlp),
  REPEAT layers TIMES x AS (
    WITH a AS (SELECT * FROM compressed_attention(x, h = h))
    SELECT * FROM shared_experts(a)),
  n      AS (SELECT rms_norm(x) OVER (PARTITION BY b, s) * norm_gain FROM x, norm_gain),
  logits AS (SELECT sum(n * head) FROM n, head GROUP BY b, s, v)
SELECT mean(cross_entropy(logits, targets) OVER (PARTITION BY b, s)) AS loss FROM logits, targets;
TRAIN deep ON pod WITH (b = 64, layers = 1, optimizer = sgd, memory_limit = 900 GiB, distribution = 'node=4: slice b;
gpu=8: slice h, x, f, v')
)";

// Only the square similarity matrix; rules merge its two losses.
constexpr std::string_view kSquare = R"(
CREATE MODEL sq (b = 1024, o = 512) INPUT x[b, o], y[b, o] PARAMETER w[o] INIT ones
AS WITH
  i AS (SELECT x * w FROM x, w),
  similar AS (SELECT sum(i * y) * 14.3 FROM i, y[b AS a, o] GROUP BY b, a)
SELECT mean(cross_entropy(similar, b) OVER (PARTITION BY b)) / 2 + mean(cross_entropy(similar, a) OVER (PARTITION BY a)) / 2
  AS loss FROM similar;
TRAIN sq ON pod WITH (distribution = 'node=4: slice o; gpu=8: slice b')
)";

// ResNet-50 with one block of each kind, for training. With all its blocks it is proven for
// inference.
constexpr std::string_view kResidual = R"(
CREATE MODEL residual (b = 1, c = 3, h = 224, w = 224, classes = 1000)
  INPUT image[b, c, h, w], label[b] OF int32
AS WITH
  x AS (SELECT max_pool(relu(stem), size => 3, stride => 2, padding => 1)
        FROM conv_bn(image, o = 64, r = 7, stride = 2, padding = 3) AS stem),
  x AS (SELECT * FROM projected_bottleneck(x, m = 64, o = 256) AS stage1_first),
  x AS (SELECT * FROM projected_bottleneck(x, m = 128, o = 512, stride = 2) AS stage2_first),
  REPEAT 2 TIMES x AS (SELECT * FROM bottleneck(x, m = 128, o = 512) AS stage2),
  pooled AS (SELECT mean(x) FROM x GROUP BY b, o),
  logits AS (SELECT * FROM dense(pooled, o = classes) AS fc)
SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label;
TRAIN residual ON pod WITH (b = 1024, distribution = 'node=4: slice b; gpu=8: slice b')
)";

// Every rank computes statistics of its own batch shard, and the small model must have enough
// samples: it is the smallest with one block.
constexpr std::string_view kResidualLocal = R"(
CREATE MODEL residual (b = 1, c = 3, h = 12, w = 12, classes = 10)
  INPUT image[b, c, h, w], label[b] OF int32
AS WITH
  x AS (SELECT relu(stem) FROM conv_bn(image, o = 64, stride = 2) AS stem),
  x AS (SELECT * FROM bottleneck(x, m = 32, o = 64) AS block),
  pooled AS (SELECT mean(x) FROM x GROUP BY b, o),
  logits AS (SELECT * FROM dense(pooled, o = classes) AS fc)
SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label;
TRAIN residual ON pod WITH (b = 1024, batch_norm = local, distribution = 'node=4: slice b; gpu=8: slice b')
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
    {"resnet50_infer", "INFER resnet50 ON pod WITH (distribution = 'node=4: slice o; gpu=8: slice o')"},
    {"dlrm", "TRAIN dlrm ON pod WITH (b = 4096, distribution = 'node=4: slice b; gpu=8: slice rows')"},
    {"gcn", "TRAIN gcn ON pod WITH (distribution = 'node=4: slice n; gpu=8: slice m')"},
    {"lstm",
     "TRAIN lstm ON pod WITH (b = 640, s = 5, layers = 1, distribution = 'node=4: slice b; gpu=8: slice o, "
     "v')"},
    {"mamba2",
     "TRAIN mamba2 ON pod WITH (b = 64, layers = 1, distribution = 'node=4: slice b; gpu=8: slice h')"},
    {"vit",
     "TRAIN vit_b16 ON pod WITH (b = 64, layers = 1, distribution = 'node=4: slice b; gpu=8: slice h, f')"},
    {"t5",
     "TRAIN t5_small ON pod WITH (b = 64, layers = 1, distribution = 'node=4: slice b; gpu=8: slice h, f, "
     "v')"},
};

const ProvenModel kTied[] = {
    {"square", kSquare},
    {"towers", kTowers},
    {"inverted", kInverted},
    {"pair", kPair},
    {"residual_local", kResidualLocal},
    {"latent", kLatent},
    {"residual", kResidual},
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

const auto kNameOf = [](const auto& model) { return std::string(model.param.name); };
INSTANTIATE_TEST_SUITE_P(Shipped, ProvenModels, ::testing::ValuesIn(every(5, kProven)), kNameOf);
INSTANTIATE_TEST_SUITE_P(Tied, ProvenModels, ::testing::ValuesIn(every(4, kTied)), kNameOf);

}  // namespace
}  // namespace weft::command
