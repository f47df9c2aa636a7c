// The weft program on a machine whose GPU is pretended (fake_cuda/): every fault is an error that says what is wrong,
// with exit code 2, and nothing is done elsewhere instead.
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

// With libraries of its own and an empty cache of kernels.
Outcome say_to_pretended(const std::string& fault, const std::string& statement,
                         const std::string& then = "") {
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

Outcome on_pretended(const std::string& fault, const std::string& with = "", const std::string& ranks = "",
                     const std::string& then = "") {
  return say_to_pretended(fault, fmt::format(fmt::runtime(kTrain), ranks, with), then);
}

void expect_fault(const Outcome& found, const std::vector<std::string>& words) {
  EXPECT_EQ(found.exit_code, 2) << found.text;
  for (const std::string& word : words)
    EXPECT_NE(found.text.find(word), std::string::npos) << word << "\nin\n" << found.text;
}

TEST(PretendedGpu, RunsWhereNothingFails) {
  const Outcome found = on_pretended("");
  EXPECT_EQ(found.exit_code, 0) << found.text;
}

TEST(PretendedGpu, ADriverThatDoesNotStart) {
  expect_fault(on_pretended("cuInit=100"),
               {"the NVIDIA driver does not start: no CUDA-capable device is detected "
                "(code 100)",
                "run nvidia-smi for details"});
}

TEST(PretendedGpu, ADriverThatIsOlderThanTheToolkit) {
  expect_fault(on_pretended("version=12040,nvrtc=13"),
               {"the NVIDIA driver is made for CUDA 12.4, and libnvrtc is CUDA 13.0's", "a newer driver"});
  EXPECT_EQ(on_pretended("version=13000,nvrtc=12").exit_code, 0);
}

TEST(PretendedGpu, AComputeCapabilityThatIsTooLow) {
  expect_fault(on_pretended("capability=75"),
               {"cuda:0 has compute capability 7.5; 8.0 or more is needed", "leave out ON GPU"});
}

TEST(PretendedGpu, AGpuThatAnotherProcessHas) {
  expect_fault(
      on_pretended("cuDevicePrimaryCtxRetain=46"),
      {"the GPU failed to make a context: CUDA-capable device(s) is/are busy or unavailable (code 46)",
       "another process uses the GPU in exclusive compute mode"});
}

TEST(PretendedGpu, TooLittleMemory) {
  expect_fault(on_pretended("memory=20000"), {"needs", "of memory", "cuda:0 has 19.5 KiB available"});
  expect_fault(on_pretended("cuMemAlloc_v2=2"), {"out of memory (code 2)"});
  expect_fault(on_pretended("cuMemHostAlloc=2"), {"lock", "out of memory (code 2)"});
  expect_fault(on_pretended("cublasCreate_v2=3"), {"start cuBLAS: cuBLAS returned out of memory"});
}

TEST(PretendedGpu, AKernelThatDoesNotCompile) {
  expect_fault(on_pretended("nvrtcCompileProgram=6"),
               {"a kernel for the GPU does not compile", "NVRTC_ERROR_COMPILATION", "weft.cu(7): error"});
  expect_fault(on_pretended("cuModuleLoadData=222"),
               {"load a kernel", "the driver is older than the CUDA toolkit"});
}

TEST(PretendedGpu, AContextThatIsPoisoned) {
  expect_fault(on_pretended("cuDevicePrimaryCtxRetain=700"),
               {"the GPU failed to make a context: an illegal memory access was encountered (code 700)",
                "restart the program"});
}

TEST(PretendedGpu, ALaunchThatIsRefused) {
  expect_fault(on_pretended("cuLaunchKernel=1"), {"cuda:0", "failed to", "(code 1)"});
  expect_fault(
      on_pretended("cublasGemmStridedBatchedEx=13"),
      {"rank 0 on cuda:0 (Pretended H200) failed in step 1, in unit ", "cuBLAS returned an error (code 13)"});
}

TEST(PretendedGpu, AKernelThatTraps) {
  // In the first step, where each unit is told of.
  expect_fault(on_pretended("fails_at=20"),
               {"rank 0 on cuda:0 (Pretended H200) failed in step 1, in unit ", " of ",
                "an illegal memory access was encountered (code 700)", "restart the program"});
  // In a later one, which is one launch.
  expect_fault(on_pretended("fails_at=170"),
               {"rank 0 on cuda:0 (Pretended H200) failed in step ",
                "which is one launch, in one of the units ", "(code 700)", "serialize_kernels = true"});
  expect_fault(on_pretended("fails_at=300", ", serialize_kernels = true"), {"failed in step ", ", in unit "});
}

TEST(PretendedGpu, AKernelOfOneOfSeveralRanksThatTraps) {
  EXPECT_EQ(on_pretended("", "", "RANKS 2").exit_code, 0);
  expect_fault(on_pretended("fails_at=60", "", "RANKS 2"),
               {"on cuda:0 (Pretended H200) failed in step 1, in unit "});
  expect_fault(on_pretended("fails_at=400", "", "RANKS 2"),
               {"on cuda:0 (Pretended H200) failed in step ",
                "which is one launch for 2 ranks, in one of the units ", "serialize_kernels = true"});
  expect_fault(on_pretended("fails_at=400", ", serialize_kernels = true", "RANKS 2"),
               {"failed in step ", ", in unit "});
}

// By its process: other jobs may run here meanwhile, and the doctor tells of those first.
TEST(PretendedGpu, ADoctorReadsWhatAFailedJobLeft) {
  const Outcome found = on_pretended("fails_at=20", "", "",
                                     "; read process time < $XDG_CACHE_HOME/weft/flights/last; $weft doctor;"
                                     "$weft doctor $process; $weft doctor $process --format json;"
                                     "$weft doctor 1");
  for (const std::string word :
       {"the last process whose device failed, at 20", "rank 0 of 1, process ",
        "cuda:0 failed: rank 0 on cuda:0 (Pretended H200) failed in step 1, in unit ",
        "1  unit after unit  failed", R"("answer":"rank 0 of 1, process )",
        "process 1 is not a rank of a job here"})
    EXPECT_NE(found.text.find(word), std::string::npos) << word << "\nin\n" << found.text;
}

TEST(PretendedGpu, AKernelThatNeverEnds) {
  for (const std::string launch : {"20", "170"})
    expect_fault(on_pretended("hangs_at=" + launch, ", device_timeout = 200 ms"),
                 {"rank 0 on cuda:0 (Pretended H200) is stuck in step ", " unit", ": no progress for ",
                  "raise device_timeout"});
}

// Weights go through two pieces of memory that the host fills when the device has read them.
TEST(PretendedGpu, AKernelThatNeverEndsWhileWeightsAreOnTheirWay) {
  const std::string infer =
      "TRAIN char_gpt FROM '$text' STEPS 1 WITH (b = 2, s = 8, d = 8, h = 2, layers = 1, rules = false);"
      "INFER char_gpt ON GPU FROM '$text' WITH (b = 2, s = 8, rules = false, device_timeout = 200 ms)";
  const Outcome fine = say_to_pretended("", infer);
  EXPECT_EQ(fine.exit_code, 0) << fine.text;
  expect_fault(say_to_pretended("hangs_at=1", infer), {"is stuck in step 1", ": no progress for "});
}

}  // namespace
