#include "weft/communication/comm/choice/candidates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "weft/collectives/algorithm/claims.h"
#include "weft/collectives/algorithm/evaluation.h"
#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/synthesis/named_trees.h"
#include "weft/communication/comm/inter_host.h"

namespace weft::comm {
namespace {

constexpr std::int64_t kSmallestForChannels = 64 << 10;  // below, a second channel only adds cost
constexpr std::int64_t kLargestOneShot = 4 << 20;        // above, one-shot all_reduce never pays
constexpr std::int32_t kMostTracedRanks = 64;            // tracing is quadratic in ranks
constexpr std::int32_t kMostCountedRanks = 16;           // up to this many, takes less than a millisecond
// Seconds to start a program. A round figure: all_gather and all_to_all of 4 KiB among 2 ranks took
// 0.4 to 0.5 us longer with a program than directly.
constexpr double kProgramCall = 0.5e-6;
// Cost of a message for sender and receiver together, in steps. On 2 cores, 4 ranks took 2.5 to 3.5
// us per message for 6 to 48 messages over TCP, regardless of the number of steps; 2 ranks swap two
// messages in 5.4 us.
constexpr double kMessageShare = 1.1;
// Share of the time of sequentially dependent bytes that is lost: 4 and 8 ranks on 2 cores over
// TCP.
constexpr double kIdleInARow = 0.25;
// The sender's share of the cost per byte sent: the sender also copies it into the receiver's
// socket. A rank that only sent 1 MiB took 200 us; two ranks that swapped 1 MiB took 270 us.
constexpr double kSendersShare = 0.7;
// Reads per chunk: for one reduced as it arrives, and for one staged in scratch memory first.
// Between hosts the second does not count, since the ranks wait for the network anyway.
constexpr double kReadsOnArrival = 2, kReadsFromScratch = 3;

// Bytes per block. Below this, the system calls of a single copy cost more than any copy.
constexpr std::int64_t kLeastSingleCopy = 16 << 10;
// A copy by process_vm_readv costs as much as this many plain copies, since it pins every page: a
// round figure.
constexpr double kKernelCopies = 2.5;

// A network without measurements is assumed to have 100 us one-way latency and 10 Gbit/s. Round
// figures: the choice depends on their product, which is also 125 KB for 1 ms and 1 Gbit/s.
constexpr double kNetworkStep = 100e-6, kNetworkWire = 0.8e-9;
constexpr double kNetworkPiece = 128 << 10;  // bytes that must arrive before they are forwarded
// Bytes per wait if slices are sequential. Slices have 32 to 512 KiB, and long ones hide part of
// the wait.
constexpr double kPieceInTurn = 64 << 10;

// Work of a call of M bytes. A message counts half at its sender and half at its receiver. Bytes
// are fractions of M; a byte sent counts in part at each end.
struct Load {
  double messages = 0;
  double wire = 0, copied = 0, reduced = 0;
};

Load multiplied(double factor, const Load& load) {
  return {factor * load.messages, factor * load.wire, factor * load.copied, factor * load.reduced};
}

struct CandidateWork {
  double steps = 0;
  Load rank;                  // of the busiest rank
  Load all;                   // total over all ranks
  double chunk = 1;           // as a fraction of M
  InterHost inter_host = {};  // if there are several hosts
};

// For algorithms in which all ranks do the same work.
CandidateWork alike(double ranks, double steps, const Load& load) {
  return {.steps = steps, .rank = load, .all = multiplied(ranks, load)};
}

bool shares_memory(const Setting& setting) {
  return setting.hosts == 1 && (setting.transport == "shm" || setting.transport == "inproc");
}

// Bytes that one rank writes to its mailbox.
std::int64_t mailbox_bytes(const Setting& setting, std::int64_t bytes) {
  const bool one_block = setting.kind == Kind::all_gather || setting.kind == Kind::gather;
  return one_block ? bytes / setting.ranks : bytes;
}

// Kinds whose reduced shares must be gathered afterwards: these have a two-shot algorithm.
bool has_two_shots(Kind kind) { return kind == Kind::all_reduce || kind == Kind::reduce; }

std::vector<DirectAlgorithm> direct_algorithms(const Setting& setting, std::int64_t bytes) {
  std::vector<DirectAlgorithm> ways;
  if (mailbox_bytes(setting, bytes) <= DirectTuning{}.mailbox_bytes) ways.push_back(DirectAlgorithm::mailbox);
  if (setting.kind == Kind::barrier) return ways;
  if (!has_two_shots(setting.kind) || bytes <= kLargestOneShot) ways.push_back(DirectAlgorithm::one_shot);
  if (has_two_shots(setting.kind)) ways.push_back(DirectAlgorithm::two_shot);
  if (setting.allocated) ways.push_back(DirectAlgorithm::in_place);
  // Threads access each other's buffers directly; for kinds with two shots, the ranks find out at
  // run time.
  const std::int64_t block = collective::has_block_per_rank(setting.kind) ? bytes / setting.ranks : bytes;
  if (!has_two_shots(setting.kind) && !setting.allocated && setting.transport == "shm" &&
      block >= kLeastSingleCopy)
    ways.push_back(DirectAlgorithm::single_copy);
  return ways;
}

// Copies per byte through shared memory: every rank copies in what others need and copies out what
// it needs.
double staged_copies(Kind kind, double ranks) {
  const double others = (ranks - 1) / ranks;
  switch (kind) {
    case Kind::all_gather: return 1 + 1 / ranks;
    case Kind::all_to_all: return 1 + others;
    case Kind::reduce_scatter:
    case Kind::reduce: return others;
    case Kind::all_reduce: return 2 * others;
    case Kind::barrier: return 0;
    default: return 1;
  }
}

CandidateWork direct_work(DirectAlgorithm way, const Setting& setting) {
  const double ranks = setting.ranks;
  const double staged = staged_copies(setting.kind, ranks);
  const bool sums = collective::reduces(setting.kind);
  const double reduced = sums ? 1 : 0;
  // In a one-shot all_reduce, every rank copies in all of its input and reduces all inputs.
  const bool everything = setting.kind == Kind::all_reduce;
  switch (way) {
    case DirectAlgorithm::mailbox:
    case DirectAlgorithm::one_shot:
      return alike(ranks, way == DirectAlgorithm::mailbox ? 1 : 2,
                   {.copied = everything ? 1 : staged, .reduced = everything ? ranks : reduced});
    case DirectAlgorithm::two_shot: return alike(ranks, 3, {.copied = staged, .reduced = reduced});
    case DirectAlgorithm::in_place: return alike(ranks, 2, {.copied = 1 - reduced, .reduced = reduced});
    case DirectAlgorithm::single_copy: return alike(ranks, 2, {.copied = kKernelCopies, .reduced = reduced});
  }
  return {};
}

// Adds the arguments that follow from the setting.
collective::Arguments arguments_of(const collective::Algorithm& algorithm, const Setting& setting,
                                   collective::Arguments given) {
  for (const auto& parameter : algorithm.parameters()) {
    if (parameter.name == "ranks") given["ranks"] = std::int64_t{setting.ranks};
  }
  return given;
}

// Inter-host schemes besides rings: those with the fewest steps among counterparts on all hosts. A
// two-step all_reduce is all_reduce_hierarchical_streamed, which leaves no link idle between the
// steps.
std::vector<std::string_view> schemes_across(Kind kind) {
  if (kind == Kind::all_reduce) return {"all_pairs_one_shot"};
  if (kind == Kind::broadcast) return {"linear"};
  return {"all_pairs"};
}

// A reference without empty parentheses.
std::string short_name(const collective::AlgorithmReference& reference) {
  return reference.arguments.empty() ? reference.name : print(reference);
}

// Sums up the work of the moves.
CandidateWork counted(const collective::Moves& moves, bool inter_host) {
  CandidateWork work;
  work.steps = static_cast<double>(collective::measure(moves).steps);
  work.chunk =
      1.0 / static_cast<double>(std::max<std::int64_t>(collective::loop_chunks(moves.collective), 1));
  std::vector<Load> loads(static_cast<std::size_t>(moves.collective.ranks));
  for (const collective::Move& move : moves.moves) {
    Load& from = loads[static_cast<std::size_t>(move.from.rank)];
    Load& to = loads[static_cast<std::size_t>(move.to.rank)];
    const double share = move.count * work.chunk;
    if (!move.local()) {
      from.messages += 0.5, to.messages += 0.5;
      from.wire += share * kSendersShare, to.wire += share * (1 - kSendersShare);
    }
    if (move.verb == collective::Move::Verb::reduce) {
      to.reduced += share * (move.local() && !inter_host ? kReadsFromScratch : kReadsOnArrival);
    } else if (move.local()) {
      to.copied += share;
    }
  }
  for (const Load& load : loads) {
    const auto add = [&](double Load::*part) {
      work.rank.*part = std::max(work.rank.*part, load.*part);
      work.all.*part += load.*part;
    };
    for (const auto part : {&Load::messages, &Load::wire, &Load::copied, &Load::reduced}) add(part);
  }
  return work;
}

// The work that the algorithm claims for the rank that sends most, assumed for all ranks.
std::optional<CandidateWork> claimed(const collective::Algorithm& algorithm,
                                     const collective::Arguments& arguments, const Setting& setting) {
  const auto claims = collective::claims(algorithm, arguments);
  if (!claims.ok() || !claims->steps || !claims->wire) return std::nullopt;
  collective::Progress progress{collective::TraceLimits{}.work, {}};
  collective::Evaluation values(algorithm.syntax(), progress);
  if (!values.bind(arguments)) return std::nullopt;
  const std::int64_t chunks = values.number_or(algorithm.syntax().chunks, 1);
  if (values.failed() || chunks < 1 || chunks > collective::kMostMemoryChunks) return std::nullopt;
  collective::Collective collective;
  collective.kind = setting.kind;
  collective.ranks = setting.ranks;
  collective.chunks = static_cast<std::int32_t>(chunks);
  const double chunk =
      1.0 / static_cast<double>(std::max<std::int64_t>(collective::loop_chunks(collective), 1));
  const auto steps = static_cast<double>(*claims->steps), messages = static_cast<double>(*claims->wire);
  Load load{.messages = messages, .wire = messages * chunk};
  // Data received beyond a plain all-gather of the sums has been reduced; a single-step algorithm
  // gathers nothing.
  const double gathered = (setting.ranks - 1.0) / setting.ranks;
  if (collective::reduces(setting.kind)) {
    const bool gathers = setting.kind == Kind::all_reduce && steps > 1;
    load.reduced = kReadsOnArrival * std::max(gathers ? load.wire - gathered : load.wire, gathered);
  }
  CandidateWork work = alike(setting.ranks, steps, load);
  work.chunk = chunk;
  return work;
}

std::optional<CandidateWork> work_of_program(const Setting& setting, std::string_view text) {
  const auto reference = collective::parse_reference(text);
  if (!reference.ok()) return std::nullopt;
  if (synthesis::kind_of_trees(reference->name) == setting.kind) {
    collective::AlgorithmReference trees = *reference;
    trees.arguments.try_emplace("ranks", std::int64_t{setting.ranks});
    const auto moves = synthesis::named_trees(trees);
    if (!moves.ok()) return std::nullopt;
    return counted(*moves, setting.hosts > 1);
  }
  const auto* algorithm = collective::shipped_algorithms().find(reference->name);
  if (algorithm == nullptr || algorithm->kind() != setting.kind) return std::nullopt;
  const auto arguments = arguments_of(*algorithm, setting, reference->arguments);
  const bool inter_host = setting.hosts > 1 && setting.ranks % setting.hosts == 0;
  std::optional<CandidateWork> work;
  if (setting.ranks > (inter_host ? kMostTracedRanks : kMostCountedRanks))
    work = claimed(*algorithm, arguments, setting);
  if (!work && setting.ranks <= kMostTracedRanks) {
    const auto moves = collective::trace(*algorithm, arguments, collective::shipped_algorithms());
    if (!moves.ok()) return std::nullopt;
    work = counted(*moves, inter_host);
    if (inter_host) work->inter_host = inter_host_of(*moves, setting.hosts);
  }
  // A rank copies its block for itself locally; the moves contain this only for out-of-place
  // programs.
  if (work && (setting.kind == Kind::all_gather || setting.kind == Kind::all_to_all)) {
    work->rank.copied = std::max(work->rank.copied, 1.0 / setting.ranks);
    work->all.copied = std::max(work->all.copied, 1.0);
  }
  return work;
}

// Cached, since it is queried again for every message size.
std::optional<CandidateWork> program_work(const Setting& setting, std::string_view text) {
  static std::mutex mutex;
  static std::map<std::tuple<Kind, std::int32_t, std::int32_t, std::string>, std::optional<CandidateWork>>
      known;
  const std::scoped_lock lock(mutex);
  const auto [at, is_new] =
      known.try_emplace({setting.kind, setting.ranks, setting.hosts, std::string(text)});
  if (is_new) at->second = work_of_program(setting, text);
  return at->second;
}

}  // namespace

std::optional<DirectAlgorithm> find_direct_algorithm(std::string_view algorithm) {
  for (std::size_t index = 0; index < kDirectAlgorithms; ++index)
    if (algorithm == name(static_cast<DirectAlgorithm>(index))) return static_cast<DirectAlgorithm>(index);
  return std::nullopt;
}

DirectAlgorithm beside_in_place(Kind kind) {
  return has_two_shots(kind) ? DirectAlgorithm::two_shot : DirectAlgorithm::one_shot;
}

std::vector<std::string> candidates_for(const Setting& setting, std::int64_t bytes) {
  std::vector<std::string> names;
  if (shares_memory(setting)) {
    names.emplace_back(kDirect);
    for (const DirectAlgorithm way : direct_algorithms(setting, bytes)) names.emplace_back(name(way));
  }
  const auto& library = collective::shipped_algorithms();
  for (const std::string_view each : library.names()) {
    const collective::Algorithm& algorithm = *library.find(each);
    if (algorithm.kind() != setting.kind) continue;
    collective::AlgorithmReference reference{std::string(each), {}};
    bool has_channels = false, has_counts = false, has_across = false;
    for (const auto& parameter : algorithm.parameters()) {
      if (parameter.name == "channels") has_channels = true;
      if (parameter.name == "counts") has_counts = true;
      if (parameter.name == "across") has_across = true;
      if (parameter.name == "local" && setting.hosts > 1 && setting.ranks % setting.hosts == 0)
        reference.arguments["local"] = std::int64_t{setting.ranks / setting.hosts};
    }
    if (has_counts) continue;  // for uneven blocks; even ones have better algorithms
    if (!check_arguments(algorithm, arguments_of(algorithm, setting, reference.arguments)).ok()) continue;
    names.push_back(short_name(reference));
    if (has_across && reference.arguments.contains("local")) {
      for (const std::string_view scheme : schemes_across(setting.kind)) {
        reference.arguments["across"] = std::string(scheme);
        if (check_arguments(algorithm, arguments_of(algorithm, setting, reference.arguments)).ok())
          names.push_back(short_name(reference));
      }
    }
    if (!has_channels || bytes < kSmallestForChannels) continue;
    for (const std::int64_t channels : {2, 4}) {
      reference.arguments["channels"] = channels;
      names.push_back(print(reference));
    }
  }
  std::ranges::sort(names);
  return names;
}

Formula formula_of(const Setting& setting, std::string_view algorithm, const Figures& figures) {
  if (algorithm == kDirect) {  // the lowest latency and the highest bandwidth of all
    Formula best = formula_of(setting, name(DirectAlgorithm::mailbox), figures);
    for (const DirectAlgorithm way : direct_algorithms(setting, kLargestOneShot)) {
      if (way == DirectAlgorithm::single_copy) continue;  // only if it was measured
      const Formula formula = formula_of(setting, name(way), figures);
      best = {std::min(best.intercept, formula.intercept), std::min(best.slope, formula.slope)};
    }
    return best;
  }
  const double ranks = setting.ranks;
  CandidateWork work = alike(ranks, ranks, {.messages = ranks, .wire = ranks});
  double call = 0;
  if (collective::reduces(setting.kind)) work.rank.reduced = ranks, work.all.reduced = ranks * ranks;
  if (const auto way = find_direct_algorithm(algorithm)) {
    work = direct_work(*way, setting);
  } else if (const auto program = program_work(setting, algorithm)) {
    work = *program;
    call = kProgramCall;
  }
  const double hosts = std::max(setting.hosts, 1), neighbours = ranks / hosts;
  const double cores = std::clamp(static_cast<double>(figures.cores), 1.0, std::max(neighbours, 1.0));
  const double oversubscription = std::max(neighbours / cores, 1.0);
  const double step = oversubscription > 1
                          ? std::max(figures.oversubscribed_step * oversubscription, figures.step)
                          : figures.step;
  const double message =
      kMessageShare * std::max(oversubscription > 1 ? figures.oversubscribed_step : 0, figures.step);
  // The time is set by the busiest rank or by all cores together, whichever takes longer.
  const auto busiest = [&](auto seconds) {
    return std::max(seconds(work.rank), seconds(work.all) / (hosts * cores));
  };
  const double sending = busiest([&](const Load& load) { return load.messages * message; });
  const double moving = busiest([&](const Load& load) {
    return load.wire * figures.wire + load.copied * figures.copy + load.reduced * figures.reduce;
  });
  // On oversubscribed cores, sequentially dependent bytes have no other work beside them, and part
  // of their time is lost. A broadcast is exempt: its root starts the next call while other ranks
  // are still busy with this one.
  const bool sockets = setting.transport == "tcp" || setting.transport == "mixed";
  const bool one_way = sockets && setting.kind == Kind::broadcast;
  const double in_a_row = std::max(work.rank.wire, work.steps * work.chunk);
  const double idle = oversubscription > 1 && sockets && !one_way ? kIdleInARow * in_a_row * figures.wire : 0;
  // Inter-host moves wait for the network. Ranks of a host share a link, and fragments are
  // forwarded one by one. The per-message cost of the sender is added.
  const double network_wire = std::max(figures.wire, kNetworkWire);
  const double passed_on = std::max(work.inter_host.steps - 1, 0) * work.chunk * kNetworkPiece;
  const double inter_host =
      work.inter_host.steps * std::max(figures.step, kNetworkStep) + passed_on * network_wire;
  const double in_turn =
      work.inter_host.in_turn * work.chunk / kPieceInTurn * std::max(figures.step, kNetworkStep);
  const double inside = std::max(work.steps - work.inter_host.steps, 0.0);
  // With a core of its own, a rank sends while it waits; with a shared core it can do so only part
  // of the time.
  const double latency = work.inter_host.steps > 0 ? inside * step + sending
                         : oversubscription > 1    ? std::hypot(one_way ? 0 : inside * step, sending)
                                                   : std::max(inside * step, sending);
  return {.intercept = call + inter_host + latency,
          .slope = work.inter_host.wire * network_wire + in_turn + moving + idle};
}

}  // namespace weft::comm
