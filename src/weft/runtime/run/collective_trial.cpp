#include "weft/runtime/run/collective_trial.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/hash.h"
#include "weft/base/median.h"
#include "weft/communication/comm/chunk/chunk_machine.h"
#include "weft/communication/comm/chunk/chunk_memory.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/inproc/endpoint.h"
#include "weft/communication/transport/shm/endpoint.h"
#include "weft/communication/transport/tcp/endpoint.h"
#include "weft/runtime/run/collective_values.h"
#include "weft/runtime/run/json_number.h"
#include "weft/runtime/run/trial_buffers.h"

namespace weft::run {
namespace {

using collective::Buffer;
using collective::Kind;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kReports = 1;  // exchange number of the outcomes
constexpr std::int64_t kLeastSlotBytes = 4096;
constexpr std::chrono::milliseconds kLookUp{50};  // interval of checks for failed ranks while idle
constexpr std::chrono::milliseconds kFarewell{1000};

// Chunks covered by the message size. A custom collective without a specification has only the
// buffers that the program declares.
std::int64_t message_chunks(const collective::Program& program) {
  if (program.collective.kind != Kind::custom) return collective::loop_chunks(program.collective);
  std::int64_t most = 1;
  for (std::int32_t rank = 0; rank < program.collective.ranks; ++rank)
    for (const Buffer buffer : {Buffer::input, Buffer::output})
      most = std::max<std::int64_t>(most, comm::callers_chunks(program, rank, buffer));
  return most;
}

// Not longer than a message can be, because every connection allocates this much per slot.
std::int64_t slot_bytes(const CollectiveTrial& trial) {
  std::int64_t most = 1;
  for (const collective::RankProgram& rank : trial.program->ranks)
    for (const collective::Threadblock& block : rank.blocks)
      for (const collective::Step& step : block.steps) most = std::max<std::int64_t>(most, step.count);
  const std::int64_t chunk = message_bytes(trial) / message_chunks(*trial.program) + 16;
  return std::min(
      trial.slot_bytes,
      std::max(kLeastSlotBytes, chunk > trial.slot_bytes / most ? trial.slot_bytes : chunk * most));
}

Status drive(comm::Operation& operation, transport::Endpoint& endpoint, const transport::Job& job) {
  auto last_move = Clock::now();
  for (;;) {
    const std::uint32_t seen = endpoint.signal();
    const comm::Progress progress = operation.step();
    if (progress == comm::Progress::done) return {};
    if (progress == comm::Progress::failed) return operation.error();
    const bool moved = progress == comm::Progress::moved || endpoint.progress();
    if (moved) {
      last_move = Clock::now();
      continue;
    }
    const auto still = Clock::now() - last_move;
    for (const transport::Death& death : job.deaths())
      // A rank that left normally may have sent everything already.
      if (!death.left || still > kFarewell)
        return environment_error(fmt::format("rank {} failed: {}", death.rank, death.how));
    if (still > job.timeout()) {
      const std::int32_t peer = operation.waiting_for();
      return environment_error(fmt::format(
          "rank {} has waited for {} ms{}, {} of {} chunks done", endpoint.rank(), job.timeout().count(),
          peer < 0 ? "" : fmt::format(" for rank {}", peer), operation.pieces_done(), operation.pieces()));
    }
    endpoint.wait(seen, kLookUp);
  }
}

std::int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

}  // namespace

double median_seconds(std::span<const TrialOutcome> ranks) {
  std::vector<double> seconds;
  for (std::size_t turn = 0; turn < ranks.front().begins.size(); ++turn) {
    std::int64_t begin = ranks.front().begins[turn], end = ranks.front().ends[turn];
    for (const TrialOutcome& rank : ranks) {
      begin = std::max(begin, rank.begins[turn]);
      end = std::max(end, rank.ends[turn]);
    }
    seconds.push_back(static_cast<double>(end - begin) * 1e-9);
  }
  return seconds.empty() ? 0 : median(std::move(seconds));
}

CollectiveTrial with_bytes(CollectiveTrial trial, std::int64_t bytes) {
  const collective::Collective& collective = trial.program->collective;
  const std::int64_t elements = bytes / static_cast<std::int64_t>(device::size_of(trial.type));
  const std::int64_t a_chunk = elements / message_chunks(*trial.program);
  trial.counts.clear();
  if (collective.kind == Kind::custom) {
    trial.count = a_chunk;
  } else if (!collective.counts.empty()) {
    for (const std::int32_t chunks : collective.counts) trial.counts.push_back(chunks * a_chunk);
  } else {
    trial.count = elements / (collective::has_block_per_rank(collective.kind) ? collective.ranks : 1);
  }
  return trial;
}

std::int64_t message_bytes(const CollectiveTrial& trial) {
  if (trial.program->collective.kind == Kind::custom)
    return trial.count * message_chunks(*trial.program) *
           static_cast<std::int64_t>(device::size_of(trial.type));
  return comm::message_bytes(call_of(trial), trial.program->collective.ranks);
}

namespace {

Result<TrialOutcome> run_alone(const CollectiveTrial& trial, transport::Endpoint& endpoint,
                               const transport::Job& job) {
  const transport::Capacity capacity{.slots = std::max(trial.slots, transport::Capacity{}.slots),
                                     .slot_bytes = slot_bytes(trial)};
  WEFT_TRY(ready, comm::ReadyProgram::open(trial.program, endpoint, capacity));
  TrialBuffers buffers(trial, endpoint.rank());
  WEFT_TRY_STATUS(comm::check(buffers.call(), endpoint.ranks(), endpoint.rank()));
  TrialOutcome outcome;
  if (trial.verify) {
    WEFT_TRY(expected, expected_output(buffers.what(), endpoint.rank()));
    buffers.fill(Values::exact);
    const std::uint64_t input = checksum_of(buffers.input());
    WEFT_TRY_STATUS(drive(*ready->start(buffers.call()), endpoint, job));
    compare(buffers, expected, outcome);
    if (!trial.in_place && checksum_of(buffers.input()) != input && outcome.wrong++ == 0)
      outcome.first_wrong = fmt::format("the input of rank {} was changed", endpoint.rank());
  }
  for (std::int32_t turn = 0; turn <= trial.repeat; ++turn) {
    // In place, the previous result has overwritten the input.
    if (turn == 0 || trial.in_place) buffers.fill(Values::rough);
    const std::int64_t begin = nanoseconds();
    WEFT_TRY_STATUS(drive(*ready->start(buffers.call()), endpoint, job));
    if (turn > 0) {
      outcome.begins.push_back(begin);
      outcome.ends.push_back(nanoseconds());
    }
    if (turn > 0 && turn < trial.repeat) continue;
    const std::uint64_t sum = checksum_of(buffers.output());
    if (turn > 0 && sum != outcome.checksum && outcome.wrong++ == 0)
      outcome.first_wrong = fmt::format("two runs gave different bits on rank {}", endpoint.rank());
    outcome.checksum = sum;
  }
  return outcome;
}

Result<std::unique_ptr<transport::Endpoint>> make_endpoint(std::shared_ptr<transport::Job> job,
                                                           std::string_view transport) {
  std::vector<std::int32_t> members(static_cast<std::size_t>(job->ranks()));
  std::iota(members.begin(), members.end(), 0);
  constexpr std::uint64_t kGroup = 1;
  if (transport == "inproc") return transport::inproc::make_endpoint(std::move(job), members, kGroup);
  if (transport == "shm") return transport::shm::make_endpoint(std::move(job), members, kGroup);
  return transport::tcp::make_endpoint(std::move(job), members, kGroup);
}

std::string to_text(const Result<TrialOutcome>& outcome) {
  nlohmann::json json;
  if (!outcome.ok()) {
    json["fault"] = static_cast<int>(outcome.error().fault);
    json["error"] = outcome.error().message;
    json["hint"] = outcome.error().hint;
  } else {
    json["begins"] = outcome->begins;
    json["ends"] = outcome->ends;
    json["wrong"] = outcome->wrong;
    json["first_wrong"] = outcome->first_wrong;
    json["checksum"] = outcome->checksum;
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<TrialOutcome> from_text(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.contains("error"))
      return Error{read_fault(json.at("fault")), json.at("error"), json.at("hint"), {}, nullptr};
    return TrialOutcome{json.at("begins"), json.at("ends"), json.at("wrong"), json.at("first_wrong"),
                        json.at("checksum")};
  } catch (const nlohmann::json::exception&) {
    return environment_error("cannot read the report of a rank", "run the same weft on all hosts");
  }
}

}  // namespace

Result<std::vector<TrialOutcome>> run_trial(const CollectiveTrial& trial,
                                            const std::shared_ptr<transport::Job>& job,
                                            std::string_view transport) {
  Result<std::unique_ptr<transport::Endpoint>> endpoint = make_endpoint(job, transport);
  const Result<TrialOutcome> mine =
      endpoint.ok() ? run_alone(trial, **endpoint, *job) : Result<TrialOutcome>(endpoint.error());
  // Shares outcomes, including failures, with all ranks; no rank exits before all have reported.
  std::vector<std::int32_t> members(static_cast<std::size_t>(job->ranks()));
  std::iota(members.begin(), members.end(), 0);
  auto reports = job->exchange(members, {.group = 0, .number = kReports}, {to_text(mine), -1});
  if (!mine.ok()) return mine.error();
  if (!reports.ok()) return reports.error();
  std::vector<TrialOutcome> outcomes;
  for (const transport::Parcel& report : *reports) {
    WEFT_TRY(outcome, from_text(report.bytes));
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

Result<std::vector<TrialOutcome>> run_trial_on_threads(const CollectiveTrial& trial,
                                                       std::chrono::milliseconds timeout) {
  const std::int32_t ranks = trial.program->collective.ranks;
  auto jobs = transport::make_thread_jobs(ranks, timeout);
  std::vector<std::optional<Result<std::vector<TrialOutcome>>>> outcomes(jobs.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < jobs.size(); ++rank)
      threads.emplace_back([&, rank] {
        const std::shared_ptr<transport::Job> job = std::move(jobs[rank]);
        outcomes[rank] = run_trial(trial, job, "inproc");
      });
  }
  // Returns the first error, by rank.
  for (auto& outcome : outcomes)
    if (!outcome->ok()) return std::move(*outcome);
  return std::move(*outcomes.front());
}

}  // namespace weft::run
