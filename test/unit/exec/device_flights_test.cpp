// A device that fails or hangs: what is reported, and by which rank.
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "distant_device.h"
#include "execution_case.h"
#include "weft/communication/transport/doctor.h"
#include "weft/runtime/exec/rank.h"

namespace weft::exec {
namespace {

using device::DistantDevice;
using device::DistantFault;

plan::Graph gpt(std::int64_t layers = 1) {
  return training_plan(
      "char_gpt",
      {{"b", 2, {}}, {"s", 6, {}}, {"d", 8, {}}, {"h", 2, {}}, {"layers", layers, {}}, {"v", 12, {}}});
}

struct Broken {
  Broken(const plan::Graph& graph, DistantFault fault, const FlightRecorderOptions& how = {})
      : device(std::make_shared<DistantDevice>(fault)) {
    auto program = program::compile(std::make_shared<plan::Graph>(graph.clone())).value();
    name = program::describe(program, program.units[fault.unit]);
    units = program.units.size();
    for (std::size_t i = 0; i < program.tasks.size(); ++i)
      if (program.tasks[i].unit == fault.unit) number = i + 1;
    tasks = program.tasks.size();
    rank = Rank::start(std::move(program), {.device = device, .flights = how}).value();
    Random random(3);
    fill(*rank, random_sources(graph, 10, random));
  }
  std::shared_ptr<DistantDevice> device;
  std::string name;  // of the unit
  std::size_t units = 0, number = 0, tasks = 0;
  std::unique_ptr<Rank> rank;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(DeviceFlightRecorder, TheFirstStepNamesTheFailedUnit) {
  for (const std::size_t unit : {std::size_t{0}, std::size_t{3}, std::size_t{17}}) {
    Broken broken(gpt(), {DistantFault::Kind::fails, unit}, {.rank = 2, .ranks = 4});
    const Status status = broken.rank->step();
    ASSERT_FALSE(status.ok());
    const Error& error = status.error();
    EXPECT_EQ(error.fault, Fault::world) << error.message;
    EXPECT_TRUE(error.message.starts_with("rank 2 on distant failed in step 1, ")) << error.message;
    EXPECT_TRUE(
        has(error.message, fmt::format("in unit {} of {} ({})", broken.number, broken.tasks, broken.name)))
        << error.message;
    EXPECT_TRUE(has(error.message, "a kernel trapped")) << error.message;
    // And on every later step, without a launch.
    EXPECT_EQ(broken.rank->step().error().message, error.message);
  }
}

TEST(DeviceFlightRecorder, ARecordedStepNamesTheStepAndTheRemainingUnits) {
  Broken broken(gpt(3), {DistantFault::Kind::fails, 80, /*good_launches=*/2});
  broken.rank->count_from(41);
  ASSERT_GT(broken.tasks, 128u);
  ASSERT_TRUE(broken.rank->step().ok());
  ASSERT_TRUE(broken.rank->step().ok());
  const Status status = broken.rank->step();
  ASSERT_FALSE(status.ok());
  const Error& error = status.error();
  EXPECT_TRUE(
      has(error.message, fmt::format("rank 0 on distant failed in step 43, which is one launch, in one of "
                                     "the units 65 to 128 of {} (",
                                     broken.tasks)))
      << error.message;
  EXPECT_TRUE(has(error.hint, "serialize_kernels = true")) << error.hint;
}

TEST(DeviceFlightRecorder, UnitByUnitNamesTheFailedUnitInAnyStep) {
  Broken broken(gpt(3), {DistantFault::Kind::fails, 80, /*good_launches=*/2}, {.unit_by_unit = true});
  ASSERT_TRUE(broken.rank->step().ok());
  ASSERT_TRUE(broken.rank->step().ok());
  const Status status = broken.rank->step();
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(has(status.error().message, fmt::format("failed in step 3, in unit {} of {} ({})",
                                                      broken.number, broken.tasks, broken.name)))
      << status.error().message;
  EXPECT_FALSE(has(status.error().hint, "serialize_kernels")) << status.error().hint;
}

TEST(DeviceFlightRecorder, UnitByUnitGivesEqualResults) {
  const plan::Graph graph = gpt();
  Broken at_once(graph, {}), one_by_one(graph, {}, {.unit_by_unit = true});
  for (int step = 0; step < 3; ++step)
    for (Rank* const rank : {at_once.rank.get(), one_by_one.rank.get()}) ASSERT_TRUE(rank->step().ok());
  const Tensors found = contents(*one_by_one.rank), wanted = contents(*at_once.rank);
  for (const auto& [name, tensor] : wanted) EXPECT_EQ(found.at(name).data, tensor.data) << name;
}

TEST(DeviceFlightRecorder, GivesUpOnAHang) {
  for (const int good : {0, 2}) {
    Broken broken(gpt(3), {DistantFault::Kind::never_ends, 80, good}, {.timeout = 0.05});
    for (int i = 0; i < good; ++i) ASSERT_TRUE(broken.rank->step().ok());
    const Status status = broken.rank->step();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().fault, Fault::world);
    EXPECT_TRUE(
        status.error().message.starts_with(fmt::format("rank 0 on distant is stuck in step {}, ", good + 1)))
        << status.error().message;
    EXPECT_TRUE(has(status.error().message, good == 0 ? broken.name : "in one of the units 65 to 128"))
        << status.error().message;
    EXPECT_TRUE(has(status.error().message, "no progress for")) << status.error().message;
    EXPECT_TRUE(broken.device->is_abandoned());
  }
}

TEST(DeviceFlightRecorder, ReportsAHangToDoctor) {
  Broken broken(gpt(), {DistantFault::Kind::never_ends, 3}, {.rank = 1, .ranks = 2});
  Status status;
  std::thread stepping([&] { status = broken.rank->step(); });
  std::string answer;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  do {
    const auto patients = transport::query_ranks(::getpid(), std::chrono::seconds(5));
    ASSERT_TRUE(patients.ok());
    for (const transport::RankReport& patient : *patients)
      if (patient.rank == 1 && patient.ranks == 2) answer = patient.answer;
  } while (!has(answer, "in unit 4 of") && std::chrono::steady_clock::now() < deadline);
  broken.device->abandon();  // the kernel returns
  stepping.join();
  EXPECT_TRUE(has(answer, "waits for distant in step 1 for ")) << answer;
  EXPECT_TRUE(has(answer, broken.name)) << answer;
  EXPECT_TRUE(has(answer, "unit after unit  running")) << answer;
  const auto later = transport::query_ranks(::getpid(), std::chrono::seconds(5));
  ASSERT_TRUE(later.ok());
}

}  // namespace
}  // namespace weft::exec
