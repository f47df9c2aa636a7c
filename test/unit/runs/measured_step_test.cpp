// A measured step as a user states it, and as the logs of four trainers have it.
#include "weft/translate/runs/measured_step.h"

#include <gtest/gtest.h>

namespace weft::runs {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

std::string error_of(std::string_view text) {
  const auto step = read_stated_step(text);
  return step.ok() ? "" : step.error().message;
}

TEST(MeasuredStep, ReadsStatedValues) {
  const auto both = read_stated_step("step=1.31s, memory = 61GiB");
  ASSERT_TRUE(both.ok()) << both.error().message;
  EXPECT_DOUBLE_EQ(both->seconds, 1.31);
  EXPECT_DOUBLE_EQ(both->peak_bytes, 61 * kGiB);
  const auto rate = read_stated_step("tokens_per_second_per_gpu=4096");
  ASSERT_TRUE(rate.ok());
  EXPECT_DOUBLE_EQ(*rate->step_seconds(64, 2048, 8), 4);
  EXPECT_EQ(rate->step_seconds(64, 0, 8).error().message,
            "tokens per second need the tokens per example, which the configuration does not state");
}

TEST(MeasuredStep, RefusesWhatIsNotAStep) {
  EXPECT_EQ(error_of(""), "expected a measured step, memory or tokens_per_second_per_gpu, found ''");
  EXPECT_EQ(error_of("stp=1s"), "expected a measured step, memory or tokens_per_second_per_gpu, found 'stp'");
  EXPECT_EQ(error_of("step"), "expected = and a value after step");
  EXPECT_EQ(error_of("step=1.3"), "step must be a time, found a plain number");
  EXPECT_EQ(error_of("step=1GiB"), "step must be a time, found a size in bytes");
  EXPECT_EQ(error_of("step=0s"), "step must be positive, found 0");
  EXPECT_EQ(error_of("step=-2s"), "step must be positive, found -2");
  EXPECT_EQ(error_of("step=nan s"), "step: expected a number with a unit such as 40 GiB, found 'nan s'");
  EXPECT_EQ(error_of("step=1s,step=1s"), "step is given twice");
  EXPECT_EQ(error_of("step=1s,"), "expected a measured step, memory or tokens_per_second_per_gpu, found ''");
  EXPECT_EQ(error_of("step=1s, tokens_per_second_per_gpu=2"),
            "expected step or tokens_per_second_per_gpu, found both");
}

MeasuredStep read_log(std::string_view text) {
  auto read = read_trainer_log(text, "run.log");
  EXPECT_TRUE(read.ok()) << read.error().message;
  return read.ok() ? *std::move(read) : MeasuredStep();
}

// The first steps compile: they do not count.
TEST(MeasuredStep, ReadsMegatronsLog) {
  const MeasuredStep step = read_log(
      " iteration 1/ 500 | consumed samples: 64 | elapsed time per iteration (ms): 52345.6 | learning rate: "
      "1E-4\n"
      "[Rank 0] (after 1 iterations) memory (MB) | allocated: 20480.0 | max allocated: 40960.0 | reserved: "
      "50000.0 "
      "| max reserved: 51200.0\n"
      " iteration 2/ 500 | elapsed time per iteration (ms): 9000.0 | lm loss: 1.0\n"
      " iteration 3/ 500 | elapsed time per iteration (ms): 1330.0 | lm loss: 1.0\n"
      " iteration 4/ 500 | elapsed time per iteration (ms): 1310.0 | lm loss: 1.0\n"
      " iteration 5/ 500 | elapsed time per iteration (ms): 1300.0 | lm loss: 1.0\n"
      " iteration 6/ 500 | elapsed time per iteration (ms): 1320.0 | lm loss: 1.0\n");
  EXPECT_EQ(step.trainer, "Megatron-LM");
  EXPECT_EQ(step.steps, 3);
  EXPECT_DOUBLE_EQ(step.seconds, 1.31);
  EXPECT_DOUBLE_EQ(step.peak_bytes, 40 * kGiB);
}

TEST(MeasuredStep, ReadsTorchtitansLogInColours) {
  const MeasuredStep step = read_log(
      "[titan] - INFO - \x1b[31mstep:  1  \x1b[32mloss: 12.2  \x1b[33mmemory: 47.00GiB(59.3%)  "
      "\x1b[34mtps: 432  \x1b[35mmfu: 2.1%\x1b[39m\n"
      "[titan] - INFO - \x1b[31mstep: 10  \x1b[32mloss:  8.1  \x1b[33mmemory: 47.51GiB(59.98%)  "
      "\x1b[34mtps: 5,432  \x1b[35mmfu: 20.1%\x1b[39m\n");
  EXPECT_EQ(step.trainer, "torchtitan");
  EXPECT_EQ(step.steps, 1);
  EXPECT_DOUBLE_EQ(step.tokens_per_second_per_gpu, 5432);
  EXPECT_DOUBLE_EQ(step.peak_bytes, 47.51 * kGiB);
}

TEST(MeasuredStep, ReadsDeepSpeedsLog) {
  const MeasuredStep step = read_log(
      "[INFO] [timer.py:260:stop] epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=12.1, "
      "CurrSamplesPerSec=12.5, MemAllocated=4.3GB, MaxMemAllocated=12.0GB\n");
  EXPECT_EQ(step.trainer, "DeepSpeed");
  EXPECT_DOUBLE_EQ(*step.step_seconds(50, 0, 8), 4);
  EXPECT_DOUBLE_EQ(step.peak_bytes, 12 * kGiB);
  EXPECT_DOUBLE_EQ(
      read_log("steps: 10 loss: 1.2 iter time (s): 0.5 samples/sec: 64.000\n").examples_per_second, 64);
}

TEST(MeasuredStep, ReadsNanotronsLog) {
  const MeasuredStep step = read_log(
      "[INFO|DP=0] iteration: 10 / 100 | consumed_tokens: 10.5M | elapsed_time_per_iteration_ms: 1.31K | "
      "tokens_per_sec: 800K | tokens_per_sec_per_gpu: 100K | lm_loss: 11.2\n"
      "[INFO|DP=0]  Memory usage: 5012.36MiB. Peak allocated 7168.00MiB. Peak reserved: 8008.00MiB\n");
  EXPECT_EQ(step.trainer, "Nanotron");
  EXPECT_DOUBLE_EQ(step.seconds, 1.31);
  EXPECT_DOUBLE_EQ(step.peak_bytes, 7 * kGiB);
}

TEST(MeasuredStep, RefusesOtherText) {
  for (const std::string_view text :
       {"", "loss: 1.0\n", "elapsed time per iteration (ms): soon\n", "tps: -\n", "tps: 0\n", "\x1b["})
    EXPECT_EQ(read_trainer_log(text, "run.log").error().message,
              "run.log: expected a line with the time of a step, found none")
        << text;
}

}  // namespace
}  // namespace weft::runs
