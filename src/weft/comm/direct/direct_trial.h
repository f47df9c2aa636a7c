// weft/comm/direct/direct_trial.h -- finds out on real calls which way of copying is quickest on this machine.
//
//   calls of one kind and size    usual 2x │ slots  kernel  non-temporal │ slots  kernel │ usual 20x │ ...
//
// Is one copy through the kernel quicker than two through shared memory? That depends on the machine, on the
// distance between its cores, on pages, and on whether a buffer was just written. No sample taken beforehand
// tells. So ranks try both on real calls and keep the quicker one for a while.
//
// Ranks count the same calls, so they try the same way at the same time. Each round drops what was clearly
// slower. The first rank to end a round decides by its own times; the others read its verdict.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "weft/comm/direct/direct_layout.h"

namespace weft::comm {

enum class CopyMode : std::uint8_t {
  slots,            // private buffers go through shared memory
  kernel,           // they are read where they are
  kernel_one_shot,  // the same, and everyone reduces everything
  non_temporal      // slots, and what is not read again soon is written by non-temporal stores
};
inline constexpr std::size_t kCopyModes = 4;
// Whether private buffers are read through the kernel.
constexpr bool reads_memory(CopyMode mode) {
  return mode == CopyMode::kernel || mode == CopyMode::kernel_one_shot;
}

class DirectTrial {
 public:
  // So many calls of a mode follow each other, 2 at least. Where cores are oversubscribed, the time of a call
  // depends on which rank had the core first, so it takes many calls to tell.
  struct Turn {
    std::uint32_t calls = 2;
    bool oversubscribed = false;
  };
  // How the next call is done, and whether its time is wanted. `modes` and `turn` are the same on all ranks
  // each time; `verdict` is theirs in common and begins as zero.
  struct Plan {
    CopyMode mode = CopyMode::slots;
    bool is_trial = false;
  };
  // `guess` is the usual one until the first verdict; only the first call's counts.
  Plan next(std::span<const CopyMode> modes, const Turn& turn, SharedWord& verdict,
            CopyMode guess = CopyMode::slots);
  // A call of next() took so long.
  void note(CopyMode mode, double seconds);
  bool begun() const { return modes_ != 0; }
  // What the last verdict says; nothing before the first.
  std::optional<CopyMode> verdict() const { return is_known_ ? std::optional(usual_) : std::nullopt; }

  static constexpr std::uint32_t kWarmUps = 2, kRounds = 2, kMostTimes = 14, kCallsBetween = 20,
                                 kMostBetween = 1000;

 private:
  // The times of one mode. The first call of a turn does not count: it finds the caches as another mode left
  // them. A rank that runs ahead in one call pays for it in the next (4 ranks on 2 cores: 160, 465, 160, 465
  // us), so in longer turns each call counts as the mean of it and the one before. usual() is the quickest
  // time, since anything else may disturb a call; where cores are oversubscribed it is the median, since there
  // the quickest is luck.
  struct Times {
    std::uint32_t count = 0;
    std::array<double, kMostTimes> seconds = {};
    std::uint32_t calls_of_turn = 0;
    double last = 0;

    void add(double now);
    double usual(bool oversubscribed) const;
  };
  // Those that stay, as bits; in the last round the quickest alone. 0 where not all were timed.
  std::uint64_t survivors(bool oversubscribed) const;
  void end_round(std::uint64_t stay);

  // As bits: all that there are, those still tried, and those not far behind in the first round.
  std::uint64_t modes_ = 0, left_ = 0, near_ = 0;
  std::uint32_t rounds_ = 0;
  CopyMode usual_ = CopyMode::slots;
  bool is_known_ = false;
  std::uint32_t rest_ = kWarmUps;   // calls before the next is tried
  std::uint32_t pause_ = kWarmUps;  // what rest_ began as
  std::uint32_t tried_ = 0;         // calls of this round
  std::uint64_t settled_ = 0;       // times that a verdict was asked for
  std::array<Times, kCopyModes> times_ = {};
};

// The first rank that asks a question answers it with `mine`; ranks that ask it later read that answer.
// REQUIRES: `question` grows from 1, and no rank asks a question before all have asked the one before.
std::uint64_t first_says(SharedWord& word, std::uint64_t question, std::uint64_t mine);
inline constexpr std::uint64_t kMostSaid = 15;

}  // namespace weft::comm
