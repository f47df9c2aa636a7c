// weft/collectives/check/check.h -- proves a chunk program right, or says what is wrong and where.
//
// A program is right when every interleaving that its waits, connections and threadblocks permit comes
// to an end (no deadlock), no two unordered accesses meet in one chunk of memory (no race), and every
// chunk of output then holds what the collective promises, every contribution exactly once (no wrong
// result). Nothing is sampled: an order of events that holds in every run is computed once; accesses it
// does not order are a race; where there is none, every run computes the same, and one is enough.
//
// A connection holds a bounded number of transfers. The smallest number with which the program cannot
// block is part of the answer: a runtime with fewer slots hangs once a chunk fills a slot.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/collectives/chunks/actions.h"
#include "weft/collectives/chunks/program.h"

namespace weft::collective {

enum class Verdict : std::uint8_t { ok, malformed, deadlock, race, wrong_result };

std::string_view name(Verdict verdict);  // "wrong-result"

// A step; -1 where a finding is about more than one rank, block or step.
struct Where {
  std::int32_t rank = -1, block = -1, step = -1;

  friend bool operator==(const Where&, const Where&) = default;
};

std::string print(const Where& where);  // "gpu 5 tb 0 step 7", as far as known

struct Finding {
  Verdict verdict = Verdict::ok;
  Where where;
  std::string text;  // without the place: "output[3] lacks the contribution of gpu 2"
};

std::string print(const Finding& finding);  // "gpu 5 tb 0 step 7: output[3] lacks ..."

struct Report {
  std::optional<Finding> finding;  // none: the program is right
  // The smallest number of slots per connection without deadlock: each holding one chunk (what large
  // messages come to), and each holding a whole transfer however many chunks it has (small messages).
  std::int32_t slots = 1;
  std::int32_t slots_small = 1;

  Verdict verdict() const { return finding ? finding->verdict : Verdict::ok; }
};

struct CheckOptions {
  std::int32_t slots = 0;  // that the runtime has; needing more is a deadlock. 0: unlimited
};

// Ranges, peers, channels, counts: whatever can be seen without running. to_actions() needs it.
std::optional<Finding> check_form(const Program& program);

Report check(const Program& program, const CheckOptions& options = {});
// `whole` is the same program at step grain, for slots_small; null: slots_small = slots.
Report check(const Actions& chunks, const Actions* whole, const CheckOptions& options = {});

// The two halves of it, without the races between: whether every run comes to an end, and what it then holds.
Report check_end(const Actions& chunks, const Actions* whole, const CheckOptions& options = {});
std::optional<Finding> check_result(const Actions& chunks, const Actions& whole,
                                    const CheckOptions& options = {});

}  // namespace weft::collective
