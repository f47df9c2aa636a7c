// weft/collectives/check/check.h -- proves a chunk program correct, or reports the fault in it.
//
// A program is correct if every interleaving that its waits, connections and threadblocks permit
// terminates (no deadlock), no two conflicting accesses to a chunk are unordered (no race), and
// every output chunk ends up with exactly the contributions that the collective requires, each once
// (no wrong result). Nothing is sampled. The happens-before order that holds in every run is
// computed once; conflicting accesses that it leaves unordered are a race. Without races all runs
// compute the same result, so one run decides.
//
// A connection holds a bounded number of transfers. The checker also computes the least number of
// slots that avoids deadlock: a runtime with fewer hangs once a chunk fills a slot.
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

// Location of an instruction; -1 if a finding concerns more than one rank, block or step.
struct Where {
  std::int32_t rank = -1, block = -1, step = -1;

  friend bool operator==(const Where&, const Where&) = default;
};

std::string print(const Where& where);  // "gpu 5 tb 0 step 7", as far as known

struct Finding {
  Verdict verdict = Verdict::ok;
  Where where;
  std::string text;  // without the location: "output[3] lacks the contribution of gpu 2"
};

std::string print(const Finding& finding);  // "gpu 5 tb 0 step 7: output[3] lacks ..."

struct Report {
  std::optional<Finding> finding;  // empty: the program is correct
  // The least number of slots per connection that avoids deadlock: if a slot holds one chunk (large
  // messages), and if it holds a whole transfer of any number of chunks (small messages).
  std::int32_t slots = 1;
  std::int32_t slots_small = 1;

  Verdict verdict() const { return finding ? finding->verdict : Verdict::ok; }
};

struct CheckOptions {
  std::int32_t slots = 0;  // of the runtime; needing more is a deadlock. 0: unlimited
};

// Static checks: ranges, peers, channels, counts. to_actions() requires them.
std::optional<Finding> check_form(const Program& program);

Report check(const Program& program, const CheckOptions& options = {});
// `whole` is the same program at step grain, for slots_small; null: slots_small = slots.
Report check(const Actions& chunks, const Actions* whole, const CheckOptions& options = {});

// The two halves of check(), without the race check: termination, and the result.
Report check_end(const Actions& chunks, const Actions* whole, const CheckOptions& options = {});
std::optional<Finding> check_result(const Actions& chunks, const Actions& whole,
                                    const CheckOptions& options = {});

}  // namespace weft::collective
