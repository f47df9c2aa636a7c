// weft/communication/comm/flight_recorder.h -- the last collectives of a rank, for diagnosing
// hangs.
//
//   call  what                        algorithm        state      pieces  waits for  for
//   4711  all_reduce sum f32 x 1 Mi   direct two-shot  running    12/64   rank 3     4.2 s
//
// Written by the thread that drives the operations, one at a time, without locks, fences or
// allocations. Read at any time by another thread (the watcher, for `weft doctor`), which skips
// entries that change while it reads them.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/communication/comm/call.h"

namespace weft::comm {

enum class Stage : std::uint8_t { queued, running, done, failed, cancelled };

std::string_view name(Stage stage);

// Counts at a constant rate and takes a few cycles to read: a system call is too slow for a call of
// 200 ns.
std::int64_t ticks();
double ticks_per_second();

// The fields that change while a call runs.
struct FlightProgress {
  std::int64_t pieces_done = 0, pieces = 0;
  std::int64_t changed_at = 0;  // ticks
  std::int32_t waits_for = -1;  // a rank of the group
  Stage stage = Stage::queued;
};

struct Flight : FlightProgress {
  std::uint64_t call = 0;  // number in its group
  std::uint64_t group = 0;
  std::uint64_t fingerprint = 0;  // if counts differ by rank; 0: that of call_of()
  std::int64_t count = 0;
  std::int64_t began_at = 0;  // ticks
  std::int32_t root = 0, peer = 0;
  Kind kind = Kind::barrier;
  ElementType type = ElementType::f32;
  ReduceOp op = ReduceOp::sum;
  Priority priority = Priority::normal;
  Purpose purpose = Purpose::itself;
  std::array<char, 35> algorithm = {};  // null-terminated, truncated if longer
};
static_assert(sizeof(Flight) % sizeof(std::uint64_t) == 0 &&
              sizeof(FlightProgress) % sizeof(std::uint64_t) == 0);

class FlightRecorder {
 public:
  static constexpr std::size_t kFlights = 256;

  // Overwrites the oldest entry. Returns the number to pass to update().
  std::uint64_t record(const Flight& flight);
  // Does nothing if the flight was overwritten in the meantime.
  void begin(std::uint64_t number, std::string_view algorithm);
  void update(std::uint64_t number, Stage stage, std::int64_t pieces_done, std::int64_t pieces,
              std::int32_t waits_for);

  // The call completed without a long wait: a single store.
  void finish_quick(std::uint64_t number);

  std::vector<Flight> read() const;  // oldest first

 private:
  static constexpr std::size_t kWords = sizeof(Flight) / sizeof(std::uint64_t);
  // A fence would wait until the stores of the previous call have reached the other cores, so there
  // is none. A checksum tells a reader that the words of a flight belong together. The progress
  // words are read one by one.
  struct Place {
    std::array<std::atomic<std::uint64_t>, kWords> words = {};
    std::atomic<std::uint64_t> checksum = 0;
  };
  bool is_kept(std::uint64_t number) const;
  static void write(Place& place, std::uint64_t number, const Flight& flight);

  std::array<Place, kFlights> places_ = {};
  std::atomic<std::uint64_t> next_{0};
};

Call call_of(const Flight& flight);  // without its buffers and counts
void set_algorithm(Flight& flight, std::string_view algorithm);
bool has_algorithm(const Flight& flight, std::string_view algorithm);  // as stored by set_algorithm()

// The table that `weft doctor` prints for a rank; `now` is in ticks.
std::string print_flights(const std::vector<Flight>& flights, std::int64_t now);

}  // namespace weft::comm
