// Plans as text: what EXPLAIN (FORMAT plan) prints parses back unchanged under any settings. For
// any changed text, `weft plan` answers with a plan, a verdict or a user error, never with a failed
// check.
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "mutated_plan.h"
#include "temporary_folder.h"
#include "thorough.h"
#include "weft/app/command/plans.h"
#include "weft/base/check.h"
#include "weft/base/file.h"
#include "weft/plan/graph/hash.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"

namespace weft::command {

using namespace session;
namespace {

// Settings that change what a plan computes, sends or keeps.
constexpr std::string_view kChoices[][6] = {
    {"", "schedule = cosine", "schedule = linear, warmup = 3", "warmup = 2",
     "schedule = step, schedule_every = 4", "schedule = cosine, warmup = 5, schedule_end = 0.1"},
    {"", "clip_norm = 1", "clip_norm = 0.5, post_validation = true", "clip_norm = 2", "", ""},
    {"", "precision = f16", "precision = bf16", "precision = f16, loss_scale = 1024", "", ""},
    {"", "accumulate = 2", "accumulate = 3", "", "", ""},
    {"optimizer = sgd", "optimizer = adam", "optimizer = adamw, weight_decay = 0.1",
     "optimizer = adamw, weight_decay_on = matrices", "optimizer = momentum",
     "optimizer = adam, beta1 = 0.8"},
    {"", "recompute = 'layers'", "rules = false", "rules = true", "", ""},
};

constexpr std::string_view kSpreads[] = {
    "distribution = 'rank=2: slice b'",
    "distribution = 'rank=2: slice f'",
    "distribution = 'rank=2: slice b, shard optimizer'",
    "distribution = 'rank=2: slice b, shard parameters'",
    "distribution = 'rank=2: slice b', codecs = 'gradients: int8 always'",
    "distribution = 'rank=2: slice b', codecs = 'gradients: int4 with feedback always'",
    "distribution = 'rank=2: slice b', codecs = 'gradients: bf16 always'",
    "distribution = 'rank=2: slice b, shard parameters', codecs = 'weights: int8 always, gradients: e5m2 "
    "always'",
    "distribution = 'rank=2: slice b', gradient_delay = 1",
    "distribution = 'rank=2: slice b', sync_every = 4",
    "distribution = 'stage=2: stage; micro=2'",
    "distribution = 'stage=2: stage; micro=4; schedule gpipe'",
};

// EXPLAIN's answer, or "" if these settings cannot be combined.
std::string explained(const std::string& with, std::string_view on) {
  Session session;
  const Reply reply = session.execute(fmt::format(
      "EXPLAIN (FORMAT plan) TRAIN digits_mlp {} WITH (b = 12, p = 4, f = 4, c = 3, prove = false{})", on,
      with));
  EXPECT_TRUE(reply.exit_code == ExitCode::ok || reply.exit_code == ExitCode::user_error) << reply.complaint;
  return reply.exit_code == ExitCode::ok ? reply.output : "";
}

std::string drawn_settings(Random& random) {
  std::string with;
  for (const auto& choice : kChoices)
    if (const std::string_view one = choice[random.below(std::size(choice))]; !one.empty())
      with += fmt::format(", {}", one);
  return with;
}

// "" if the text is a plan that prints back unchanged and, if its header names the model, is
// proven.
std::string trouble(const std::string& text, bool proves) {
  const auto graph = plan::read(text, ops::all());
  if (!graph.ok()) return graph.error().message;
  const std::string printed = plan::print(*graph);
  const auto again = plan::read(printed, ops::all());
  if (!again.ok()) return again.error().message;
  if (plan::print(*again) != printed || plan::structural_hash(*again) != plan::structural_hash(*graph))
    return "prints otherwise than it reads";
  std::string nodes;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (text[at] != '#') nodes += text.substr(at, std::min(text.find("  # place", at), end) - at) + "\n";
    at = end + 1;
  }
  if (nodes != printed) return "is printed otherwise:\n" + printed;
  if (!proves) return "";
  const Reply reply = run(PlanProve{.what = {text}});
  return reply.exit_code == ExitCode::ok ? "" : reply.complaint;
}

TEST(PlanText, OfOneDeviceParsesBackUnderAnySettings) {
  for (std::size_t which = 0; which < std::size(kChoices); ++which)
    for (const std::string_view one : kChoices[which]) {
      const std::string with = one.empty() ? "" : fmt::format(", {}", one);
      const std::string text = explained(with, "");
      ASSERT_FALSE(text.empty()) << with;
      EXPECT_EQ(trouble(text, false), "") << with;
    }
}

TEST(PlanText, OfRanksParsesBackAndIsProvenUnderAnySettings) {
  // Each learning rate schedule by itself, then random combinations of all settings.
  std::vector<std::string> settings;
  for (const std::string_view one : kChoices[0])
    settings.push_back(fmt::format("{}{}, {}", one.empty() ? "" : ", ", one, kSpreads[0]));
  for (const std::string_view spread : kSpreads)
    settings.push_back(fmt::format(", schedule = cosine, warmup = 2, {}", spread));
  Random random(41);
  for (int draw = 0; draw < thorough_or(400, 12); ++draw)
    settings.push_back(drawn_settings(random) +
                       fmt::format(", {}", kSpreads[random.below(std::size(kSpreads))]));
  int plans = 0;
  for (const std::string& with : settings) {
    const std::string text = explained(with, "ON LOCAL 2");
    if (text.empty()) continue;
    ++plans;
    EXPECT_EQ(trouble(text, true), "") << with << "\n" << text;
  }
  EXPECT_GT(plans, static_cast<int>(settings.size()) / 2);
}

// Cruder than MutatedPlan: tokens moved anywhere, numbers at the limits of their types, lines
// repeated or truncated.
class MutatedText {
 public:
  MutatedText(std::string text, std::uint64_t seed) : text_(std::move(text)), random_(seed) {}

  std::string run() {
    for (std::size_t changes = 1 + random_.below(3); changes > 0; --changes) change();
    return text_;
  }

 private:
  struct Token {
    std::size_t begin, size;
  };

  static bool in_token(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  }

  Token any_token() {
    std::size_t at = random_.below(text_.size());
    while (at > 0 && in_token(text_[at]) && in_token(text_[at - 1])) --at;
    std::size_t end = at + 1;
    if (in_token(text_[at]))
      while (end < text_.size() && in_token(text_[end])) ++end;
    return {at, end - at};
  }

  void change() {
    static constexpr std::string_view kTokens[] = {"0",
                                                   "-1",
                                                   "1",
                                                   "2147483648",
                                                   "9223372036854775807",
                                                   "-9223372036854775808",
                                                   "1e308",
                                                   "-1e-300",
                                                   "inf",
                                                   "nan",
                                                   "0.5",
                                                   "%0",
                                                   "%999999",
                                                   "[",
                                                   "]",
                                                   "{",
                                                   "}",
                                                   "\"",
                                                   ",",
                                                   "=",
                                                   ":",
                                                   "b",
                                                   "f",
                                                   "rank",
                                                   "sum",
                                                   "max",
                                                   "f32",
                                                   "f16",
                                                   "bool",
                                                   "i32",
                                                   "encode",
                                                   "decode",
                                                   "all-gather",
                                                   "all-reduce",
                                                   "reduce-scatter",
                                                   "all-to-all",
                                                   "addends",
                                                   "state",
                                                   "input",
                                                   "parameter",
                                                   "add",
                                                   "cast",
                                                   "in update",
                                                   "in backward",
                                                   "next w1",
                                                   "int8",
                                                   "int4",
                                                   "\n"};
    const Token token = any_token();
    switch (random_.below(6)) {
      case 0: text_.replace(token.begin, token.size, kTokens[random_.below(std::size(kTokens))]); return;
      case 1:
      case 2: {
        const Token other = any_token();
        text_.replace(token.begin, token.size, text_.substr(other.begin, other.size));
        return;
      }
      case 3: text_.erase(token.begin, token.size); return;
      case 4: {  // repeats or removes a line
        const std::size_t begin = text_.rfind('\n', token.begin) + 1, end = text_.find('\n', begin);
        if (end == std::string::npos) return;
        const std::string line = text_.substr(begin, end + 1 - begin);
        if (random_.below(2) == 0)
          text_.insert(begin, line);
        else
          text_.erase(begin, line.size());
        return;
      }
      default:
        if (random_.below(8) == 0) text_.resize(token.begin + 1);
    }
    if (text_.empty()) text_ = "\n";
  }

  std::string text_;
  Random random_;
};

class PlanTextMutations : public ::testing::TestWithParam<std::string_view> {
 protected:
  // The outcome, if it is neither an answer nor a user error.
  std::string failure(const std::string& text, const std::string& path) {
    try {
      const auto graph = plan::read(text, ops::all());
      if (!graph.ok() && graph.error().message.empty()) return "an error without a message";
      EXPECT_TRUE(write_file_atomically(path, text).ok());
      const Reply replies[] = {run(PlanProve{.what = {path}}), run(PlanShow{path}), run(PlanEstimate{path})};
      for (const Reply& reply : replies)
        if (reply.exit_code != ExitCode::ok && reply.exit_code != ExitCode::user_error)
          return fmt::format("exit {}: {}", static_cast<int>(reply.exit_code), reply.complaint);
    } catch (const InternalError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_P(PlanTextMutations, NeverFailACheck) {
  const TemporaryFolder folder;
  const std::string path = folder / "step.plan";
  Random random(7 + GetParam().size());
  for (int base = 0; base < thorough_or(12, 1); ++base) {
    const std::string with = (base == 0 ? std::string(", clip_norm = 1") : drawn_settings(random)) +
                             fmt::format(", {}", GetParam());
    const std::string text = explained(with, "ON LOCAL 2");
    ASSERT_TRUE(base > 0 || !text.empty()) << with;
    if (text.empty()) continue;
    for (std::uint64_t seed = 1; seed <= thorough_or(400u, 12u); ++seed) {
      const std::string changed =
          seed % 2 == 0 ? MutatedText(text, seed).run() : distribute::MutatedPlan(text, seed).run();
      ASSERT_EQ(failure(changed, path), "") << with << ", seed " << seed << "\n" << changed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EverySpread, PlanTextMutations, ::testing::ValuesIn(kSpreads),
                         [](const auto& spread) { return fmt::format("Spread{}", spread.index); });

}  // namespace
}  // namespace weft::command
