// Runs weft on a machine with a fake GPU (fake_cuda/). Every fault must give exit code 2 and an
// error that names the cause. Weft must not fall back to another device.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "own_data.h"
#include "shell.h"
#include "temporary_folder.h"

namespace {

[[maybe_unused]] const auto* const own_data = testing::AddGlobalTestEnvironment(new weft::OwnData);

using weft::Outcome;

constexpr std::string_view kTrain =
    "TRAIN char_gpt ON GPU {} FROM '$text' STEPS 4 WITH (b = 2, s = 8, d = 8, h = 2, layers = 1, rules = "
    "false{})";

// Runs a statement with the fake libraries and an empty kernel cache.
Outcome run_on_fake(const std::string& fault, const std::string& statement, const std::string& then = "") {
  const weft::TemporaryFolder folder;
  const std::string text = folder / "text.txt";
  const std::string line = fmt::format(
      "text='{}'; for i in 1 2 3 4 5 6 7 8; do echo 'the quick brown fox jumps over the lazy dog'; done > "
      "$text;"
      "export XDG_CACHE_HOME='{}' WEFT_FAKE_CUDA='{}' LD_LIBRARY_PATH='{}'; weft='{}'\n"
      "{{ timeout 60 $weft -c \"{}\"{}; }} 2>&1",
      text, folder.path(), fault, WEFT_FAKE_CUDA_FOLDER, WEFT_PROGRAM, statement, then);
  return weft::run_shell(line);
}

Outcome train_on_fake(const std::string& fault, const std::string& with = "", const std::string& ranks = "",
                      const std::string& then = "") {
  return run_on_fake(fault, fmt::format(fmt::runtime(kTrain), ranks, with), then);
}

void expect_fault(const Outcome& found, const std::vector<std::string>& words) {
  EXPECT_EQ(found.exit_code, 2) << found.text;
  for (const std::string& word : words)
    EXPECT_NE(found.text.find(word), std::string::npos) << word << "\nin\n" << found.text;
}

TEST(FakeGpu, RunsWithoutFaults) {
  const Outcome found = train_on_fake("");
  EXPECT_EQ(found.exit_code, 0) << found.text;
}

TEST(FakeGpu, ReportsADriverThatFailsToStart) {
  expect_fault(train_on_fake("cuInit=100"),
               {"the NVIDIA driver failed to initialize: no CUDA-capable device is detected "
                "(code 100)",
                "run nvidia-smi for details"});
}

TEST(FakeGpu, ReportsAnOutdatedDriver) {
  expect_fault(train_on_fake("version=12040,nvrtc=13"),
               {"the NVIDIA driver supports CUDA 12.4, but libnvrtc is from CUDA 13.0", "a newer driver"});
  EXPECT_EQ(train_on_fake("version=13000,nvrtc=12").exit_code, 0);
}

TEST(FakeGpu, RejectsLowComputeCapability) {
  expect_fault(train_on_fake("capability=75"),
               {"cuda:0 has compute capability 7.5; 8.0 or more is needed", "leave out ON GPU"});
}

TEST(FakeGpu, ReportsAGpuInExclusiveUse) {
  expect_fault(
      train_on_fake("cuDevicePrimaryCtxRetain=46"),
      {"the GPU failed to make a context: CUDA-capable device(s) is/are busy or unavailable (code 46)",
       "another process uses the GPU in exclusive compute mode"});
}

TEST(FakeGpu, ReportsOutOfMemory) {
  expect_fault(train_on_fake("memory=20000"), {"needs", "of memory", "cuda:0 has 19.5 KiB available"});
  expect_fault(train_on_fake("cuMemAlloc_v2=2"), {"out of memory (code 2)"});
  expect_fault(train_on_fake("cuMemHostAlloc=2"), {"lock", "out of memory (code 2)"});
  expect_fault(train_on_fake("cublasCreate_v2=3"), {"start cuBLAS: cuBLAS returned out of memory"});
}

TEST(FakeGpu, ReportsKernelCompileErrors) {
  expect_fault(train_on_fake("nvrtcCompileProgram=6"),
               {"a kernel for the GPU does not compile", "NVRTC_ERROR_COMPILATION", "weft.cu(7): error"});
  expect_fault(train_on_fake("cuModuleLoadData=222"),
               {"load a kernel", "the driver is older than the CUDA toolkit"});
}

TEST(FakeGpu, ReportsAPoisonedContext) {
  expect_fault(train_on_fake("cuDevicePrimaryCtxRetain=700"),
               {"the GPU failed to make a context: an illegal memory access was encountered (code 700)",
                "restart the program"});
}

TEST(FakeGpu, ReportsFailedLaunches) {
  expect_fault(train_on_fake("cuLaunchKernel=1"), {"cuda:0", "failed to", "(code 1)"});
  expect_fault(
      train_on_fake("cublasGemmStridedBatchedEx=13"),
      {"rank 0 on cuda:0 (Fake H200) failed in step 1, in unit ", "cuBLAS returned an error (code 13)"});
}

TEST(FakeGpu, LocatesAKernelFault) {
  // In the first step each unit is launched separately, so the error names the unit.
  expect_fault(train_on_fake("fails_at=20"),
               {"rank 0 on cuda:0 (Fake H200) failed in step 1, in unit ", " of ",
                "an illegal memory access was encountered (code 700)", "restart the program"});
  // A later step is a single launch.
  expect_fault(train_on_fake("fails_at=170"),
               {"rank 0 on cuda:0 (Fake H200) failed in step ", "which is one launch, in one of the units ",
                "(code 700)", "serialize_kernels = true"});
  expect_fault(train_on_fake("fails_at=300", ", serialize_kernels = true"),
               {"failed in step ", ", in unit "});
}

TEST(FakeGpu, LocatesAKernelFaultAmongSeveralRanks) {
  EXPECT_EQ(train_on_fake("", "", "RANKS 2").exit_code, 0);
  expect_fault(train_on_fake("fails_at=60", "", "RANKS 2"),
               {"on cuda:0 (Fake H200) failed in step 1, in unit "});
  expect_fault(train_on_fake("fails_at=400", "", "RANKS 2"),
               {"on cuda:0 (Fake H200) failed in step ",
                "which is one launch for 2 ranks, in one of the units ", "serialize_kernels = true"});
  expect_fault(train_on_fake("fails_at=400", ", serialize_kernels = true", "RANKS 2"),
               {"failed in step ", ", in unit "});
}

// Selects the job by process ID: other jobs on this machine would otherwise be listed first.
TEST(FakeGpu, DoctorReportsAFailedJob) {
  const Outcome found = train_on_fake("fails_at=20", "", "",
                                      "; read process time < $XDG_CACHE_HOME/weft/flights/last; $weft doctor;"
                                      "$weft doctor $process; $weft doctor $process --format json;"
                                      "$weft doctor 1");
  for (const std::string word : {"the last process whose device failed, at 20", "rank 0 of 1, process ",
                                 "cuda:0 failed: rank 0 on cuda:0 (Fake H200) failed in step 1, in unit ",
                                 "1  unit after unit  failed", R"("answer":"rank 0 of 1, process )",
                                 "process 1 is not a rank of a job here"})
    EXPECT_NE(found.text.find(word), std::string::npos) << word << "\nin\n" << found.text;
}

TEST(FakeGpu, ReportsAHungKernel) {
  for (const std::string launch : {"20", "170"})
    expect_fault(train_on_fake("hangs_at=" + launch, ", device_timeout = 200 ms"),
                 {"rank 0 on cuda:0 (Fake H200) is stuck in step ", " unit", ": no progress for ",
                  "raise device_timeout"});
}

// Weights are uploaded through two staging buffers. The host refills one when the device has read
// it.
TEST(FakeGpu, ReportsAKernelThatHangsDuringWeightUpload) {
  const std::string infer =
      "TRAIN char_gpt FROM '$text' STEPS 1 WITH (b = 2, s = 8, d = 8, h = 2, layers = 1, rules = false);"
      "INFER char_gpt ON GPU FROM '$text' WITH (b = 2, s = 8, rules = false, device_timeout = 200 ms)";
  const Outcome fine = run_on_fake("", infer);
  EXPECT_EQ(fine.exit_code, 0) << fine.text;
  expect_fault(run_on_fake("hangs_at=1", infer), {"is stuck in step 1", ": no progress for "});
}

}  // namespace
