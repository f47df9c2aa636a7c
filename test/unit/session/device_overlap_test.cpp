// How concurrent activities slow each other: every pair is measured, and a failure ends the
// measurement.
#include <atomic>
#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "distant_device.h"
#include "weft/runtime/measure/device_overlap.h"

namespace weft::measure {
namespace {

constexpr std::chrono::milliseconds kShort{5};

TEST(DeviceOverlap, MeasuresEveryPair) {
  std::atomic<int> computed = 0, moved = 0;
  const auto counting = [](std::string name, std::atomic<int>& count) {
    return Doing{std::move(name), [&count] {
                   ++count;
                   std::this_thread::sleep_for(std::chrono::microseconds(100));
                   return Status();
                 }};
  };
  const auto found = measure_overlap({counting("a", computed), counting("b", computed)},
                                     {counting("x", moved), counting("y", moved)}, kShort);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 4u);
  EXPECT_EQ((*found)[1].computing + (*found)[1].moving, "ay");
  EXPECT_EQ((*found)[2].computing + (*found)[2].moving, "bx");
  for (const Beside& pair : *found) {
    EXPECT_TRUE(std::isfinite(pair.computes) && pair.computes > 0);
    EXPECT_TRUE(std::isfinite(pair.moves) && pair.moves > 0);
  }
  // Alone once and with each of the two others, at least twice each.
  EXPECT_GE(computed.load(), 2 * 3 * 2);
  EXPECT_GE(moved.load(), 2 * (1 + 2) * 2);
}

TEST(DeviceOverlap, AFailureEndsTheMeasurement) {
  int times = 0;
  const Doing fine{"fine", [] { return Status(); }};
  const Doing fails{"fails", [&times]() -> Status {
                      if (++times < 3) return {};
                      return user_error("the copy engine is gone");
                    }};
  for (const bool computes : {true, false}) {
    times = 0;
    const auto found =
        computes ? measure_overlap({fails}, {fine}, kShort) : measure_overlap({fine}, {fails}, kShort);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().message, "the copy engine is gone");
  }
}

TEST(DeviceOverlap, ADeviceCopiesInBothDirections) {
  const auto moving = movements(std::make_shared<device::DistantDevice>());
  ASSERT_TRUE(moving.ok());
  ASSERT_EQ(moving->size(), 2u);
  for (const Doing& one : *moving) EXPECT_TRUE(one.once().ok()) << one.name;
}

}  // namespace
}  // namespace weft::measure
