// weft/communication/comm/flight_recorder.h -- the last collectives of a rank, for the day it hangs.
//
//   call  group  what                        algorithm        state      pieces  waits for  since
//   4711      0  all_reduce sum f32 x 1 Mi   direct two-shot  running    12/64   rank 3     4.2 s
//
// Written by whoever runs the operations, one at a time, without a lock, a fence or an allocation; read at
// any time by another thread (the watcher, for `weft doctor`), which leaves out what changes under its eyes.
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

// Counts at a constant rate and costs a few cycles to read: a call of 200 ns has no time to ask the kernel.
std::int64_t ticks();
double ticks_per_second();

// What changes as a call goes on.
struct Course {
  std::int64_t pieces_done = 0, pieces = 0;
  std::int64_t changed_at = 0;  // ticks
  std::int32_t waits_for = -1;  // a rank of the group
  Stage stage = Stage::queued;
};

struct Flight : Course {
  std::uint64_t call = 0;  // number in its group
  std::uint64_t group = 0;
  std::uint64_t fingerprint = 0;  // of a call whose counts differ by rank; 0: that of call_of()
  std::int64_t count = 0;
  std::int64_t began_at = 0;  // ticks
  std::int32_t root = 0, peer = 0;
  Kind kind = Kind::barrier;
  ElementType type = ElementType::f32;
  ReduceOp op = ReduceOp::sum;
  Priority priority = Priority::normal;
  Purpose purpose = Purpose::itself;
  std::array<char, 35> algorithm = {};  // ends in 0, cut where it is longer
};
static_assert(sizeof(Flight) % sizeof(std::uint64_t) == 0 && sizeof(Course) % sizeof(std::uint64_t) == 0);

class FlightRecorder {
 public:
  static constexpr std::size_t kFlights = 256;

  // Takes the place of the oldest. The number is for update().
  std::uint64_t record(const Flight& flight);
  // Nothing where the flight was overwritten since.
  void begin(std::uint64_t number, std::string_view algorithm);
  void update(std::uint64_t number, Stage stage, std::int64_t pieces_done, std::int64_t pieces,
              std::int32_t waits_for);

  // It came to its end without a wait worth a word: one store instead of all that.
  void finish_quick(std::uint64_t number);

  std::vector<Flight> read() const;  // oldest first

 private:
  static constexpr std::size_t kWords = sizeof(Flight) / sizeof(std::uint64_t);
  // A fence would wait until the call before has reached the other ranks, so there is none. A checksum tells
  // a reader that the words of a flight belong together. The words of its course are read one by one.
  struct Place {
    std::array<std::atomic<std::uint64_t>, kWords> words = {};
    std::atomic<std::uint64_t> checksum = 0;
  };
  bool is_kept(std::uint64_t number) const;
  static void write(Place& place, std::uint64_t number, const Flight& flight);

  std::array<Place, kFlights> places_ = {};
  std::atomic<std::uint64_t> next_{0};
};

Call call_of(const Flight& flight);  // without its memory and counts
void set_algorithm(Flight& flight, std::string_view algorithm);
bool has_algorithm(const Flight& flight, std::string_view algorithm);  // as set_algorithm() has set it

// What `weft doctor` prints of a rank: the table above, `now` in ticks.
std::string print_flights(const std::vector<Flight>& flights, std::int64_t now);

}  // namespace weft::comm
