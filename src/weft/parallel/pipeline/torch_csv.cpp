// Converts schedules to rows of PyTorch's actions, and back.
#include "weft/parallel/pipeline/torch_csv.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "weft/parallel/pipeline/torch_messages.h"
#include "weft/parallel/pipeline/verify.h"

namespace weft::pipeline {
namespace {

using TorchKind = TorchAction::Kind;

TorchKind torch_kind(Kind kind) {
  switch (kind) {
    case Kind::forward: return TorchKind::forward;
    case Kind::backward: return TorchKind::backward_input;
    case Kind::weight: return TorchKind::weight;
    case Kind::whole_backward: return TorchKind::backward;
  }
  return TorchKind::forward;
}

Kind kind_of(TorchKind kind) {
  switch (kind) {
    case TorchKind::backward_input: return Kind::backward;
    case TorchKind::weight: return Kind::weight;
    case TorchKind::backward: return Kind::whole_backward;
    default: return Kind::forward;
  }
}

// PyTorch finds the loss of a micro-batch by the order in which its last stage ran forward.
Status last_stage_in_order(const TorchRows& rows, std::int32_t last) {
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::int32_t expected = 0;
    for (std::size_t cell = 0; cell < rows[row].size(); ++cell)
      for (const TorchAction& action : rows[row][cell])
        if (action.stage == last && action.kind == TorchKind::forward && action.micro_batch != expected++)
          return user_error(fmt::format("{}: expected {}F{}, found {}", print_place(row, cell), last,
                                        expected - 1, print(action)),
                            "PyTorch's runtime needs the micro-batches in order on the last stage");
  }
  return {};
}

Result<TorchRows> rows_of(const Schedule& schedule) {
  if (schedule.route == Route::both_ways)
    return user_error(
        fmt::format("{} has no CSV: PyTorch needs each stage on one rank, found two copies of each",
                    schedule.name),
        "dualpipe_v holds each stage once");
  TorchRows rows;
  for (std::size_t rank = 0; rank < schedule.orders.size(); ++rank) {
    const std::vector<Pass>& order = schedule.orders[rank];
    std::vector<TorchCell> row;
    for (std::size_t place = 0; place < order.size(); ++place) {
      const auto action = [&](const Pass& pass) {
        return TorchAction{torch_kind(pass.kind), schedule.position(static_cast<std::int32_t>(rank), pass),
                           pass.micro_batch};
      };
      TorchCell cell{action(order[place])};
      if (schedule.is_pair(order, place)) cell.push_back(action(order[++place]));
      row.push_back(std::move(cell));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// Every pass once and after the passes of its own stage that it needs.
Status passes_in_order(const TorchRows& rows, std::int32_t stages, std::int32_t micro_batches) {
  std::set<std::string> done;
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::size_t cell = 0; cell < rows[row].size(); ++cell)
      for (const TorchAction& one : rows[row][cell]) {
        const auto with = [&](TorchKind kind) {
          return print(TorchAction{kind, one.stage, one.micro_batch});
        };
        const auto is_done = [&](TorchKind kind) { return done.contains(with(kind)); };
        const auto wrong = [&](std::string_view expected) {
          return user_error(
              fmt::format("{}: expected {}, found {}", print_place(row, cell), expected, print(one)));
        };
        if (done.contains(print(one))) return wrong("each pass once");
        if (one.kind != TorchKind::forward && !is_done(TorchKind::forward))
          return wrong(fmt::format("{} before it", with(TorchKind::forward)));
        if (one.kind == TorchKind::weight && !is_done(TorchKind::backward_input))
          return wrong(fmt::format("{} before it", with(TorchKind::backward_input)));
        if ((one.kind == TorchKind::backward && is_done(TorchKind::backward_input)) ||
            (one.kind == TorchKind::backward_input && is_done(TorchKind::backward)))
          return wrong("either B or I and W");
        done.insert(print(one));
      }
  for (std::int32_t stage = 0; stage < stages; ++stage)
    for (std::int32_t micro = 0; micro < micro_batches; ++micro) {
      const auto has = [&](TorchKind kind) { return done.contains(print(TorchAction{kind, stage, micro})); };
      const auto missing = [&](TorchKind kind) {
        return user_error(
            fmt::format("expected {}, found none in any row", print(TorchAction{kind, stage, micro})));
      };
      if (!has(TorchKind::forward)) return missing(TorchKind::forward);
      if (has(TorchKind::backward_input) && !has(TorchKind::weight)) return missing(TorchKind::weight);
      if (!has(TorchKind::backward_input) && !has(TorchKind::backward)) return missing(TorchKind::backward);
    }
  return {};
}

// The route on which stage s is on this rank, for each stage. `ranks` has a multiple of the rows.
Result<Route> route_of(const std::vector<std::size_t>& ranks, std::size_t rows) {
  bool loops = true, turns = true;
  for (std::size_t stage = 0; stage < ranks.size(); ++stage) {
    const std::size_t forth = stage % rows, back = rows - 1 - forth;
    const std::size_t turned = stage / rows % 2 == 0 ? forth : back;
    loops = loops && ranks[stage] == forth;
    turns = turns && ranks[stage] == turned;
    if (!loops && !turns)
      return user_error(
          fmt::format("stage {} is in row {}: expected row {} (stages in a loop) or {} (in a V)", stage,
                      ranks[stage] + 1, forth + 1, turned + 1));
  }
  if (ranks.size() == rows) return Route::line;
  return loops ? Route::loop : Route::v;
}

// Whether all cells that could be pairs are.
bool all_paired(const TorchRows& rows) {
  bool some = false;
  for (const std::vector<TorchCell>& row : rows) {
    const TorchAction* before = nullptr;
    for (const TorchCell& cell : row) {
      if (cell.empty()) continue;
      some = some || cell.size() == 2;
      if (before != nullptr && before->kind == TorchKind::forward && cell.front().is_backward() &&
          cell.front().micro_batch != before->micro_batch)
        return false;
      before = &cell.back();
    }
  }
  return some;
}

}  // namespace

std::string_view name(TorchFormat format) {
  return format == TorchFormat::compute_only ? "compute_only" : "compute_comms";
}

Result<std::string> print_torch_csv(const Schedule& schedule, TorchFormat format) {
  WEFT_TRY_STATUS(verify(schedule));
  WEFT_TRY(rows, rows_of(schedule));
  WEFT_TRY_STATUS(last_stage_in_order(rows, schedule.positions() - 1));
  if (format == TorchFormat::compute_only) return print_torch_cells(rows);
  WEFT_TRY(ranks, ranks_of_stages(rows));
  WEFT_TRY(whole, add_messages(rows, ranks));
  WEFT_TRY_STATUS(check_messages(whole, ranks));
  return print_torch_cells(whole);
}

Result<TorchSchedule> parse_torch_csv(std::string_view text) {
  WEFT_TRY(rows, parse_torch_cells(text));
  WEFT_TRY(ranks, ranks_of_stages(rows));
  TorchSchedule made;
  TorchRows passes = rows;
  for (std::vector<TorchCell>& row : passes)
    for (TorchCell& cell : row)
      if (std::erase_if(cell, [](const TorchAction& one) { return !one.is_pass(); }) > 0)
        made.format = TorchFormat::compute_comms;
  std::vector<std::size_t> held(rows.size(), 0);
  for (const std::size_t row : ranks) ++held[row];
  for (std::size_t row = 0; row < rows.size(); ++row)
    if (held[row] != held.front())
      return user_error(
          fmt::format("PyTorch needs the same number of stages on each rank: row 1 has {}, row {} has {}",
                      held.front(), row + 1, held[row]));
  Schedule& schedule = made.schedule;
  schedule.name = "torch_csv";
  schedule.stages = static_cast<std::int32_t>(rows.size());
  schedule.chunks = static_cast<std::int32_t>(held.front());
  schedule.clock = Clock::end;
  for (const auto& row : passes)
    for (const TorchCell& cell : row)
      for (const TorchAction& pass : cell)
        schedule.micro_batches = std::max(schedule.micro_batches, pass.micro_batch + 1);
  const auto stages = static_cast<std::int32_t>(ranks.size());
  // Files list all passes, so what they lack is known before memory for it is reserved.
  std::size_t found = 0;
  for (const auto& row : passes) found += row.size();
  if (static_cast<std::int64_t>(stages) * schedule.micro_batches > 2 * static_cast<std::int64_t>(found))
    return user_error(fmt::format("expected passes of {} stages and {} micro-batches, found {} cells", stages,
                                  schedule.micro_batches, found));
  WEFT_TRY_STATUS(passes_in_order(passes, stages, schedule.micro_batches));
  WEFT_TRY_STATUS(last_stage_in_order(rows, stages - 1));
  WEFT_TRY(route, route_of(ranks, rows.size()));
  schedule.route = route;
  schedule.overlaps = all_paired(passes);
  for (const auto& row : passes) {
    std::vector<Pass> order;
    for (const TorchCell& cell : row)
      for (const TorchAction& pass : cell)
        order.push_back({kind_of(pass.kind), pass.micro_batch, pass.stage / schedule.stages});
    schedule.orders.push_back(std::move(order));
  }
  if (made.format == TorchFormat::compute_comms) {
    WEFT_TRY_STATUS(check_messages(rows, ranks));
  } else {
    WEFT_TRY(unused, add_messages(passes, ranks));
    static_cast<void>(unused);
  }
  WEFT_TRY_STATUS(verify(schedule));
  return made;
}

}  // namespace weft::pipeline
