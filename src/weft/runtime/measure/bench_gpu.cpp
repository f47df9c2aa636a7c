#include "weft/runtime/measure/bench_gpu.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "weft/base/median.h"
#include "weft/collectives/check/check.h"
#include "weft/device/device.h"
#include "weft/formats/collective_source.h"
#include "weft/runtime/measure/bench_machine.h"
#include "weft/runtime/run/collective_trial.h"

namespace weft::measure {
namespace {

using collective::Kind;

// Uses enough channels to occupy some SMs of the GPU, but not all of them.
std::string shipped_program(Kind kind, std::int32_t ranks) {
  const std::int32_t channels = std::clamp(64 / ranks, 1, 16);
  switch (kind) {
    case Kind::all_reduce: return fmt::format("all_reduce_ring(ranks={}, channels={})", ranks, channels);
    case Kind::reduce_scatter:
      return fmt::format("reduce_scatter_ring(ranks={}, channels={})", ranks, channels);
    case Kind::all_gather: return fmt::format("all_gather_ring(ranks={}, channels={})", ranks, channels);
    case Kind::all_to_all:
      return fmt::format("all_to_all_direct(ranks={}, lanes={})", ranks, std::min(ranks, 8));
    default: return fmt::format("broadcast_relay(ranks={}, chunks=1)", ranks);
  }
}

Result<double> copy_seconds_on_gpu(std::int64_t bytes, std::int32_t repeats) {
  WEFT_TRY(gpu, device::open_device("cuda:0"));
  WEFT_TRY(from, gpu->allocate(bytes));
  WEFT_TRY(to, gpu->allocate(bytes));
  WEFT_TRY(stream, gpu->make_stream({.computes = false}));
  std::vector<std::unique_ptr<device::Event>> marks;
  for (std::int32_t turn = 0; turn <= repeats; ++turn) {
    WEFT_TRY(mark, gpu->make_event());
    marks.push_back(std::move(mark));
  }
  stream->copy(to->address(), from->address(), bytes);
  for (const auto& mark : marks) {
    stream->record(*mark);
    stream->copy(to->address(), from->address(), bytes);
  }
  WEFT_TRY_STATUS(stream->synchronize());
  std::vector<double> seconds;
  for (std::size_t turn = 1; turn < marks.size(); ++turn)
    seconds.push_back(marks[turn]->seconds_since(*marks[turn - 1]));
  return median(std::move(seconds));
}

}  // namespace

Result<std::vector<BenchRow>> bench_on_gpu(const GpuTurn& turn) {
  WEFT_TRY(source, formats::read_collective(shipped_program(turn.kind, turn.ranks)));
  WEFT_TRY(program, formats::to_program(source));
  const collective::Report report = collective::check(program);
  WEFT_TRY_STATUS(formats::expect_correct(report, "the program is"));
  run::CollectiveTrial trial;
  trial.slots = std::max(report.slots, report.slots_small);
  trial.program = std::make_shared<const collective::Program>(std::move(program));
  trial.type = turn.type;
  trial.in_place = turn.in_place;
  trial.verify = true;
  trial.repeat = turn.repeats;
  trial = run::with_bytes(std::move(trial), turn.bytes);
  const std::int64_t bytes = run::message_bytes(trial);
  const double copied = least_copied(turn.kind, turn.ranks, static_cast<double>(bytes), turn.in_place);
  WEFT_TRY(limit,
           copy_seconds_on_gpu(std::max<std::int64_t>(static_cast<std::int64_t>(copied), 1), turn.repeats));
  std::vector<BenchRow> rows;
  for (const bool directly : {true, false}) {
    BenchRow row{.kind = turn.kind,
                 .ranks = turn.ranks,
                 .transport = "gpu",
                 .bytes = bytes,
                 .count = bytes / static_cast<std::int64_t>(device::size_of(turn.type)),
                 .type = std::string(device::name(turn.type)),
                 .in_place = turn.in_place,
                 .peer = "weft",
                 .setting = directly ? "direct" : "chunks",
                 .limit = limit};
    const auto outcomes = run::run_trial_on_gpu(trial, directly);
    if (!outcomes.ok()) {
      row.failure = outcomes.error().message;
    } else {
      std::vector<BenchSample> samples;
      std::int64_t wrong = 0;
      for (const run::TrialOutcome& outcome : *outcomes) wrong += outcome.wrong;
      for (const std::int64_t end : outcomes->front().ends)
        samples.push_back({static_cast<double>(end) * 1e-9, 0, wrong});
      summarize(samples, row);
    }
    rows.push_back(std::move(row));
  }
  compare(rows);
  return rows;
}

}  // namespace weft::measure
