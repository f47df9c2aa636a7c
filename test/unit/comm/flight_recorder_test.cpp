// The last calls of a rank: what is recorded, kept and printed.

#include "weft/communication/comm/flight_recorder.h"

#include <gtest/gtest.h>

namespace weft::comm {
namespace {

Flight flight_of(std::uint64_t call, std::string_view algorithm = "direct") {
  Flight flight;
  flight.call = call;
  flight.group = 7;
  flight.kind = Kind::all_reduce;
  flight.count = 64;
  flight.stage = Stage::running;
  flight.began_at = flight.changed_at = static_cast<std::int64_t>(1000 + call);
  set_algorithm(flight, algorithm);
  return flight;
}

TEST(FlightRecorder, KeepsTheLatestOldestFirst) {
  FlightRecorder recorder;
  EXPECT_TRUE(recorder.read().empty());
  constexpr std::uint64_t kCalls = FlightRecorder::kFlights + 10;
  for (std::uint64_t call = 0; call < kCalls; ++call) EXPECT_EQ(recorder.record(flight_of(call)), call);
  const auto flights = recorder.read();
  ASSERT_EQ(flights.size(), FlightRecorder::kFlights);
  for (std::size_t i = 0; i < flights.size(); ++i) {
    EXPECT_EQ(flights[i].call, 10 + i);
    EXPECT_EQ(flights[i].began_at, static_cast<std::int64_t>(1010 + i));
    EXPECT_EQ(flights[i].group, 7u);
  }
}

// Unchanged words are not written again, but the flight still counts as a new one.
TEST(FlightRecorder, ReadsAFlightEqualToTheOneItReplaces) {
  FlightRecorder recorder;
  for (int round = 0; round < 3; ++round)
    for (std::size_t i = 0; i < FlightRecorder::kFlights; ++i) recorder.record(flight_of(5));
  EXPECT_EQ(recorder.read().size(), FlightRecorder::kFlights);
  Flight other = flight_of(6, "direct two-shot");
  other.kind = Kind::broadcast;
  recorder.record(other);
  const Flight last = recorder.read().back();
  EXPECT_EQ(last.call, 6u);
  EXPECT_EQ(last.kind, Kind::broadcast);
  EXPECT_STREQ(last.algorithm.data(), "direct two-shot");
}

TEST(FlightRecorder, ReportsProgress) {
  FlightRecorder recorder;
  Flight queued = flight_of(0, "");
  queued.stage = Stage::queued;
  const std::uint64_t first = recorder.record(queued);
  recorder.begin(first, "all_reduce_ring");
  EXPECT_EQ(recorder.read().front().stage, Stage::running);
  EXPECT_STREQ(recorder.read().front().algorithm.data(), "all_reduce_ring");
  recorder.update(first, Stage::running, 3, 8, 2);
  const Flight flight = recorder.read().front();
  EXPECT_EQ(flight.pieces_done, 3);
  EXPECT_EQ(flight.pieces, 8);
  EXPECT_EQ(flight.waits_for, 2);
  const std::string table = print_flights(recorder.read(), ticks());
  EXPECT_NE(table.find("3/8"), std::string::npos) << table;
  EXPECT_NE(table.find("rank 2"), std::string::npos) << table;

  const std::uint64_t second = recorder.record(flight_of(1));
  recorder.finish_quick(second);
  EXPECT_EQ(recorder.read().back().stage, Stage::done);
}

TEST(FlightRecorder, DoesNotUpdateOverwrittenFlights) {
  FlightRecorder recorder;
  const std::uint64_t old = recorder.record(flight_of(0));
  for (std::uint64_t call = 1; call <= FlightRecorder::kFlights; ++call) recorder.record(flight_of(call));
  recorder.update(old, Stage::failed, 1, 1, 1);
  for (const Flight& flight : recorder.read()) EXPECT_EQ(flight.stage, Stage::running);
}

TEST(FlightRecorder, TruncatesLongNames) {
  const std::string name(100, 'a');
  Flight flight;
  set_algorithm(flight, name);
  EXPECT_EQ(std::string_view(flight.algorithm.data()), name.substr(0, flight.algorithm.size() - 1));
  EXPECT_TRUE(has_algorithm(flight, name));
  EXPECT_FALSE(has_algorithm(flight, name.substr(0, 20)));
  EXPECT_FALSE(has_algorithm(flight, std::string(100, 'b')));
  set_algorithm(flight, "");
  EXPECT_TRUE(has_algorithm(flight, ""));
  EXPECT_FALSE(has_algorithm(flight, "a"));
}

}  // namespace
}  // namespace weft::comm
