// Chooses how to run a call, and opens what the choice needs on first use.

#include <algorithm>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/base/hash.h"
#include "weft/base/units.h"
#include "weft/collectives/check/check.h"
#include "weft/communication/comm/chunk/program_store.h"
#include "weft/communication/comm/group.h"

namespace weft::comm {
namespace {

bool takes(const collective::Program& program, Kind kind, std::int32_t root, std::int64_t bytes) {
  const collective::Collective& collective = program.collective;
  return collective.kind == kind && (!has_root(kind) || collective.root == root) &&
         collective.counts.empty() && bytes >= program.min_bytes &&
         (program.max_bytes == 0 || bytes <= program.max_bytes);
}

// Connections have the slots that the program was proven to need, and enough to keep both ends
// busy.
transport::Capacity capacity_for(const collective::Program& program, TransportKind transport) {
  const collective::Report report = collective::check(program);
  const bool sockets = transport == TransportKind::tcp || transport == TransportKind::mpi;
  return {.slots = std::max(4, report.slots), .slot_bytes = sockets ? 512 << 10 : 128 << 10};
}

// Smallest message between machines: a shorter one would cost more to send than it saves in idle
// link time.
constexpr std::int64_t kLeastPiece = 32 << 10;

}  // namespace

std::size_t Communicator::State::QuestionHash::operator()(const Question& question) const {
  return static_cast<std::size_t>(
      mix(static_cast<std::uint64_t>(question.bytes) * 64 + static_cast<std::uint64_t>(question.root) * 4096 +
          static_cast<std::uint64_t>(question.kind) * 4 + static_cast<std::uint64_t>(question.priority) +
          (static_cast<std::uint64_t>(question.algorithm.number) << 48)));
}

void Communicator::State::apply_installed(std::uint64_t number) {
  for (Installed& news : agreement->take_installed(number)) installed.push_back(std::move(news));
  forget_decisions();
}

void Communicator::State::forget_decisions() {
  decisions.clear();
  last_decision.second = nullptr;
}

Result<Runner*> Communicator::State::runner_of(std::shared_ptr<const collective::Program> program,
                                               Priority priority) {
  const auto key = std::pair(program, priority);
  if (const auto found = programs.find(key); found != programs.end()) return found->second.runner.get();
  WEFT_TRY(ready, ReadyProgram::open(program, *endpoint, capacity_for(*program, transport),
                                     hosts > 1 ? kLeastPiece : 0));
  OpenProgram& open = programs[key];
  open.ready = std::move(ready);
  open.runner = program_runner(*open.ready, *endpoint_source);
  return open.runner.get();
}

Status Communicator::State::check_algorithm(std::string_view algorithm, Kind kind, std::int32_t root) const {
  if (algorithm.starts_with(kDirect)) {
    if (!direct)
      return user_error(fmt::format("{} needs ranks that share memory", algorithm), "shm or inproc");
    if (!find_direct_algorithm(algorithm) && algorithm != kDirect)
      return user_error(fmt::format("no such algorithm: {}", algorithm));
    return {};
  }
  // Between hosts, a threadblock that sends should not wait for a receive.
  WEFT_TRY(program, program_for(algorithm, static_cast<std::int32_t>(members.size()), root, hosts == 1));
  if (program->collective.kind != kind)
    return user_error(fmt::format("{} is not an algorithm for {}", algorithm, collective::name(kind)));
  return {};
}

Result<Runner*> Communicator::State::runner_of(const std::string& algorithm, const Call& call,
                                               std::optional<bool> in_place) {
  WEFT_TRY_STATUS(check_algorithm(algorithm, call.kind, call.root));
  if (algorithm.starts_with(kDirect)) {
    DirectOptions wish(find_direct_algorithm(algorithm));
    if (in_place) wish.in_place = in_place;
    std::unique_lock lock(sending, std::defer_lock);
    if (options.several_threads) lock.lock();
    auto& runner = direct_runners[{wish.way, wish.in_place}];
    if (!runner) runner = direct_runner(*direct, *direct_source, wish);
    return runner.get();
  }
  WEFT_TRY(program, program_for(algorithm, static_cast<std::int32_t>(members.size()), call.root, hosts == 1));
  return runner_of(std::move(program), call.priority);
}

Runner* Communicator::State::pair_with(std::int32_t other) {
  const std::lock_guard lock(sending);
  OpenPair& known = pairs[other];
  if (known.runner) return known.runner.get();
  known.pair = std::make_unique<Pair>();
  known.pair->other = other;
  known.runner = pair_runner(*known.pair, *endpoint_source, rank);
  const auto open = [this, &pair = *known.pair] {
    const std::int32_t lower = std::min(rank, pair.other), upper = std::max(rank, pair.other);
    const std::vector<std::int32_t> two = {members[static_cast<std::size_t>(lower)],
                                           members[static_cast<std::size_t>(upper)]};
    const std::uint64_t name =
        mix(id ^ mix(static_cast<std::uint64_t>(lower) << 32 | static_cast<std::uint64_t>(upper)));
    pair.opened = pair.open(make_endpoint(two, name), rank == lower);
    pair.is_open.store(true, std::memory_order_release);
  };
  try {
    openers.emplace_back([this, open] {
      open();
      engine->begin_opened();
    });
  } catch (const std::system_error&) {  // no more threads: the caller blocks
    open();
  }
  return known.runner.get();
}

Result<const Decision*> Communicator::State::decide(const Call& call, std::uint64_t number) {
  if (agreement->has_news(number)) apply_installed(number);
  const auto ranks = static_cast<std::int32_t>(members.size());
  const Question question{.kind = call.kind,
                          .priority = call.priority,
                          .algorithm = call.algorithm,
                          .root = has_root(call.kind) ? call.root : 0,
                          .bytes = message_bytes(call, ranks),
                          .uneven = !call.counts.empty()};
  if (last_decision.second != nullptr && last_decision.first == question) return last_decision.second;
  if (const auto found = decisions.find(question); found != decisions.end()) {
    last_decision = {question, &found->second};
    return &found->second;
  }

  Decision decision;
  const bool is_named = call.algorithm != NamedAlgorithm();
  const auto newest = std::find_if(installed.rbegin(), installed.rend(), [&](const Installed& one) {
    return !is_named && !question.uneven && takes(*one.program, call.kind, call.root, question.bytes);
  });
  if (newest != installed.rend()) {
    decision.algorithm = newest->program->name;
    decision.why = fmt::format("installed at call {}", newest->from_call);
    WEFT_TRY(runner, runner_of(newest->program, call.priority));
    decision.runner = runner;
  } else {
    const Setting setting{.kind = call.kind,
                          .ranks = ranks,
                          .hosts = hosts,
                          .transport = std::string(name(transport)),
                          .allocated = false};
    std::optional<bool> in_place;
    if (is_named) {
      WEFT_CHECK(call.algorithm.number <= named.size(), "an algorithm that this communicator did not name");
      decision.algorithm = named[call.algorithm.number - 1];
      decision.why = "requested by the call";
    } else if (!options.algorithm.empty()) {
      decision.algorithm = options.algorithm;
      decision.why = "requested";
    } else {
      Choice choice = table.choose_for_group(setting, question.bytes);
      if (choice.algorithm.empty()) {
        return user_error(fmt::format("no algorithm for {} with {} ranks over {}",
                                      collective::name(call.kind), ranks, name(transport)));
      }
      decision.algorithm = std::move(choice.algorithm);
      decision.why = std::move(choice.why);
      in_place = choice.in_place;
      decision.seconds = choice.seconds;
    }
    WEFT_TRY(runner, runner_of(decision.algorithm, call, in_place));
    decision.runner = runner;
  }
  const Decision& kept = decisions.insert_or_assign(question, std::move(decision)).first->second;
  if (options.explain && options.on_explain) {
    options.on_explain(fmt::format("call {}: {}, {}: {} ({})", number, describe(call),
                                   print_bytes(static_cast<double>(question.bytes)), kept.algorithm,
                                   kept.why));
  }
  last_decision = {question, &kept};
  return &kept;
}

}  // namespace weft::comm
