// weft/communication/comm/direct/direct_trial.h -- finds the fastest way to copy private buffers by
// timing real calls.
//
//   calls of one kind and size   │ warm up │ slots kernel slots kernel slots kernel │ the quicker one ... │
//                                                                        again when its time has doubled ┘
//
// One copy through the OS kernel, or two through slots of shared memory? The faster one depends on
// the machine, on the distance between its cores, and on whether a buffer was just written. A
// benchmark in advance cannot tell. So ranks try both on the first calls and keep the faster one.
// They repeat the trial only after its time has doubled, since conditions have then changed.
//
// Ranks count the same calls, so they try the same alternative at the same time. Each decision is
// made by the first rank to reach it, from its own times; the others read the result.
#pragma once
#include <array>
#include <cstdint>
#include <limits>

#include "weft/communication/comm/direct/direct_layout.h"

namespace weft::comm {

class DirectTrial {
 public:
  // How to run the next call, and whether to time it. Both arguments of next() are the same on all
  // ranks: the number of consecutive calls per alternative, and a shared word that starts at zero.
  struct Plan {
    bool kernel = false;
    bool is_timed = false;
  };
  Plan next(std::uint32_t calls_per_turn, SharedWord& answers);
  // Records the time of the call last planned by next(). Not called if other work disturbed the
  // call.
  void note(double seconds);

  static constexpr std::uint32_t kWarmUps = 2, kTurns = 3, kWindow = 64;

 private:
  enum class Phase : std::uint8_t { warm_up, trying, settled };
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();

  // Time of one alternative: that of the fastest pair of consecutive calls, since other work may
  // disturb any of them. A pair, because a rank that runs ahead in one call waits in the next (4
  // ranks on 2 cores: 160, 465, 160, 465 us). The first call of a turn is not timed: the other
  // alternative has left its data in the caches.
  struct Times {
    double least = kUnknown;
    double before = kUnknown;  // previous call of this turn
  };

  void begin(Phase phase);
  std::uint64_t quicker() const;
  bool has_doubled() const;

  Phase phase_ = Phase::warm_up;
  std::uint32_t calls_ = 0;  // in this phase
  Plan last_;
  bool kernel_ = false;                           // the faster alternative
  bool known_ = false;                            // the times were conclusive
  std::array<Times, 2> times_ = {};               // slots, kernel
  double watched_ = kUnknown, usual_ = kUnknown;  // fastest call of this window, and of all windows
  std::uint64_t questions_ = 0;
};

// The first rank to ask a question answers it with `mine`; later ranks get that answer. REQUIRES:
// `question` grows from 1, and no rank asks a question before all ranks have asked the previous
// one.
std::uint64_t decide_first(SharedWord& word, std::uint64_t question, std::uint64_t mine);
inline constexpr std::uint64_t kMostSaid = 15;

}  // namespace weft::comm
