// weft validate: every row of a table is estimated as it was run, or left out with a reason.

#include "weft/app/command/validate.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "temporary_folder.h"

namespace weft::command {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kRuns =
    "id,model,layers,hidden,heads,gpu,gpus,tp,pp,dp,zero,mbs,gbs,seq,stack,step_s,mem_gib,status\n"
    "fast,gpt,4,256,4,h100,2,1,1,2,0,2,8,128,weft,0.001,1,ok\n"
    "slow,gpt,4,256,4,h100,2,1,2,1,0,2,8,128,weft,0.01,1,ok\n"
    "died,gpt,4,256,4,h100,2,1,1,2,0,2,8,128,weft,,,oom\n"
    "odd,gpt,4,256,4,h900,2,1,1,2,0,2,8,128,weft,1,1,ok\n";

Validate asked(const TemporaryFolder& folder) {
  Validate request;
  request.files = {folder / "runs.csv"};
  std::ofstream(request.files.front()) << kRuns;
  request.half = Half::both;
  request.format = session::Format::json;
  return request;
}

TEST(Validate, EstimatesEachRowOrSaysWhyNot) {
  const TemporaryFolder folder;
  const session::Reply reply = run(asked(folder));
  ASSERT_EQ(reply.exit_code, session::ExitCode::ok) << reply.complaint;
  const Json file = Json::parse(reply.output)["files"][0];
  ASSERT_EQ(file["runs"].size(), 3u) << reply.output;
  for (const Json& one : file["runs"]) EXPECT_GT(one["predicted_seconds"].get<double>(), 0) << one;
  ASSERT_EQ(file["left_out"].size(), 1u);
  EXPECT_EQ(file["left_out"][0]["id"], "odd");
  EXPECT_EQ(file["left_out"][0]["why"], "unknown device: h900");
  EXPECT_EQ(file["verdicts"]["ran"], 2);
  EXPECT_EQ(file["verdicts"]["out_of_memory"], 1);
  EXPECT_EQ(file["time"]["runs"], 2);
}

// A step that the devices cannot compute, at their peak, was not measured so.
TEST(Validate, NamesStepsFasterThanThePeak) {
  const TemporaryFolder folder;
  Validate request = asked(folder);
  std::ofstream(request.files.front())
      << "id,model,layers,hidden,heads,gpu,gpus,mbs,gbs,seq,precision,stack,step_s\n"
         "ran,gpt,4,256,4,h100,2,2,8,128,bf16,weft,0.001\n"
         "typo,gpt,4,256,4,h100,2,2,8,128,bf16,weft,0.000001\n";
  const Json file = Json::parse(run(request).output)["files"][0];
  ASSERT_EQ(file["runs"].size(), 1u) << file;
  EXPECT_EQ(file["runs"][0]["id"], "ran");
  ASSERT_EQ(file["left_out"].size(), 1u);
  EXPECT_TRUE(file["left_out"][0]["why"].get<std::string>().starts_with("impossible: ")) << file;
}

// Two stages of two ranks each: a stage's peak is that of its fullest rank.
TEST(Validate, ComparesMemoryByStage) {
  const TemporaryFolder folder;
  Validate request = asked(folder);
  std::ofstream(request.files.front())
      << "id,model,layers,hidden,heads,gpu,gpus,pp,mbs,gbs,seq,stack,step_s,alloc_gib_by_rank\n"
         "staged,gpt,4,256,4,h100,4,2,2,8,128,weft,0.01,1;2;4;3\n";
  const Json one = Json::parse(run(request).output)["files"][0]["runs"][0];
  ASSERT_EQ(one["stages"].size(), 2u) << one;
  constexpr double kGiB = 1 << 30;
  EXPECT_EQ(one["stages"][0]["measured_bytes"], 2 * kGiB);
  EXPECT_EQ(one["stages"][1]["measured_bytes"], 4 * kGiB);
  for (const Json& stage : one["stages"]) EXPECT_GT(stage["predicted_bytes"].get<double>(), 0);
}

// A stack with a slow host bounds small models by its host's time.
TEST(Validate, FollowsTheStack) {
  const TemporaryFolder folder;
  Validate request = asked(folder);
  const Json own = Json::parse(run(request).output)["files"][0]["runs"];
  request.stack = "nanotron";
  const Json others = Json::parse(run(request).output)["files"][0]["runs"];
  ASSERT_EQ(own.size(), others.size());
  for (std::size_t i = 0; i < own.size(); ++i)
    EXPECT_GT(others[i]["predicted_seconds"].get<double>(),
              own[i]["predicted_seconds"].get<double>() + 0.004);
}

TEST(Validate, HalvesAreDisjoint) {
  const TemporaryFolder folder;
  Validate request = asked(folder);
  std::size_t rows = 0;
  for (const Half half : {Half::fitted, Half::unseen}) {
    request.half = half;
    const Json file = Json::parse(run(request).output)["files"][0];
    rows += file["runs"].size() + file["left_out"].size();
  }
  EXPECT_EQ(rows, 4u);
}

TEST(Validate, RejectsUnknownStacksAndFiles) {
  const TemporaryFolder folder;
  Validate request = asked(folder);
  request.stack = "megatronn";
  const Json file = Json::parse(run(request).output)["files"][0];
  EXPECT_TRUE(file["runs"].empty());
  EXPECT_EQ(file["left_out"].back()["why"], "unknown stack: megatronn");
  request.files = {folder / "none.csv"};
  EXPECT_EQ(run(request).exit_code, session::ExitCode::environment_error);
  request.files = {};
  EXPECT_EQ(run(request).exit_code, session::ExitCode::user_error);
}

}  // namespace
}  // namespace weft::command
