// A small version of each shipped model learns from data with a hidden rule: its loss falls.
#include <fstream>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "temporary_folder.h"
#include "thorough.h"
#include "weft/app/session/session.h"
#include "weft/base/random.h"

namespace weft::session {
namespace {

// One row of a table, drawn by a rule: numbers separated by commas.
using Draw = std::function<void(Random&, std::vector<double>& row)>;

struct SmallModel {
  std::string name, sizes;
  int steps = 60;
  double falls_to = 0.8;  // the last loss relative to the first
  Draw draw = {};         // none: a text
  int rows = 64;
  double learning_rate = 0.01;
};

void add_noise(Random& random, std::int64_t count, double mean, std::vector<double>& row) {
  for (std::int64_t i = 0; i < count; ++i) row.push_back(mean + 0.3 * (random.uniform() - 0.5));
}

// An image is bright or dark, and that is its label.
void image_and_label(Random& random, std::vector<double>& row) {
  const auto label = static_cast<double>(random.below(2));
  add_noise(random, 3 * 32 * 32, label, row);
  row.push_back(label);
}

// The left half is bright or dark, the right half the opposite, and so are the labels of the
// pixels.
void image_and_mask(Random& random, std::vector<double>& row) {
  const auto left = static_cast<double>(random.below(2));
  std::vector<double> mask;
  for (int at = 0; at < 16 * 16; ++at) mask.push_back(at % 16 < 8 ? left : 1 - left);
  for (int channel = 0; channel < 3; ++channel)
    for (const double pixel : mask) add_noise(random, 1, pixel, row);
  row.insert(row.end(), mask.begin(), mask.end());
}

// An image of four patches, three of them bright or dark in two of the colours, and a text of three
// words, the second of which describes it.
void image_and_text(Random& random, std::vector<double>& row) {
  const auto kind = static_cast<int>(random.below(64));
  for (int at = 0; at < 3 * 16 * 16; ++at) {
    const int colour = at / 256, patch = at / 16 % 16 / 8 * 2 + at % 16 / 8;
    add_noise(random, 1, patch == 3 || colour == 2 ? 0 : (kind >> (patch + 3 * colour) & 1) * 2 - 1, row);
  }
  for (const double word : {1.0, kind + 2.0, 66.0}) row.push_back(word);
}

// The input is to be written again, shifted by one position.
void copied_text(Random& random, std::vector<double>& row) {
  std::vector<double> words;
  for (int i = 0; i < 6; ++i) words.push_back(static_cast<double>(2 + random.below(6)));
  row.insert(row.end(), words.begin(), words.end());
  row.push_back(0);
  row.insert(row.end(), words.begin(), words.end() - 1);
  row.insert(row.end(), words.begin(), words.end());
}

// Three numbers, two categories, and a click if the first category is even.
void click(Random& random, std::vector<double>& row) {
  add_noise(random, 3, 1, row);
  const auto first = static_cast<double>(random.below(10)),
             second = static_cast<double>(10 + random.below(10));
  row.insert(row.end(), {first, second, static_cast<double>(static_cast<int>(first) % 2 == 0)});
}

// Eight nodes in two rings of four: neighbours have the same label, but only one node of each ring
// shows its label.
void two_rings(Random&, std::vector<double>& row) {
  for (int node = 0; node < 8; ++node)
    for (int feature = 0; feature < 2; ++feature) row.push_back(node % 4 == 0 && feature == node / 4 ? 1 : 0);
  std::vector<double> source, target;
  for (int node = 0; node < 8; ++node)
    for (const int step : {1, 3}) {
      source.push_back(node);
      target.push_back(node / 4 * 4 + (node + step) % 4);
    }
  row.insert(row.end(), source.begin(), source.end());
  row.insert(row.end(), target.begin(), target.end());
  for (int node = 0; node < 8; ++node) row.push_back(node / 4);
}

const SmallModel kSmallModels[] = {
    {"llama3_8b", "b = 4, s = 16, d = 32, h = 2, g = 2, e = 8, f = 48, layers = 2, v = 256"},
    {"llama3_70b", "b = 4, s = 16, d = 32, h = 2, g = 4, e = 8, f = 48, layers = 1, v = 256"},
    {"deepseek_v2_lite",
     "b = 2, s = 16, d = 32, h = 2, l = 16, n = 8, r = 4, e = 8, f = 48, experts = 4, k = 2, expert = 16, "
     "shared = 32, layers = 2, v = 256"},
    {"mamba2", "b = 2, s = 16, d = 16, e = 8, n = 8, l = 4, layers = 1, v = 256"},
    {"lstm", "b = 4, s = 8, d = 24, layers = 2, v = 256", 120},
    {"t5_small", "b = 16, r = 6, s = 6, d = 16, h = 2, e = 8, f = 32, layers = 1, v = 9", 120, 0.9,
     copied_text, 256},
    {"vit_b16", "b = 16, height = 32, width = 32, d = 32, h = 2, layers = 1, classes = 2", 40, 0.8,
     image_and_label},
    {"clip_b32",
     "b = 8, height = 16, width = 16, r = 8, image_d = 32, image_h = 2, s = 3, v = 67, text_d = 32, "
     "text_h = 2, layers = 1, o = 16",
     200, 0.8, image_and_text, 128, 0.001},
    {"mobilenet_v2", "b = 8, h = 32, w = 32, classes = 2", 10, 0.9, image_and_label, 8, 0.001},
    {"unet", "b = 4, h = 16, w = 16, d = 4", 20, 0.8, image_and_mask},
    {"dlrm", "b = 32, m = 3, t = 2, rows = 20, e = 4, f1 = 8, f2 = 8, f3 = 8, g1 = 8, g2 = 8", 400, 0.8,
     click, 256},
    {"gcn", "n = 8, f = 2, m = 16, o = 8, c = 2", 150, 0.9, two_rings, 1},
};

class ModelsTrain : public ::testing::TestWithParam<SmallModel> {};

TEST_P(ModelsTrain, WithFallingLoss) {
  const SmallModel& model = GetParam();
  const TemporaryFolder folder;
  const std::string path = folder / (model.draw ? "rows.csv" : "poem.txt");
  std::ofstream file(path);
  if (model.draw) {
    Random random(5);
    for (int i = 0; i < model.rows; ++i) {
      std::vector<double> row;
      model.draw(random, row);
      file << fmt::format("{}\n", fmt::join(row, ","));
    }
  } else {
    for (int i = 0; i < 50; ++i) file << "the warp is still, the weft goes to and fro; ";
  }
  file.close();
  Session session;
  session.format = Format::json;
  const Reply reply =
      session.execute(fmt::format("TRAIN {} FROM '{}' STEPS {} WITH ({}, learning_rate = {}, seed = 3)",
                                  model.name, path, model.steps, model.sizes, model.learning_rate));
  ASSERT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  const auto trained = nlohmann::json::parse(reply.output);
  EXPECT_LT(trained["last_loss"].get<double>(), model.falls_to * trained["first_loss"].get<double>())
      << reply.output;
}

INSTANTIATE_TEST_SUITE_P(Shipped, ModelsTrain, ::testing::ValuesIn(every(3, kSmallModels)),
                         [](const auto& model) { return model.param.name; });

}  // namespace
}  // namespace weft::session
