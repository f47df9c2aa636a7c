// Plans with one error each: the proof rejects every one of them, at its own sizes and at the small
// sizes used for proofs.
#include "weft/app/command/plans.h"

#include <map>
#include <regex>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "temporary_folder.h"
#include "thorough.h"
#include "weft/base/file.h"

namespace weft::command {

using namespace session;
namespace {

constexpr std::string_view kMlp =
    "TRAIN digits_mlp ON LOCAL 2 WITH (b = 8, p = 6, f = 4, c = 5, optimizer = sgd, distribution = 'rank=2: "
    "slice f')";
constexpr std::string_view kLargeMlp =
    "TRAIN digits_mlp ON pod WITH (b = 4096, distribution = 'node=4: slice b, shard optimizer; gpu=8: slice "
    "f')";
constexpr std::string_view kInfer =
    "INFER digits_mlp ON pod WITH (b = 4096, distribution = 'node=4: slice b; gpu=8: slice f')";
constexpr std::string_view kSmallGpt =
    "TRAIN char_gpt ON LOCAL 2 WITH (b = 2, s = 4, d = 6, h = 2, v = 7, layers = 1, distribution = 'rank=2: "
    "slice h, f, v')";
constexpr std::string_view kGpt =
    "TRAIN char_gpt ON pod WITH (b = 64, layers = 1, distribution = 'node=4: slice b; gpu=8: slice h, f, v')";
constexpr std::string_view kAlexnet =
    "TRAIN alexnet ON LOCAL 4 WITH (b = 64, distribution = 'rank=4: slice b')";

struct WrongPlan {
  std::string_view name, of;
  const char *what, *with;  // the first match of `what` becomes `with`
  std::string_view says;    // in the error message
};

constexpr std::string_view kWrong = "is not the plan of one device";

const WrongPlan kWrongPlans[] = {
    // Values.
    {"ScaleDropped", kGpt, R"((= attention [^\n]*), divisor=8)", "$1", kWrong},
    {"ScaleDroppedInPlace", kSmallGpt, R"((= attention [^\n]*), divisor=[0-9.]+)", "$1", kWrong},
    {"ScaleDroppedBackward", kGpt, R"((= attention-gradient [^\n]*), divisor=8)", "$1", kWrong},
    {"MaskDropped", kGpt, R"((= attention [^\n]*), causal=1)", "$1", kWrong},
    {"MaskNarrow", kGpt, R"((= attention [^\n]*), causal=1)", "$1, causal=1, window=1", kWrong},
    {"MaskDroppedBackward", kGpt, R"((= attention-gradient [^\n]*), causal=1)", "$1", kWrong},
    {"KeysForValues", kGpt, R"(= attention (%\d+), (%\d+), %\d+ )", "= attention $1, $2, $2 ", kWrong},
    {"PeakNotPutBack", kGpt, R"(= add (%\d+), (%\d+) : (f32\[b=64,s=256\] @loss\n))", "= sub $2, $1 : $3",
     "in f64"},
    {"PeakNotPutBackInPlace", kSmallGpt, R"(= add (%\d+), (%\d+) : (f32\[b=2,s=4\] @loss\n))",
     "= sub $2, $1 : $3", "in f64"},
    {"LabelMaskDropped", kGpt, R"(= select (%\d+), (%\d+), %\d+ : (f32\[b=64,s=256\] @loss\n))",
     "= select $1, $2, $2 : $3", kWrong},
    {"LabelMaskDroppedInPlace", kSmallGpt, R"(= select (%\d+), (%\d+), %\d+ : (f32\[b=2,s=4\] @loss\n))",
     "= select $1, $2, $2 : $3", kWrong},
    {"LabelMaskDroppedBackward", kGpt,
     R"(= select (%\d+), (%\d+), %\d+ : (f32\[b=64,s=256,v=256\] @loss in backward\n%\d+ = (?!select|sub)))",
     "= select $1, $2, $2 : $3", kWrong},
    {"ClassesOfSmallSizes", kSmallGpt, R"(\{classes=\d+)", "{classes=5", kWrong},
    {"RowsOfARank", kGpt, R"((%\d+ = all-reduce (%\d+) \{axis=node\} : f32\[\] @loss\n%\d+ = maximum )%\d+)",
     "$1$2", "on mesh axis node"},
    {"RowsNotCounted", kMlp, R"(= maximum (%\d+), (%\d+) : f32\[\] @loss)", "= maximum $2, $2 : f32[] @loss",
     kWrong},
    {"MaxForSum", kMlp, R"(\{kind=sum, to=\[\]\}( : f32\[\] @loss\n%\d+ = div))", "{kind=max, to=[]}$1",
     kWrong},
    {"EpsilonOther", kGpt, R"((= layer-norm %\d+ \{over=\[d\])\})", "$1, epsilon=0.001}", kWrong},
    {"LearningRate", kMlp, R"(lr=0.001\})", "lr=0.01}", kWrong},
    {"AdamBeta", kLargeMlp, R"((= adam [^:{]*) : )", "$1 {beta1=0.95} : ", kWrong},
    {"GradientOfAnother", kSmallGpt, R"((= adam %\d+, )(%\d+)(, %\d+, )(%\d+))", "$1$2$3$2", kWrong},
    {"ReluToTanh", kInfer, "= relu ", "= tanh ", kWrong},
    {"DivisorOther", kInfer, R"(constant \{value=16,)", "constant {value=15,", kWrong},
    {"BiasTwice", kMlp, R"(= add (%\d+), %5 )", "= add $1, $1 ", kWrong},
    {"DropoutStream", kAlexnet, R"(\{rate=0.5, stream=1\})", "{rate=0.5, stream=2}", kWrong},
    {"DropoutStreamBackward", kAlexnet, R"(\{rate=0.5, stream=1\}( : f32\[b=64,o=4096\] @f1 in backward))",
     "{rate=0.5}$1", kWrong},
    {"DropoutRate", kAlexnet, R"(\{rate=0.5, stream=1\})", "{rate=0.4, stream=1}", "(dropout at f1)"},
    {"GatherFromElsewhere", kGpt, R"(= gather %0, (%\d+) \{along=v\})", "= gather %1, $1 {along=v}", kWrong},
    // Properties other than values.
    {"InitialDeviation", kMlp, "init=normal, b=0.18", "init=normal, b=0.5",
     "w1 is initialized as normal(0, 0.5)"},
    {"InitialKind", kGpt, "init=normal, b=0.02", "init=uniform, a=-0.02, b=0.02",
     "is initialized as uniform"},
    {"InitialBias", kInfer, R"((name=b1, type=f32\[f=128\]))", "$1, init=ones", "b1 is initialized as ones"},
    {"NextElsewhere", kMlp, R"x(return (.*)"next b2"=(%\d+))x",
     "%99 = slice-across $2 {axis=rank, along=c} in update\nreturn $1\"next b2\"=%99",
     "output next b2 is sliced(c) on rank, but b2 is replicated"},
    {"LossOfARank", kMlp, "return loss=%26",
     "%39 = slice-across %24 {axis=rank, along=b} in update\n%40 = reduce %39 {kind=mean, to=[], count=8} in "
     "update\nreturn loss=%40",
     "output loss is partial(sum) on rank: it must be replicated"},
    {"InputOfItsOwn", kInfer, R"((name=pixels, type=f32\[b=4096,p=64\], layout="))", "$1varying on gpu, ",
     "varying operands can only be combined with"},
    {"AddendsGiven", kInfer, R"((name=b2, type=f32\[c=10\]))", "$1, layout=\"partial(sum) on gpu\"",
     "partial(sum)"},
    {"OutputRenamed", kInfer, R"(return (loss=%\d+, )logits=(%\d+))",
     "%99 = rename $2 {from=[c], to=[z]}\nreturn $1logits=%99",
     "but f32[b=4096,c=10] in the plan of one device"},
    // Layouts.
    {"ExchangeLeftOut", kInfer, R"((= add )%12(, %5))", "$1%11$2", "on mesh axis gpu"},
    {"HaloTooNarrow", "TRAIN digits_conv ON LOCAL 2 WITH (b = 8, distribution = 'rank=2: slice h')",
     R"((= halo %\d+ \{axis=rank, along=h), before=1)", "$1", "must be sliced(h, 1, 1)"},
};

class WrongPlans : public ::testing::TestWithParam<WrongPlan> {};

// The correct plan. Planned once for all of its changed versions: planning takes longer than
// rejecting.
const std::string& right_plan(std::string_view statement) {
  static std::map<std::string_view, std::string> known;
  const auto [plan, fresh] = known.try_emplace(statement);
  if (!fresh) return plan->second;
  Session session;
  EXPECT_EQ(session.execute("SET prove = false").exit_code, ExitCode::ok);
  const Reply reply = session.execute("EXPLAIN (FORMAT plan) " + std::string(statement));
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  return plan->second = reply.output;
}

TEST_P(WrongPlans, AreRejected) {
  const WrongPlan& wrong = GetParam();
  const std::string& right = right_plan(wrong.of);
  std::string text =
      std::regex_replace(right, std::regex(wrong.what), wrong.with, std::regex_constants::format_first_only);
  ASSERT_NE(text, right) << "nothing was changed in\n" << right;
  // An added value gets the next number.
  if (const std::size_t at = text.find("%99"); at != std::string::npos) {
    const std::size_t last = text.rfind("\n%", at - 2);
    const std::string number = "%" + std::to_string(std::stoi(text.substr(last + 2)) + 1);
    text = std::regex_replace(text, std::regex("%99"), number);
  }
  TemporaryFolder folder;
  const std::string path = folder / "step.plan";
  ASSERT_TRUE(write_file_atomically(path, text).ok());
  const Reply reply = run(PlanProve{.what = {path}});
  EXPECT_EQ(reply.exit_code, ExitCode::user_error) << reply.output;
  EXPECT_NE(reply.complaint.find(wrong.says), std::string::npos) << reply.complaint;
}

INSTANTIATE_TEST_SUITE_P(OneByOne, WrongPlans, ::testing::ValuesIn(every(3, kWrongPlans)),
                         [](const auto& wrong) { return std::string(wrong.param.name); });

// Equal to the model at every small size but not at its own: what small sizes do not show is not
// proven.
TEST(WrongPlan, WrongOnlyAtLargeSizesIsNotProven) {
  const TemporaryFolder folder;
  const std::string model = folder / "ramp.weft", plan = folder / "ramp.plan";
  ASSERT_TRUE(write_file_atomically(model,
                                    "CREATE MODEL ramp (b = 4096, s = 4096) INPUT x[b, s] AS "
                                    "SELECT CASE WHEN s >= 1 THEN x ELSE 0 END AS y FROM x; INFER ramp")
                  .ok());
  constexpr std::string_view kPlan = R"(# mesh: rank=2
plan ramp
%0 = input {name=x, type=f32[b=4096,s=4096], layout="sliced(b) on rank"}
%1 = position {along=s, size=4096} @y
%2 = constant {value=1, dtype=i32} @y
%3 = greater-equal %1, %2 @y
%4 = constant {value=0, dtype=f32} @y
%5 = select %3, %0, %4 @y
)";
  const auto prove = [&](std::string_view rest) {
    EXPECT_TRUE(write_file_atomically(plan, std::string(kPlan) + std::string(rest)).ok());
    return run(PlanProve{.what = {plan}, .model = model});
  };
  EXPECT_EQ(prove("return y=%5\n").exit_code, ExitCode::ok) << prove("return y=%5\n").complaint;
  const Reply reply = prove(
      "%6 = constant {value=200, dtype=i32}\n%7 = mod %1, %6\n%8 = greater-equal %7, %2\n"
      "%9 = select %8, %0, %4\nreturn y=%9\n");
  EXPECT_EQ(reply.exit_code, ExitCode::user_error) << reply.output;
  EXPECT_NE(reply.complaint.find("uses integers in a way that a proof at small sizes does not cover"),
            std::string::npos)
      << reply.complaint;
}

TEST(WrongPlan, MustNotRoundAStateThatOneDeviceDoesNot) {
  const TemporaryFolder folder;
  const std::string path = folder / "step.plan";
  Session session;
  std::string text = session.execute("EXPLAIN (FORMAT plan) " + std::string(kMlp)).output;
  // The last node computes it, so the two added nodes get the next numbers.
  std::smatch found;
  ASSERT_TRUE(std::regex_search(text, found, std::regex("\"next b2\"=%([0-9]+)"))) << text;
  const int last = std::stoi(found[1]);
  text = std::regex_replace(
      text, std::regex(fmt::format("return (.*)\"next b2\"=%{}", last)),
      fmt::format("%{0} = cast %{2} {{to=bf16}} in update\n%{1} = cast %{0} {{to=f32}} in update\n"
                  "return $1\"next b2\"=%{1}",
                  last + 1, last + 2, last));
  ASSERT_TRUE(write_file_atomically(path, text).ok());
  const Reply reply = run(PlanProve{.what = {path}});
  EXPECT_NE(reply.complaint.find(
                fmt::format("%{} is bf16, a type that the plan of one device does not use", last + 1)),
            std::string::npos)
      << reply.output << reply.complaint;
}

}  // namespace
}  // namespace weft::command
