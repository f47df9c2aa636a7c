// Guarantees of every device: order within a stream, events between streams, memory and kernels. A
// new device is one more line in kDevices.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "distant_device.h"
#include "execution_case.h"
#include "weft/device/cpu/kernel.h"
#include "weft/device/device.h"
#include "weft/runtime/exec/rank.h"

namespace weft::device {
namespace {

template <class T>
T or_throw(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

struct Kind {
  std::string name;
  std::shared_ptr<Device> (*open)();
};
const Kind kDevices[] = {
    {"cpu", [] { return or_throw(open_device("cpu")); }},
    {"distant", []() -> std::shared_ptr<Device> { return std::make_shared<DistantDevice>(); }},
};

class EveryDevice : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Stream> stream(StreamOptions options = {}) {
    return or_throw(device_->make_stream(options));
  }
  std::unique_ptr<Event> event() { return or_throw(device_->make_event()); }

  const std::shared_ptr<Device> device_ = GetParam().open();
};
INSTANTIATE_TEST_SUITE_P(Devices, EveryDevice, testing::ValuesIn(kDevices),
                         [](const auto& info) { return info.param.name; });

std::vector<std::byte> filled(std::size_t bytes, int with) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(with));
}

TEST_P(EveryDevice, MemoryStartsAsZeros) {
  const auto memory = or_throw(device_->allocate(10'000));
  const auto copies = stream();
  auto found = filled(10'000, 7);
  copies->copy_out(found, memory->address());
  ASSERT_TRUE(copies->synchronize().ok());
  EXPECT_EQ(found, filled(10'000, 0));
}

TEST_P(EveryDevice, CopiesInWithinAndOut) {
  const auto memory = or_throw(device_->allocate(3000));
  const auto pinned = or_throw(device_->allocate_host(1000));
  ASSERT_GE(pinned->bytes().size(), 1000u);
  std::ranges::fill(pinned->bytes(), std::byte{5});
  const auto copies = stream();
  auto found = filled(1000, 7);
  copies->copy_in(memory->address() + 1000, pinned->bytes().first(1000));
  copies->copy(memory->address() + 2000, memory->address() + 1000, 1000);
  copies->copy(memory->address() + 1000, memory->address(), 1000);  // zeros: after the copy before
  copies->copy_out(found, memory->address() + 2000);
  ASSERT_TRUE(copies->synchronize().ok());
  EXPECT_EQ(found, filled(1000, 5));
}

TEST_P(EveryDevice, MapsMemoryToTheHost) {
  const auto memory = or_throw(device_->allocate(64));
  ASSERT_TRUE(memory->address());
  std::byte* const here = device_->host(memory->address());
  ASSERT_EQ(here != nullptr, device_->host_accessible());
  if (here == nullptr) return;
  here[3] = std::byte{9};
  const auto copies = stream();
  auto found = filled(1, 0);
  copies->copy_out(found, memory->address() + 3);
  ASSERT_TRUE(copies->synchronize().ok());
  EXPECT_EQ(found[0], std::byte{9});
}

TEST_P(EveryDevice, CallsOnTheCallersThreadAreSynchronous) {
  const auto memory = or_throw(device_->allocate(64));
  const auto copies = stream({.on_caller = true});
  const auto given = filled(64, 3);
  auto found = filled(64, 0), later = filled(64, 0);
  copies->copy_in(memory->address(), given);
  copies->copy_out(found, memory->address());
  if (copies->on_caller()) EXPECT_EQ(found, given);
  ASSERT_TRUE(copies->synchronize().ok());
  EXPECT_EQ(found, given);
}

TEST_P(EveryDevice, AnUnrecordedEventIsDone) {
  const auto never = event();
  EXPECT_TRUE(never->is_done());
  EXPECT_TRUE(never->wait().ok());
  const auto waits = stream();
  waits->wait(*never);
  EXPECT_TRUE(waits->synchronize().ok());
}

TEST_P(EveryDevice, AnEventFollowsAllEarlierWork) {
  constexpr std::size_t kBytes = 1 << 20;
  const auto memory = or_throw(device_->allocate(kBytes));
  const auto copies = stream();
  const auto first = event(), last = event();
  for (int round = 1; round <= 20; ++round) {
    const auto given = filled(kBytes, round);
    auto found = filled(kBytes, 0);
    copies->record(*first);
    copies->copy_in(memory->address(), given);
    copies->copy_out(found, memory->address());
    copies->record(*last);
    ASSERT_TRUE(last->wait().ok());
    ASSERT_EQ(found, given) << round;
    EXPECT_TRUE(last->is_done());
    EXPECT_TRUE(first->is_done());
    EXPECT_GE(last->seconds_since(*first), 0);
  }
}

// One stream writes a value and the other copies it; neither may overtake the other.
TEST_P(EveryDevice, StreamsWaitForEachOther) {
  constexpr std::size_t kBytes = 256 << 10;
  constexpr int kRounds = 100;
  const auto memory = or_throw(device_->allocate(2 * kBytes));
  const auto writes = stream(), carries = stream();
  const auto written = event(), carried = event();
  std::vector<std::vector<std::byte>> given, found(kRounds, filled(kBytes, 255));
  for (int round = 0; round < kRounds; ++round) given.push_back(filled(kBytes, round));
  for (std::size_t round = 0; round < kRounds; ++round) {
    writes->wait(*carried);  // of the previous round
    writes->copy_in(memory->address(), given[round]);
    writes->record(*written);
    carries->wait(*written);
    carries->copy(memory->address() + kBytes, memory->address(), kBytes);
    carries->copy_out(found[round], memory->address() + kBytes);
    carries->record(*carried);
  }
  ASSERT_TRUE(carries->synchronize().ok());
  ASSERT_TRUE(writes->synchronize().ok());
  for (std::size_t round = 0; round < kRounds; ++round) ASSERT_EQ(found[round], given[round]) << round;
}

// A wait refers to the record at that time: a later record, which itself waits for the waiting
// stream, would never complete.
TEST_P(EveryDevice, AWaitIgnoresLaterRecords) {
  const auto a = stream(), b = stream();
  const auto event_of_a = event(), event_of_b = event();
  for (int round = 0; round < 50; ++round) {
    a->record(*event_of_a);
    b->wait(*event_of_a);
    b->record(*event_of_b);
    a->wait(*event_of_b);
    a->record(*event_of_a);
  }
  EXPECT_TRUE(event_of_a->wait().ok());
  EXPECT_TRUE(b->synchronize().ok());
}

TEST_P(EveryDevice, DestroyingAStreamWaitsForItsWork) {
  constexpr std::size_t kBytes = 4 << 20;
  const auto memory = or_throw(device_->allocate(kBytes));
  const auto given = filled(kBytes, 1);
  auto found = filled(kBytes, 0);
  auto ends = stream();
  ends->copy_in(memory->address(), given);
  ends->copy_out(found, memory->address());
  ends.reset();
  EXPECT_EQ(found, given);
}

// Writes a number that depends on the step to every eighth pixel.
void feed(exec::Rank& rank, int step) {
  const auto& inputs = rank.program().inputs;
  const auto port = std::ranges::find_if(inputs, [](const auto& each) { return is_real(each.place.dtype); });
  const std::span<std::byte> pixels = rank.input(*port);
  const float value = 0.25f * static_cast<float>(step);
  for (std::size_t at = 0; at + sizeof value <= pixels.size(); at += 8 * sizeof value)
    std::memcpy(pixels.data() + at, &value, sizeof value);
}

// A training step by kernels: bitwise equal to one worker on the CPU, over several steps with
// changing inputs.
TEST_P(EveryDevice, ARankComputesTheSameAsTheCpu) {
  const plan::Graph graph = exec::training_plan("digits_mlp", {{"b", 8, {}}});
  Random random(4);
  const exec::Tensors sources = exec::random_sources(graph, 10, random);
  const auto compiled = [&] {
    return or_throw(program::compile(std::make_shared<plan::Graph>(graph.clone()), {}));
  };
  auto here = or_throw(exec::Rank::start(compiled(), {}));
  auto there = or_throw(exec::Rank::start(compiled(), {.device = device_, .workers = 1}));
  std::vector<std::byte> expected, found, kept;
  for (exec::Rank* rank : {here.get(), there.get()}) exec::fill(*rank, sources);
  for (int step = 0; step < 3; ++step) {
    if (step == 1) ASSERT_TRUE(there->keep(kept).ok());
    for (exec::Rank* rank : {here.get(), there.get()}) {
      feed(*rank, step);
      ASSERT_TRUE(rank->step().ok());
    }
    ASSERT_TRUE(here->keep(expected).ok());
    ASSERT_TRUE(there->keep(found).ok());
    ASSERT_EQ(found, expected) << "step " << step;
    EXPECT_EQ(or_throw(there->number(there->program().outputs.front())),
              or_throw(here->number(here->program().outputs.front())));
  }
  // Restores the saved state and repeats, now with timing.
  ASSERT_TRUE(there->put_back(kept).ok());
  program::Timeline timeline;
  for (int step = 1; step < 3; ++step) {
    feed(*there, step);
    ASSERT_TRUE(there->step(timeline).ok());
  }
  ASSERT_TRUE(there->keep(found).ok());
  EXPECT_EQ(found, expected);
  ASSERT_EQ(timeline.tasks.size(), there->program().tasks.size());
  for (std::size_t t = 0; t < timeline.tasks.size(); ++t) {
    EXPECT_LE(timeline.tasks[t].begin, timeline.tasks[t].end);
    EXPECT_LE(timeline.tasks[t].end, timeline.seconds);
    for (const std::uint32_t wait : there->program().tasks[t].waits)
      EXPECT_LE(timeline.tasks[wait].end, timeline.tasks[t].begin);
  }
}

class NoMemory final : public cpu::Kernel {
 public:
  void run(const program::Task&, std::byte*) const override { throw std::bad_alloc(); }
};

// An error is reported late, by every wait that it concerns, and nothing runs after it.
TEST(Processor, ReportsErrorsToWaiters) {
  const auto device = or_throw(open_device("cpu"));
  for (const bool on_caller : {false, true}) {
    const auto memory = or_throw(device->allocate(8));
    const auto fails = or_throw(device->make_stream({.on_caller = on_caller}));
    const auto waits = or_throw(device->make_stream({})), stranger = or_throw(device->make_stream({}));
    const auto before = or_throw(device->make_event()), after = or_throw(device->make_event());
    const NoMemory kernel;
    const program::Task task;
    const auto given = filled(8, 1);
    auto found = filled(8, 0);
    fails->record(*before);
    fails->launch(kernel, task);
    fails->record(*after);
    fails->copy_in(memory->address(), given);
    waits->wait(*after);
    waits->copy_in(memory->address(), given);
    stranger->wait(*before);
    for (Stream* stream : {fails.get(), waits.get()}) {
      const Status status = stream->synchronize();
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().message, "out of memory");
      EXPECT_FALSE(stream->synchronize().ok());
    }
    EXPECT_TRUE(before->wait().ok());
    EXPECT_FALSE(after->wait().ok());
    stranger->copy_out(found, memory->address());
    EXPECT_TRUE(stranger->synchronize().ok());
    EXPECT_EQ(found, filled(8, 0)) << "copied after the error";
  }
}

TEST(OpenDevice, RejectsUnknownDevices) {
  EXPECT_EQ(or_throw(open_device("cpu"))->name(), "cpu");
  const auto unknown = open_device("abacus");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message, "unknown device: abacus");
}

}  // namespace
}  // namespace weft::device
