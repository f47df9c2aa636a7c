// weft/communication/comm/direct/direct_trial.h -- finds out on real calls how private buffers are copied quickest.
//
//   calls of one kind and size   │ warm up │ slots kernel slots kernel slots kernel │ the quicker one ... │
//                                                                        again when its time has doubled ┘
//
// One copy through the kernel, or two through slots of shared memory? Which is quicker depends on the
// machine, on the distance between its cores, and on whether a buffer was just written. No sample taken
// beforehand tells. So ranks try both at the first calls and keep the quicker one. They try again only when
// its time has doubled: then something has changed.
//
// Ranks count the same calls, so they try the same way at the same time. Of each question the first rank that
// comes to it decides by its own times; the others read its answer.
#pragma once
#include <array>
#include <cstdint>
#include <limits>

#include "weft/communication/comm/direct/direct_layout.h"

namespace weft::comm {

class DirectTrial {
 public:
  // How the next call is done, and whether its time is wanted. Both arguments are the same on all ranks each
  // time: how many calls of one way follow each other, and a word in common that begins as zero.
  struct Plan {
    bool kernel = false;
    bool is_timed = false;
  };
  Plan next(std::uint32_t calls_a_turn, SharedWord& answers);
  // The call that next() planned last took so long; not called where something else disturbed it.
  void note(double seconds);

  static constexpr std::uint32_t kWarmUps = 2, kTurns = 3, kWindow = 64;

 private:
  enum class Phase : std::uint8_t { warm_up, trying, settled };
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();

  // What one way took: the quickest pair of calls in a row, since anything else may disturb one. A pair,
  // because a rank that runs ahead in one call pays for it in the next (4 ranks on 2 cores: 160, 465, 160,
  // 465 us). The first call of a turn does not count: it finds the caches as the other way left them.
  struct Times {
    double least = kUnknown;
    double before = kUnknown;  // the last one of this turn
  };

  void begin(Phase phase);
  std::uint64_t quicker() const;
  bool has_doubled() const;

  Phase phase_ = Phase::warm_up;
  std::uint32_t calls_ = 0;  // of this phase
  Plan last_;
  bool kernel_ = false;                           // the quicker one
  bool known_ = false;                            // the times told
  std::array<Times, 2> times_ = {};               // of slots, of the kernel
  double watched_ = kUnknown, usual_ = kUnknown;  // the quickest of this window, and of all windows
  std::uint64_t questions_ = 0;
};

// The first rank that asks a question answers it with `mine`; ranks that ask it later read that answer.
// REQUIRES: `question` grows from 1, and no rank asks a question before all have asked the one before.
std::uint64_t first_says(SharedWord& word, std::uint64_t question, std::uint64_t mine);
inline constexpr std::uint64_t kMostSaid = 15;

}  // namespace weft::comm
