#include "weft/collectives/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "weft/collectives/check/contributions.h"
#include "weft/collectives/check/deadlock.h"
#include "weft/collectives/check/fifo_slots.h"
#include "weft/collectives/check/happens_before.h"
#include "weft/collectives/check/races.h"

namespace weft::collective {
namespace {

// The actions may be malformed; the code below never accesses a cell that does not exist.
std::optional<Finding> find_outside(const Actions& actions) {
  for (const Action& action : actions.actions) {
    for (const Cell& cell :
         std::span(actions.cells).subspan(action.first_cell, action.sources + action.targets)) {
      const std::int32_t chunks = actions.memory[cell.rank].chunks[static_cast<std::size_t>(cell.buffer)];
      if (cell.index >= 0 && std::int64_t{cell.index} + action.count <= chunks) continue;
      return Finding{Verdict::malformed, where(actions, action),
                     fmt::format("uses {}[{}..{}) of gpu {}, which has {} chunks", name(cell.buffer),
                                 cell.index, std::int64_t{cell.index} + action.count, cell.rank, chunks)};
    }
  }
  return std::nullopt;
}

// Checks once what is independent of placement, then the rest for each placement.
class Checker {
 public:
  // `whole` may be `chunks`.
  Checker(const Actions& chunks, const Actions& whole, const CheckOptions& options)
      : chunks_(chunks), whole_(whole), options_(options) {
    if ((report_.finding = find_outside(chunks))) return;
    check_end();
    if (!report_.finding) measure_slots();
  }

  bool fine() const { return !report_.finding; }

  void check_memory(const Actions& chunks, const Actions& whole) {
    report_.finding = find_race(chunks, graph_, run_.order);
    if (fine()) check_result(chunks, whole);
  }

  void check_result(const Actions& chunks, const Actions& whole) {
    report_.finding = find_overlap(whole);
    if (fine()) report_.finding = mismatch_;
    if (fine()) report_.finding = find_wrong_result(chunks, run_.order);
  }

  void check_alias(const Actions& in_place, const Actions& out_of_place) {
    if (find_outside(out_of_place)) return;  // can only run in place
    report_.finding = find_alias_fault(in_place, out_of_place, run_.order);
  }

  Report report() && { return std::move(report_); }

 private:
  void check_end() {
    graph_ = happens_before(chunks_);
    run_ = trial_run(chunks_, graph_, 0);
    const Uses transfers = &whole_ == &chunks_ ? graph_.uses : uses_of_connections(whole_);
    mismatch_ = find_mismatch(whole_, transfers);
    report_.finding =
        run_.finished ? find_unreceived(chunks_, graph_.uses) : explain_deadlock(chunks_, graph_, run_);
    if (fine() || !mismatch_) return;
    // If the two ends disagree on a transfer's length, that explains the deadlock better.
    for (std::size_t i = 0; i < chunks_.connections.size(); ++i) {
      const auto connection = static_cast<std::int32_t>(i);
      if (graph_.uses.giving(connection).size() == graph_.uses.taking(connection).size()) continue;
      if (const auto uneven = find_mismatch(whole_, transfers, connection)) {
        report_.finding = uneven;
        report_.finding->verdict = Verdict::deadlock;
        return;
      }
    }
  }

  void measure_slots() {
    report_.slots = report_.slots_small = run_.slots;
    if (&whole_ != &chunks_ && !mismatch_) {
      HappensBefore graph = happens_before(whole_);
      report_.slots_small = trial_run(whole_, graph, 0).slots;
    }
    if (options_.slots <= 0 || report_.slots <= options_.slots) return;
    report_.finding = explain_deadlock(chunks_, graph_, trial_run(chunks_, graph_, options_.slots));
    report_.finding->text = fmt::format("needs {} slots per connection and has {}: {}", report_.slots,
                                        options_.slots, report_.finding->text);
  }

  const Actions &chunks_, &whole_;
  const CheckOptions options_;
  HappensBefore graph_;
  TrialRun run_;
  std::optional<Finding> mismatch_;  // a transfer whose two ends disagree on its length
  Report report_;
};

bool any_long_step(const Program& program) {
  for (const RankProgram& rank : program.ranks)
    for (const Threadblock& block : rank.blocks)
      if (std::ranges::any_of(block.steps,
                              [](const Step& step) { return step.op != Op::nop && step.count > 1; }))
        return true;
  return false;
}

}  // namespace

std::string_view name(Verdict verdict) {
  constexpr std::array<std::string_view, 5> kNames = {"ok", "malformed", "deadlock", "race", "wrong-result"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string print(const Where& where) {
  std::string text;
  if (where.rank >= 0) text += fmt::format("gpu {}", where.rank);
  if (where.block >= 0) text += fmt::format("{}tb {}", text.empty() ? "" : " ", where.block);
  if (where.step >= 0) text += fmt::format("{}step {}", text.empty() ? "" : " ", where.step);
  return text;
}

std::string print(const Finding& finding) {
  const std::string place = print(finding.where);
  return fmt::format("{}{}{}", place, place.empty() ? "" : ": ", finding.text);
}

Report check(const Program& program, const CheckOptions& options) {
  Report report;
  if ((report.finding = check_form(program))) return report;
  const bool either = program.placement == Placement::either;
  const Placement placement = either ? Placement::out_of_place : program.placement;
  const bool long_steps = any_long_step(program);

  const Actions chunks = to_actions(program, placement, Grain::chunk);
  const Actions steps = long_steps ? to_actions(program, placement, Grain::step) : Actions{};
  const Actions& whole = long_steps ? steps : chunks;
  Checker checker(chunks, whole, options);
  if (checker.fine()) checker.check_memory(chunks, whole);

  if (checker.fine() && either) {
    const Actions in_place = to_actions(program, Placement::in_place, Grain::chunk);
    const Actions in_place_steps =
        long_steps ? to_actions(program, Placement::in_place, Grain::step) : Actions{};
    checker.check_memory(in_place, long_steps ? in_place_steps : in_place);
    if (checker.fine() && program.collective.kind == Kind::custom && program.collective.wants.empty())
      checker.check_alias(in_place, chunks);
    Report both = std::move(checker).report();
    if (both.finding) both.finding->text += " (in place)";
    return both;
  }
  // The expected outputs are unknown, but running in place must not change them.
  if (checker.fine() && placement == Placement::in_place && program.collective.kind == Kind::custom &&
      program.collective.wants.empty())
    checker.check_alias(chunks, to_actions(program, Placement::out_of_place, Grain::chunk));
  return std::move(checker).report();
}

Report check(const Actions& chunks, const Actions* whole, const CheckOptions& options) {
  const Actions& transfers = whole != nullptr ? *whole : chunks;
  Checker checker(chunks, transfers, options);
  if (checker.fine()) checker.check_memory(chunks, transfers);
  return std::move(checker).report();
}

Report check_end(const Actions& chunks, const Actions* whole, const CheckOptions& options) {
  return Checker(chunks, whole != nullptr ? *whole : chunks, options).report();
}

std::optional<Finding> check_result(const Actions& chunks, const Actions& whole,
                                    const CheckOptions& options) {
  Checker checker(chunks, whole, options);
  if (checker.fine()) checker.check_result(chunks, whole);
  return std::move(checker).report().finding;
}

}  // namespace weft::collective
