// Opens a communicator: transport, shared memory and choice table.

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/communication/comm/group.h"
#include "weft/communication/comm/group_order.h"
#include "weft/communication/transport/inproc/endpoint.h"
#include "weft/communication/transport/machine_ranks.h"
#include "weft/communication/transport/mixed/endpoint.h"
#include "weft/communication/transport/mpi/endpoint.h"
#include "weft/communication/transport/shm/endpoint.h"
#include "weft/communication/transport/tcp/endpoint.h"

namespace weft::comm {
namespace {

using transport::Job;
using transport::Parcel;
using transport::Segment;

// Topics of a group's own exchanges; those of endpoints are far above.
enum : std::uint64_t { kOpening = 1, kSegment = 2 };

bool is_one_process(const Job& job, const std::vector<std::int32_t>& members) {
  return std::ranges::all_of(members, [&](std::int32_t member) {
    return job.member(member).process == job.member(members.front()).process;
  });
}

Result<TransportKind> pick(TransportKind wanted, const transport::Hosts& hosts, bool one_process) {
  switch (wanted) {
    case TransportKind::automatic:
    case TransportKind::mixed:  // a subset of a mixed group may be on one host
      if (hosts.is_mixed()) return TransportKind::mixed;
      if (hosts.count > 1) return TransportKind::tcp;
      return one_process ? TransportKind::inproc : TransportKind::shm;
    case TransportKind::shm:
      if (hosts.count == 1) return wanted;
      return user_error(
          fmt::format("shared memory needs all ranks on one machine, found {} machines", hosts.count),
          "use automatic (shared memory within a machine, tcp across) or tcp");
    case TransportKind::inproc:
      if (hosts.count == 1 && one_process) return wanted;
      return user_error("inproc is for ranks that are threads of one process", "shm or tcp for processes");
    default: return wanted;
  }
}

// Checks that all ranks agree on the options, and distributes rank 0's choice table.
Status open_together(Communicator::State& state) {
  Parcel mine;
  if (state.rank == 0) {
    LoadedChoices loaded = load_choices(state.options.statistics);
    if (!loaded.trouble.empty() && state.options.on_explain) state.options.on_explain(loaded.trouble);
    loaded.table.keep_only(name(state.transport), static_cast<std::int32_t>(state.members.size()));
    mine.bytes =
        fmt::format("{}\n{}\n", name(state.transport), state.options.algorithm) + loaded.table.print();
  } else {
    mine.bytes = fmt::format("{}\n{}\n", name(state.transport), state.options.algorithm);
  }
  WEFT_TRY(all, exchange(*state.membership->job, state.members, {state.id, kOpening}, mine));
  const std::string& first = all.front().bytes;
  const std::size_t head = first.find('\n', first.find('\n') + 1) + 1;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].bytes == std::string_view(first).substr(0, head)) continue;
    return user_error(fmt::format("ranks 0 and {} disagree on the transport or algorithm: {} and {}", i,
                                  std::string_view(first).substr(0, first.find('\n')),
                                  std::string_view(all[i].bytes).substr(0, all[i].bytes.find('\n'))),
                      "give the same options on every rank");
  }
  WEFT_TRY(table, ChoiceTable::parse(std::string_view(first).substr(head)));
  state.table = std::move(table);
  return {};
}

// Rank 0 creates the segment, the others map it.
Status open_shared_memory(Communicator::State& state) {
  const DirectTuning tuning;
  const auto ranks = static_cast<std::int32_t>(state.members.size());
  const std::size_t bytes = DirectGroup::segment_bytes(ranks, tuning);
  Segment segment;
  Parcel mine;
  Status made;
  if (state.rank == 0) {
    Result<Segment> created = Segment::create(bytes, transport::Backing::full);
    if (created.ok()) {
      segment = std::move(created).value();
      mine.descriptor = segment.descriptor();
    } else {
      made = std::move(created).error();
      mine.bytes = made.error().message;  // so that no rank waits for it in vain
    }
  }
  WEFT_TRY(all, exchange(*state.membership->job, state.members, {state.id, kSegment}, mine));
  WEFT_TRY_STATUS(made);
  if (!all.front().bytes.empty()) return environment_error(fmt::format("rank 0: {}", all.front().bytes));
  if (state.rank != 0) {
    WEFT_TRY(mapped, Segment::map(all.front().descriptor, bytes));
    segment = std::move(mapped);
  }
  state.direct = DirectGroup::attach(std::move(segment), state.rank, ranks, tuning,
                                     state.transport == TransportKind::inproc);
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const auto heap = state.membership->heaps.find(state.members[static_cast<std::size_t>(rank)]);
    if (heap == state.membership->heaps.end()) continue;
    WEFT_TRY(again, Segment::map(fcntl(heap->second.descriptor(), F_DUPFD_CLOEXEC, 0), heap->second.size()));
    state.direct->add_heap(rank, 0, std::move(again));
  }
  state.direct_source = source_of(*state.direct);
  return {};
}

}  // namespace

Result<std::unique_ptr<transport::Endpoint>> Communicator::State::make_endpoint(
    const std::vector<std::int32_t>& of, std::uint64_t group) const {
  const std::shared_ptr<Job>& job = membership->job;
  std::vector<std::int32_t> sorted = of;
  std::sort(sorted.begin(), sorted.end());
  const auto over_sockets = [&] { return transport::tcp::make_endpoint(job, sorted, group); };
  const auto make = [&]() -> Result<std::unique_ptr<transport::Endpoint>> {
    switch (transport) {
      case TransportKind::inproc: return transport::inproc::make_endpoint(job, sorted, group);
      case TransportKind::tcp: return over_sockets();
      case TransportKind::mpi: return transport::mpi::make_endpoint(job, sorted, group);
      case TransportKind::mixed: {
        const transport::Hosts those = transport::find_hosts(*job, sorted);  // a pair uses only one of them
        if (those.is_mixed()) return transport::mixed::make_endpoint(job, sorted, group);
        if (those.count > 1) return over_sockets();
        return transport::shm::make_endpoint(job, sorted, group);
      }
      default: return transport::shm::make_endpoint(job, sorted, group);
    }
  };
  WEFT_TRY(made, make());
  return in_group_order(std::move(made), of);
}

Communicator::State::~State() { close(); }

void Communicator::State::close() {
  if (engine) engine->stop();
  std::unique_lock lock(sending);
  std::vector<std::thread> opening = std::exchange(openers, {});
  lock.unlock();
  for (std::thread& opener : opening) opener.join();
  if (death_listener != 0) membership->job->forget(std::exchange(death_listener, 0));
  if (const auto settled = std::exchange(agreement, nullptr)) settled->end();
  if (const auto emptied = std::exchange(box, nullptr)) emptied->close();
}

void Communicator::State::hear_of(const transport::Death& death) {
  const auto found = std::find(members.begin(), members.end(), death.rank);
  if (found == members.end()) return;
  const auto who = static_cast<std::int32_t>(found - members.begin());
  if (death.left) {
    engine->expect_failure(who, environment_error(fmt::format("rank {} has left the group", who),
                                                  "every rank must make the same calls before it leaves"));
    return;
  }
  if (direct) direct->poison(who, kPoisonedByFailure);
  engine->fail(environment_error(fmt::format("rank {} failed: {}", who, death.how),
                                 "call shrink() to make a group of the surviving ranks"),
               Cause::death);
}

Result<std::shared_ptr<Communicator::State>> open_group(std::shared_ptr<Membership> membership,
                                                        std::vector<std::int32_t> members, std::uint64_t id,
                                                        const Options& options) {
  auto state = std::make_shared<Communicator::State>();
  Job& job = *membership->job;
  state->membership = std::move(membership);
  state->recorder = state->membership->add_recorder();
  state->rank =
      static_cast<std::int32_t>(std::find(members.begin(), members.end(), job.rank()) - members.begin());
  state->members = std::move(members);
  state->id = id;
  state->options = options;
  const transport::Hosts hosts = transport::find_hosts(job, state->members);
  state->hosts = hosts.count;
  WEFT_TRY(kind, pick(options.transport, hosts, is_one_process(job, state->members)));
  state->transport = kind;
  WEFT_TRY_STATUS(open_together(*state));
  if (kind == TransportKind::shm || kind == TransportKind::inproc)
    WEFT_TRY_STATUS(open_shared_memory(*state));
  WEFT_TRY(endpoint, state->make_endpoint(state->members, id));
  state->endpoint = std::move(endpoint);
  state->endpoint_source = source_of(*state->endpoint);

  state->agreement =
      Agreement::create(state->membership->job, state->members, state->rank, id, *state->recorder);
  Agreement* const agreement = state->agreement.get();
  state->engine = std::make_shared<Engine>(
      Engine::Options{.group = id,
                      .ranks = static_cast<std::int32_t>(state->members.size()),
                      .metrics = state->membership->add_metrics(),
                      .background = options.background,
                      .on_stuck = [agreement](const Call& call,
                                              std::uint64_t number) { agreement->ask_about(call, number); },
                      .on_failure = [agreement](const Error& error,
                                                Cause cause) { agreement->tell_broken(error, cause); },
                      .is_held = [agreement](std::uint64_t number) { return agreement->is_held(number); }},
      *state->recorder);
  state->agreement->begin(state->engine);
  const std::weak_ptr<Communicator::State> weak = state;
  state->death_listener = job.on_death([weak](const transport::Death& death) {
    if (const auto alive = weak.lock()) alive->hear_of(death);
  });
  for (const transport::Death& death : job.deaths()) state->hear_of(death);
  return state;
}

}  // namespace weft::comm
