// weft/predict/sim/trace/traffic.h -- messages on the wires of a network, and other timed events.
//
//   Traffic traffic(network, {});
//   traffic.send(now, 0, 3, bytes, {kArrived, 7});    // rank 0 to rank 3; reports {kArrived, 7} on arrival
//   traffic.tell(now + 1e-3, {kComputed, 4});
//   while (const auto next = traffic.next()) ...      // by time; ties in order of the calls
//
// A wire carries one message at a time, first come, first served. A message enters the next wire
// when its first byte arrives (cut through) or when all of it has arrived (store and forward). In
// the third model, wires carry any number of messages at once (uncontended). The last two models
// match ASTRA-sim's two analytical networks.
//
// Folded: what happens on one rank happens on all at once, as in a ring where all send to the
// right. Then the wires of one rank represent all, and the sender is always rank 0.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/predict/sim/trace/trace_network.h"

namespace weft::sim {

enum class WireModel : std::uint8_t { cut_through, store_and_forward, uncontended };

// The caller's own numbers, returned with the event.
struct Note {
  std::uint32_t what = 0, run = 0, member = 0, detail = 0;
};

struct Happening {
  double time = 0;
  Note note;
};

class Traffic {
 public:
  enum class Folded : bool { no, yes };

  // The network must outlive this. REQUIRES: check(network)
  Traffic(const TraceNetwork& network, WireModel model, Folded folded = Folded::no);

  void tell(double time, const Note& note) { push(time, -1, note); }
  void send(double now, std::int32_t from, std::int32_t to, double bytes, const Note& note);
  std::optional<Happening> next();

  std::int64_t events() const { return events_; }

 private:
  struct Hop {
    std::int64_t wire;
    double seconds, latency;  // transmission time; latency of the first byte
  };
  struct Message {
    Note note;
    std::vector<Hop> hops;
    std::size_t at = 0;
    double tail = 0;  // when its last byte left the previous wire
  };
  struct Entry {
    double time;
    std::uint64_t order;
    std::int32_t message;
    Note note;

    friend bool operator<(const Entry& a, const Entry& b) {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };

  void push(double time, std::int32_t message, const Note& note);
  void advance(double now, std::int32_t number);

  const TraceNetwork& network_;
  const WireModel model_;
  const Folded folded_;
  std::vector<std::int64_t> first_wire_;  // by dimension
  std::vector<double> free_;              // by wire: when it becomes free
  std::vector<Message> messages_;
  std::vector<std::int32_t> unused_;
  std::vector<Entry> heap_;
  std::uint64_t order_ = 0;
  std::int64_t events_ = 0;
};

}  // namespace weft::sim
