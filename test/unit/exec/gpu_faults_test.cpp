// Kernels that trap or hang on this machine's GPU, each in a separate process, because the GPU
// context is lost. Skipped without a GPU.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "execution_case.h"
#include "weft/communication/comm/gpu/gpu_launch.h"
#include "weft/device/cuda/gpu.h"
#include "weft/device/cuda/launch.h"
#include "weft/runtime/exec/rank.h"

namespace weft::exec {
namespace {

// A GPU on which one unit's kernel has faulty source from some launch on.
class BrokenGpu final : public device::Device {
 public:
  BrokenGpu(std::shared_ptr<device::cuda::Gpu> gpu, std::size_t unit, std::string text)
      : gpu_(std::move(gpu)), unit_(unit), text_(std::move(text)) {}

  std::string name() const override { return gpu_->name(); }
  std::string model() const override { return gpu_->model(); }
  bool host_accessible() const override { return false; }
  std::int64_t available_memory() const override { return gpu_->available_memory(); }
  Result<std::unique_ptr<device::Memory>> allocate(std::int64_t bytes) override {
    return gpu_->allocate(bytes);
  }
  Result<std::unique_ptr<device::HostMemory>> allocate_host(std::int64_t bytes) override {
    return gpu_->allocate_host(bytes);
  }
  Result<std::unique_ptr<device::Stream>> make_stream(const device::StreamOptions& options) override {
    return gpu_->make_stream(options);
  }
  Result<std::unique_ptr<device::Event>> make_event() override { return gpu_->make_event(); }
  Result<std::unique_ptr<device::Kernel>> make_kernel(const program::Program& program,
                                                      const program::Unit& unit,
                                                      device::Address memory) override {
    if (&unit != &program.units.at(unit_)) return gpu_->make_kernel(program, unit, memory);
    WEFT_TRY(function, gpu_->function(text_, "weft_fault"));
    WEFT_TRY(passes, gpu_->allocate_host(64));
    passes_ = std::move(passes);
    *passes_left() = 0;
    const auto at = reinterpret_cast<device::cuda::DevicePointer>(passes_->bytes().data());
    return std::unique_ptr<device::Kernel>(
        std::make_unique<comm::gpu::GpuLaunch>("a fault", [=](const device::cuda::LaunchContext& place) {
          return device::cuda::Parameters().pointer(at).launch(place, function, {1, 1}, {1, 1});
        }));
  }
  void abandon() override {
    Device::abandon();
    gpu_->abandon();
  }
  // Number of launches of the unit before the fault.
  unsigned long long* passes_left() { return reinterpret_cast<unsigned long long*>(passes_->bytes().data()); }

 private:
  const std::shared_ptr<device::cuda::Gpu> gpu_;
  const std::size_t unit_;
  const std::string text_;
  std::unique_ptr<device::HostMemory> passes_;
};

constexpr std::string_view kTraps = R"(
extern "C" __global__ void weft_fault(volatile unsigned long long* passes) {
  if (*passes > 0) { *passes = *passes - 1; return; }
  asm volatile("trap;");
})";
constexpr std::string_view kNeverEnds = R"(
extern "C" __global__ void weft_fault(volatile unsigned long long* passes) {
  if (*passes > 0) { *passes = *passes - 1; return; }
  while (true) __nanosleep(1000000);
})";

plan::Graph gpt_of_three() {
  return training_plan(
      "char_gpt", {{"b", 2, {}}, {"s", 6, {}}, {"d", 8, {}}, {"h", 2, {}}, {"layers", 3, {}}, {"v", 12, {}}});
}
program::Program program_for_gpu() {
  return program::compile(std::make_shared<plan::Graph>(gpt_of_three()),
                          {.workers = 1, .any_float = true, .accelerated = true, .tiles = false})
      .value();
}
constexpr std::uint32_t kTask = 80;  // the task that fails
std::string of_task() {
  const program::Program program = program_for_gpu();
  EXPECT_GT(program.tasks.size(), 128u);
  return fmt::format("in unit {} of {} ", kTask + 1, program.tasks.size());
}

// Ends the process as the program would: prints the error and exits with its code.
[[noreturn]] void run_broken(std::string_view text, unsigned long long good_steps,
                             const FlightRecorderOptions& how) {
  auto gpu = device::cuda::Gpu::open(0, true);
  program::Program program = program_for_gpu();
  auto device = std::make_shared<BrokenGpu>(*gpu, program.tasks[kTask].unit, std::string(text));
  Status status;
  std::int64_t step = 0;
  {
    auto rank = Rank::start(std::move(program), {.device = device, .flights = how}).value();
    Random random(3);
    fill(*rank, random_sources(gpt_of_three(), 10, random));
    *device->passes_left() = good_steps;
    while (status.ok() && step < 10) {
      status = rank->step();
      ++step;
    }
  }
  if (status.ok()) std::_Exit(0);
  const Error& error = status.error();
  std::fprintf(stderr, "%s\n%s\n", error.message.c_str(), error.hint.c_str());
  std::fflush(stderr);
  if (device::is_any_abandoned()) std::_Exit(static_cast<int>(error.fault));
  std::exit(static_cast<int>(error.fault));
}

class GpuFaults : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (const auto driver = device::cuda::driver(); !driver.ok()) GTEST_SKIP() << "this machine has no GPU";
  }
};

TEST_F(GpuFaults, AKernelThatTrapsInTheFirstStep) {
  EXPECT_EXIT(run_broken(kTraps, 0, {}), testing::ExitedWithCode(2),
              "rank 0 on cuda:0 .* failed in step 1, " + of_task() + ".*code 7");
}

TEST_F(GpuFaults, AKernelThatTrapsInAGraph) {
  EXPECT_EXIT(run_broken(kTraps, 4, {}), testing::ExitedWithCode(2),
              "failed in step 5, which is one launch, in one of the units 65 to 128 of .*code 7");
}

TEST_F(GpuFaults, AKernelThatTrapsUnitByUnit) {
  EXPECT_EXIT(run_broken(kTraps, 4, {.unit_by_unit = true}), testing::ExitedWithCode(2),
              "failed in step 5, " + of_task() + ".*code 7");
}

TEST_F(GpuFaults, AKernelThatNeverEnds) {
  EXPECT_EXIT(run_broken(kNeverEnds, 4, {.timeout = 1.5}), testing::ExitedWithCode(2),
              "is stuck in step 5, which is one launch, in one of the units 65 to 128 of .*no progress for");
  EXPECT_EXIT(run_broken(kNeverEnds, 0, {.timeout = 1.5}), testing::ExitedWithCode(2),
              "is stuck in step 1, " + of_task() + ".*no progress for");
}

}  // namespace
}  // namespace weft::exec
