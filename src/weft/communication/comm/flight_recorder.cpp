#include "weft/communication/comm/flight_recorder.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::comm {
namespace {

constexpr std::size_t kCourseWords = sizeof(FlightProgress) / sizeof(std::uint64_t);
using Words = std::array<std::uint64_t, sizeof(Flight) / sizeof(std::uint64_t)>;

// Checksum of everything but the progress fields. It changes when words are permuted or belong to
// another flight.
std::uint64_t first_of_sum(std::uint64_t number) { return number + 1; }
std::uint64_t next_of_sum(std::uint64_t total, std::uint64_t word) { return std::rotl(total, 7) + word; }
std::uint64_t sum(const Words& words, std::uint64_t number) {
  std::uint64_t total = first_of_sum(number);
  for (std::size_t i = kCourseWords; i < words.size(); ++i) total = next_of_sum(total, words[i]);
  return total;
}

Words to_words(const Flight& flight) {
  Words words;
  std::memcpy(words.data(), &flight, sizeof(flight));
  return words;
}

#if !defined(__aarch64__)
// The rate of the time stamp counter cannot be queried, so it is measured once against a clock.
double measure_ticks_per_second() {
  const auto begin = std::chrono::steady_clock::now();
  const std::int64_t first = ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const std::int64_t last = ticks();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(last - first) / passed.count();
}
#endif

}  // namespace

std::string_view name(Stage stage) {
  constexpr std::string_view kNames[] = {"queued", "running", "done", "failed", "cancelled"};
  return kNames[static_cast<std::size_t>(stage)];
}

#if defined(__aarch64__)
std::int64_t ticks() {
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return static_cast<std::int64_t>(value);
}

double ticks_per_second() {
  std::uint64_t rate;
  asm("mrs %0, cntfrq_el0" : "=r"(rate));
  return static_cast<double>(rate);
}
#else
std::int64_t ticks() { return static_cast<std::int64_t>(__builtin_ia32_rdtsc()); }

double ticks_per_second() {
  static const double rate = measure_ticks_per_second();
  return rate;
}
#endif

bool FlightRecorder::is_kept(std::uint64_t number) const {
  return next_.load(std::memory_order_relaxed) - number <= kFlights;
}

// Most calls equal the previous entry of their slot. Unchanged words are not rewritten, since
// stores would queue up behind those that other ranks wait for.
void FlightRecorder::write(Place& place, std::uint64_t number, const Flight& flight) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&flight);
  std::uint64_t total = first_of_sum(number);
  for (std::size_t i = 0; i < kWords; ++i) {
    std::uint64_t word;
    std::memcpy(&word, bytes + i * sizeof(word), sizeof(word));
    if (place.words[i].load(std::memory_order_relaxed) != word)
      place.words[i].store(word, std::memory_order_relaxed);
    if (i >= kCourseWords) total = next_of_sum(total, word);
  }
  place.checksum.store(total, std::memory_order_relaxed);
}

std::uint64_t FlightRecorder::record(const Flight& flight) {
  const std::uint64_t number = next_.load(std::memory_order_relaxed);
  Place& place = places_[number % kFlights];
  write(place, number, flight);
  next_.store(number + 1, std::memory_order_relaxed);
  return number;
}

void FlightRecorder::begin(std::uint64_t number, std::string_view algorithm) {
  if (!is_kept(number)) return;
  Place& place = places_[number % kFlights];
  Words words;
  for (std::size_t i = 0; i < kWords; ++i) words[i] = place.words[i].load(std::memory_order_relaxed);
  Flight flight;
  std::memcpy(static_cast<void*>(&flight), words.data(), sizeof(flight));
  flight.stage = Stage::running;
  flight.changed_at = ticks();
  set_algorithm(flight, algorithm);
  write(place, number, flight);
}

void FlightRecorder::update(std::uint64_t number, Stage stage, std::int64_t pieces_done, std::int64_t pieces,
                            std::int32_t waits_for) {
  if (!is_kept(number)) return;
  Flight flight;
  flight.pieces_done = pieces_done;
  flight.pieces = pieces;
  flight.changed_at = ticks();
  flight.waits_for = waits_for;
  flight.stage = stage;
  const Words words = to_words(flight);
  Place& place = places_[number % kFlights];
  for (std::size_t i = 0; i < kCourseWords; ++i) place.words[i].store(words[i], std::memory_order_relaxed);
}

void FlightRecorder::finish_quick(std::uint64_t number) {
  Flight flight;
  flight.stage = Stage::done;
  constexpr std::size_t kStageWord = kCourseWords - 1;
  places_[number % kFlights].words[kStageWord].store(to_words(flight)[kStageWord], std::memory_order_relaxed);
}

std::vector<Flight> FlightRecorder::read() const {
  const std::uint64_t end = next_.load(std::memory_order_relaxed);
  std::vector<Flight> flights;
  for (std::uint64_t number = end > kFlights ? end - kFlights : 0; number < end; ++number) {
    const Place& place = places_[number % kFlights];
    Words words;
    for (std::size_t i = 0; i < kWords; ++i) words[i] = place.words[i].load(std::memory_order_relaxed);
    if (place.checksum.load(std::memory_order_relaxed) != sum(words, number)) continue;
    Flight flight;
    std::memcpy(static_cast<void*>(&flight), words.data(), sizeof(flight));
    flights.push_back(flight);
  }
  return flights;
}

Call call_of(const Flight& flight) {
  Call call;
  call.kind = flight.kind;
  call.type = flight.type;
  call.op = flight.op;
  call.count = flight.count;
  call.root = flight.root;
  call.peer = flight.peer;
  call.priority = flight.priority;
  call.purpose = flight.purpose;
  return call;
}

void set_algorithm(Flight& flight, std::string_view algorithm) {
  flight.algorithm = {};
  std::copy_n(algorithm.data(), std::min(algorithm.size(), flight.algorithm.size() - 1),
              flight.algorithm.data());
}

bool has_algorithm(const Flight& flight, std::string_view algorithm) {
  const std::string_view kept = algorithm.substr(0, flight.algorithm.size() - 1);
  return std::memcmp(flight.algorithm.data(), kept.data(), kept.size()) == 0 &&
         flight.algorithm[kept.size()] == 0;
}

std::string print_flights(const std::vector<Flight>& flights, std::int64_t now) {
  const double rate = ticks_per_second();
  const auto is_open = [](const Flight& flight) {
    return flight.stage == Stage::queued || flight.stage == Stage::running;
  };
  std::string text;
  for (const Flight& flight : flights) {
    if (!is_open(flight) || flight.waits_for < 0) continue;
    text += fmt::format("  waits for rank {} in {} for {}\n", flight.waits_for, describe(call_of(flight)),
                        print_seconds(static_cast<double>(now - flight.began_at) / rate));
    break;  // later calls wait behind the oldest
  }
  text += fmt::format("{:>8}  {:<44} {:<28} {:<9} {:>11}  {:<9} {}\n", "call", "what", "algorithm", "state",
                      "pieces", "waits for", "for");
  for (const Flight& flight : flights) {
    const bool open = is_open(flight);
    // For a call that never waited, only the start was recorded.
    const std::int64_t passed = (open ? now : flight.changed_at) - flight.began_at;
    text += fmt::format("{:>8}  {:<44} {:<28} {:<9} {:>11}  {:<9} {}\n",
                        flight.call == kUnnumbered ? "-" : fmt::to_string(flight.call),
                        describe(call_of(flight)), flight.algorithm.data(), name(flight.stage),
                        flight.pieces == 0 ? "" : fmt::format("{}/{}", flight.pieces_done, flight.pieces),
                        open && flight.waits_for >= 0 ? fmt::format("rank {}", flight.waits_for) : "",
                        passed > 0 ? print_seconds(static_cast<double>(passed) / rate) : "");
  }
  return text;
}

}  // namespace weft::comm
