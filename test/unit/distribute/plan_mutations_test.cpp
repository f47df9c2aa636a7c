// Plans of every shipped model, changed at random: the proof rejects each change, or it is harmless.
//
// The suite tries a few of each family. WEFT_PLAN_MUTATIONS=1000 tries about that many in all and
// prints those that it considered harmless.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "distribute_case.h"
#include "mutated_plan.h"
#include "two_steps.h"
#include "weft/parallel/distribute/proof_meshes.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/parallel/distribute/replay.h"
#include "weft/parallel/distribute/requirements.h"
#include "weft/parallel/distribute/shrink.h"
#include "weft/parallel/distribute/trace_origins.h"

namespace weft::distribute {
namespace {

struct MutatedModel {
  std::string_view name, sizes;  // "b=3 s=4": other sizes stay unchanged
  std::vector<std::string_view> distributions;
  int mutations = 4;         // per distribution
  bool learns = true;        // bert_large has no loss
  std::int64_t rows = 0;     // rows of images; unnamed sizes shrink to fit; 0: none shrink
  std::string_view at = "";  // other sizes to prove at as well; two sets: "b=5 s=3; b=4 s=6"
};

constexpr std::string_view kGpt = "b=3 s=4 d=6 h=3 layers=1 v=5 p=4";
const std::vector<std::string_view> kOfGpt = {"rank=2: slice b", "rank=3: slice h, f, v", "rank=2: slice s",
                                              "rank=2: slice b, shard parameters",
                                              "node=2: slice b, shard optimizer; gpu=2: slice h, f, v, s"};
const std::vector<std::string_view> kOfMlp = {
    "rank=2: slice b", "rank=3: slice f", "node=2: slice b; gpu=2: slice f",
    "rank=2: slice b, shard parameters", "rank=2: slice b, shard optimizer"};

constexpr int kMutations = 396;  // total

std::vector<MutatedModel> mutated_models() {
  return {
      {.name = "digits_mlp", .sizes = "b=5 p=4 f=7 c=3", .distributions = kOfMlp, .mutations = 24},
      {.name = "digits_conv",
       .sizes = "b=3 m=2 n=4 c=3",
       .distributions = {"rank=2: slice b", "rank=2: slice m, n", "rank=2: slice h"},
       .mutations = 12},
      {.name = "char_gpt", .sizes = kGpt, .distributions = kOfGpt, .mutations = 8},
      {.name = "gpt2", .sizes = kGpt, .distributions = kOfGpt},
      {.name = "gpt3_175b", .sizes = kGpt, .distributions = kOfGpt},
      {.name = "llama2_7b", .sizes = "b=3 s=4 d=6 h=2 f=5 layers=1 v=7", .distributions = kOfGpt, .rows = 32},
      {.name = "mixtral_8x7b",
       .sizes = "b=2 s=4 d=6 h=2 g=2 f=5 experts=4 layers=1 v=7",
       .distributions = {"rank=2: slice b", "rank=2: slice x, b", "rank=2: slice h, f, v"},
       .rows = 32},
      {.name = "bert_large",
       .sizes = "b=3 s=4 d=6 h=3 layers=1 v=5 p=6",
       .distributions = {"rank=2: slice b", "rank=3: slice h, f", "rank=2: slice s"},
       .mutations = 8,
       .learns = false},
      {.name = "alexnet",
       .sizes = "b=2",
       .distributions = {"rank=2: slice b, shard parameters", "rank=2: slice o"},
       .mutations = 2,
       .rows = 64},
      {.name = "vgg16", .sizes = "b=2", .distributions = {"rank=2: slice h"}, .mutations = 2, .rows = 32},
      {.name = "resnet50", .sizes = "b=2", .distributions = {"rank=2: slice o"}, .mutations = 2, .rows = 32},
      // As a large plan is proven: replayed at other sizes and on other meshes.
      {.name = "digits_mlp",
       .sizes = "b=8 p=6 f=12 c=5",
       .distributions = {"rank=4: slice b", "rank=4: slice f, b", "node=2: slice b; gpu=4: slice f"},
       .mutations = 24,
       .at = "b=5 p=3 f=4 c=6; b=4 p=5 f=7 c=3"},
      {.name = "char_gpt",
       .sizes = "b=4 s=6 d=8 h=4 layers=1 v=9",
       .distributions = {"rank=4: slice b", "rank=4: slice h, f, v"},
       .mutations = 12,
       .at = "b=5 s=3 d=12 h=6 layers=1 v=4; b=3 s=5 d=8 h=4 layers=1 v=7"},
  };
}

std::vector<language::SizeOverride> read_sizes(std::string_view text) {
  std::vector<language::SizeOverride> sizes;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size()), equals = text.find('=');
    sizes.push_back({std::string(text.substr(0, equals)),
                     std::stoll(std::string(text.substr(equals + 1, end - equals - 1))),
                     {}});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return sizes;
}

plan::Graph small_plan(const MutatedModel& model, std::string_view sizes) {
  language::Catalog catalog;
  language::load_shipped(catalog);
  language::syntax::Name name;
  name.text = model.name;
  language::BindOptions options;
  options.mode = model.learns ? language::Mode::train : language::Mode::infer;
  options.sizes = read_sizes(sizes);
  std::erase_if(options.sizes,
                [&](const auto& size) { return size.name == "p" && model.name == "char_gpt"; });
  plan::Graph graph = std::move(language::bind(catalog, name, options).value().graph);
  if (model.rows > 0)
    graph = shrink(graph, {.multiple = 2, .rows = model.rows, .columns = model.rows + 4}).value();
  if (!model.learns) return graph;
  return std::move(
      train::make_training_plan(std::move(graph), {.optimizer = train::Optimizer::adam}).value().graph);
}

// The plan as `weft plan prove` would parse it; nothing if it is rejected before the proof.
std::optional<DistributedPlan> read_back(const std::string& text, const plan::Graph& one_device,
                                         const plan::Mesh& mesh) {
  auto graph = plan::read(text, ops::all());
  if (!graph.ok()) return {};
  auto layouts = spmd::infer_layouts(*graph, mesh);
  if (!layouts.ok()) return {};
  auto origins = trace_origins(one_device, *graph);
  if (!origins.ok()) return {};
  return DistributedPlan{.graph = std::move(*graph),
                         .mesh = mesh,
                         .layouts = std::move(*layouts),
                         .opened = std::move(origins->opened),
                         .origin = std::move(origins->origin),
                         .own = std::move(origins->own)};
}

class PlanMutations : public ::testing::TestWithParam<MutatedModel> {
 protected:
  void SetUp() override {
    const MutatedModel& model = GetParam();
    one_device_ = small_plan(model, model.sizes);
    for (std::string_view at = model.at; !at.empty();) {
      const std::size_t end = std::min(at.find("; "), at.size());
      others_.push_back(small_plan(model, at.substr(0, end)));
      at.remove_prefix(std::min(end + 2, at.size()));
    }
  }

  // "" if the plan is proven, at its own sizes or at all other sizes.
  std::string refusal(const DistributedPlan& plan) const {
    if (others_.empty()) return why(prove(one_device_, plan));
    if (const auto broken = find_broken_requirement(one_device_, plan)) return broken->what;
    const std::vector<plan::Mesh> meshes = proof_meshes(plan);
    for (std::size_t i = 0; i < others_.size(); ++i) {
      const auto small = replay(plan, one_device_, others_[i], meshes[i % meshes.size()]);
      if (!small.ok()) return small.error().message;
      const ProveOptions options{.draws = 1, .in_floats = i == 0, .seed = i + 1};
      if (std::string wrong = why(prove(others_[i], *small, options)); !wrong.empty()) return wrong;
    }
    return "";
  }
  static std::string why(const Result<PlanProof>& proof) {
    return !proof.ok() ? proof.error().message : proof->holds() ? "" : proof->wrong->what;
  }

  plan::Graph one_device_;
  std::vector<plan::Graph> others_;
};

TEST_P(PlanMutations, AreRejectedOrHarmless) {
  const MutatedModel& model = GetParam();
  const char* all = std::getenv("WEFT_PLAN_MUTATIONS");
  const int times = all == nullptr ? 1 : (std::atoi(all) + kMutations - 1) / kMutations;
  int refused = 0, harmless = 0;
  for (const std::string_view text : model.distributions) {
    SCOPED_TRACE(text);
    const auto plan = distribute(one_device_, read_distribution(text).value(), {.smallest_share = 1});
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const std::string printed = plan::print(plan->graph);
    const auto unchanged = read_back(printed, one_device_, plan->mesh);
    ASSERT_TRUE(unchanged);
    ASSERT_EQ(refusal(*unchanged), "");
    ASSERT_EQ(TwoSteps(one_device_, *unchanged, 7).difference(), "");
    for (int seed = 1; seed <= model.mutations * times; ++seed) {
      MutatedPlan mutated(printed, static_cast<std::uint64_t>(seed) * 31 + Hasher().text(text).digest().low);
      const auto changed = read_back(mutated.run(), one_device_, plan->mesh);
      if (!changed) continue;
      if (!refusal(*changed).empty()) {
        ++refused;
        continue;
      }
      ++harmless;
      if (all != nullptr) fmt::print("{}, {}, harmless: {}\n", model.name, text, mutated.what());
      for (const std::uint64_t draw : {7, 8})
        EXPECT_EQ(TwoSteps(one_device_, *changed, draw).difference(), "")
            << "seed " << seed << ": " << mutated.what();
    }
  }
  RecordProperty("refused", refused);
  RecordProperty("harmless", harmless);
  // Many more are rejected for their types or layouts before the proof.
  if (model.mutations >= 8) EXPECT_GT(refused, 3);
}

INSTANTIATE_TEST_SUITE_P(EveryShippedModel, PlanMutations, ::testing::ValuesIn(mutated_models()),
                         [](const auto& model) {
                           return std::string(model.param.name) + (model.param.at.empty() ? "" : "_replayed");
                         });

}  // namespace
}  // namespace weft::distribute
