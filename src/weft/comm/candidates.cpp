#include "weft/comm/candidates.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "weft/collective/claims.h"
#include "weft/collective/evaluation.h"
#include "weft/collective/library.h"
#include "weft/comm/crossing.h"

namespace weft::comm {
namespace {

constexpr std::int64_t kSmallestForChannels = 64 << 10;  // below, a second channel only costs
constexpr std::int64_t kLargestOneShot = 4 << 20;        // above, everyone reducing everything never pays
constexpr std::int32_t kMostTracedRanks = 64;            // tracing is quadratic in ranks
// Seconds to set a program going. A round figure: all_gather and all_to_all of 4 KiB among 2 ranks took 0.4
// to 0.5 us longer by a program than directly.
constexpr double kProgramCall = 0.5e-6;
// Of a step: what each message but its first costs the sender, whoever waits. A socket's cost system calls,
// which are most of what the step takes.
constexpr double kMessageShare = 0.25, kSocketShare = 0.7;

// Below, the system calls of a single copy cost more than any copy.
constexpr std::int64_t kLeastSingleCopy = 256 << 10;
// Copies that one through the kernel costs, which looks up and pins every page of 4 KiB: a round figure.
constexpr double kKernelCopies = 2.5;

// What is taken of a network that nobody has measured, or that is slower: 100 us one way, 10 Gbit/s. Round
// figures; what is chosen depends on their product, which is 125 KB on a line of 1 ms and 1 Gbit/s too.
constexpr double kNetworkStep = 100e-6, kNetworkWire = 0.8e-9;
constexpr double kNetworkPiece = 128 << 10;  // bytes that are passed on once all of them have come

// What one rank does in a call of M bytes, in shares of M.
struct Work {
  double steps = 0, messages = 0;
  double wire = 0, copied = 0, reduced = 0;
  double chunk = 1;        // a share too
  Crossing crossing = {};  // where there are several hosts
};

bool shares_memory(const Setting& setting) {
  return setting.hosts == 1 && (setting.transport == "shm" || setting.transport == "inproc");
}

bool has_sockets(const Setting& setting) {
  return setting.transport == "tcp" || setting.transport == "mixed";
}

// The bytes that one rank puts into its mailbox.
std::int64_t mailbox_bytes(const Setting& setting, std::int64_t bytes) {
  const bool one_block = setting.kind == Kind::all_gather || setting.kind == Kind::gather;
  return one_block ? bytes / setting.ranks : bytes;
}

// Where shares that were reduced apart must be brought together again: there it can be done in two shots.
bool has_two_shots(Kind kind) { return kind == Kind::all_reduce || kind == Kind::reduce; }

std::vector<DirectWay> direct_ways(const Setting& setting, std::int64_t bytes) {
  std::vector<DirectWay> ways;
  if (mailbox_bytes(setting, bytes) <= DirectTuning{}.mailbox_bytes) ways.push_back(DirectWay::mailbox);
  if (setting.kind == Kind::barrier) return ways;
  if (!has_two_shots(setting.kind) || bytes <= kLargestOneShot) ways.push_back(DirectWay::one_shot);
  if (has_two_shots(setting.kind)) ways.push_back(DirectWay::two_shot);
  if (setting.allocated) ways.push_back(DirectWay::in_place);
  // Threads reach each other's buffers as they are.
  const bool only_moves = !collective::reduces(setting.kind);
  if (only_moves && !setting.allocated && setting.transport == "shm" && bytes >= kLeastSingleCopy)
    ways.push_back(DirectWay::single_copy);
  return ways;
}

// Copies of a move through shared memory: every rank puts what others need and takes what it needs.
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

Work direct_work(DirectWay way, const Setting& setting) {
  const double ranks = setting.ranks;
  const double staged = staged_copies(setting.kind, ranks);
  const bool sums = collective::reduces(setting.kind);
  const double reduced = sums ? 1 : 0;
  // In one shot everyone puts all of its own and reduces all of everyone's.
  const bool everything = setting.kind == Kind::all_reduce;
  switch (way) {
    case DirectWay::mailbox:
    case DirectWay::one_shot:
      return {.steps = way == DirectWay::mailbox ? 1.0 : 2.0,
              .copied = everything ? 1 : staged,
              .reduced = everything ? ranks : reduced};
    case DirectWay::two_shot: return {.steps = 3, .copied = staged, .reduced = reduced};
    case DirectWay::in_place: return {.steps = 2, .copied = 1 - reduced, .reduced = reduced};
    case DirectWay::single_copy: return {.steps = 2, .copied = kKernelCopies};
  }
  return {};
}

// The arguments that the setting decides.
collective::Arguments arguments_of(const collective::Algorithm& algorithm, const Setting& setting,
                                   collective::Arguments given) {
  for (const auto& parameter : algorithm.parameters()) {
    if (parameter.name == "ranks") given["ranks"] = std::int64_t{setting.ranks};
  }
  return given;
}

// How counterparts on all hosts may do their part of a kind, besides by rings: in as few steps as can be. An
// all_reduce in two is all_reduce_hierarchical_streamed, which leaves no line idle between its steps.
std::vector<std::string_view> schemes_across(Kind kind) {
  if (kind == Kind::all_reduce) return {"all_pairs_one_shot"};
  if (kind == Kind::broadcast) return {"linear"};
  return {"all_pairs"};
}

// A reference as people write it: no parentheses around nothing.
std::string short_name(const collective::AlgorithmReference& reference) {
  return reference.arguments.empty() ? reference.name : print(reference);
}

std::optional<Work> program_work(const Setting& setting, std::string_view text) {
  const auto reference = collective::parse_reference(text);
  if (!reference.ok()) return std::nullopt;
  const auto* algorithm = collective::shipped_algorithms().find(reference->name);
  if (algorithm == nullptr || algorithm->kind() != setting.kind) return std::nullopt;
  const auto arguments = arguments_of(*algorithm, setting, reference->arguments);
  const auto claims = collective::claims(*algorithm, arguments);
  if (!claims.ok()) return std::nullopt;
  collective::Measure measure;
  collective::Collective collective;
  collective.kind = setting.kind;
  collective.ranks = setting.ranks;
  Work work;
  const bool crosses = setting.hosts > 1 && setting.ranks % setting.hosts == 0;
  if (claims->steps && claims->wire && !(crosses && setting.ranks <= kMostTracedRanks)) {
    measure = {*claims->steps, *claims->wire};
    collective::Progress progress{collective::TraceLimits{}.work, {}};
    collective::Evaluation values(algorithm->syntax(), progress);
    if (!values.bind(arguments)) return std::nullopt;
    const std::int64_t chunks = values.number_or(algorithm->syntax().chunks, 1);
    if (values.failed() || chunks < 1 || chunks > collective::kMostMemoryChunks) return std::nullopt;
    collective.chunks = static_cast<std::int32_t>(chunks);
  } else {
    if (setting.ranks > kMostTracedRanks) return std::nullopt;
    const auto moves = collective::trace(*algorithm, arguments, collective::shipped_algorithms());
    if (!moves.ok()) return std::nullopt;
    measure = collective::measure(*moves);
    collective = moves->collective;
    if (crosses) work.crossing = crossing_of(*moves, setting.hosts);
  }
  work.steps = static_cast<double>(measure.steps);
  work.messages = static_cast<double>(measure.wire);
  work.chunk = 1.0 / static_cast<double>(std::max<std::int64_t>(collective::loop_chunks(collective), 1));
  work.wire = work.messages * work.chunk;
  // What arrives beyond a plain all-gather of the sums has been reduced; in one step nothing is gathered. It
  // is read, and so is what it is added to.
  const double gathered = (setting.ranks - 1.0) / setting.ranks;
  if (collective::reduces(setting.kind)) {
    const bool gathers = setting.kind == Kind::all_reduce && work.steps > 1;
    work.reduced = 2 * std::max(gathers ? work.wire - gathered : work.wire, gathered);
  }
  // A rank's block for itself goes over no wire, but to its place.
  if (setting.kind == Kind::all_gather || setting.kind == Kind::all_to_all) work.copied = 1.0 / setting.ranks;
  return work;
}

}  // namespace

std::optional<DirectWay> find_direct_way(std::string_view algorithm) {
  for (std::size_t index = 0; index < kDirectWays; ++index)
    if (algorithm == name(static_cast<DirectWay>(index))) return static_cast<DirectWay>(index);
  return std::nullopt;
}

DirectWay beside_in_place(Kind kind) {
  return has_two_shots(kind) ? DirectWay::two_shot : DirectWay::one_shot;
}

std::vector<std::string> candidates_for(const Setting& setting, std::int64_t bytes) {
  std::vector<std::string> names;
  if (shares_memory(setting)) {
    names.emplace_back(kDirect);
    for (const DirectWay way : direct_ways(setting, bytes)) names.emplace_back(name(way));
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
    if (has_counts) continue;  // for blocks that differ; equal ones have better
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
  if (algorithm == kDirect) {  // the latency of the quickest way, the bandwidth of the widest
    Formula best = formula_of(setting, name(DirectWay::mailbox), figures);
    for (const DirectWay way : direct_ways(setting, kLargestOneShot)) {
      if (way == DirectWay::single_copy) continue;  // only where it was measured
      const Formula formula = formula_of(setting, name(way), figures);
      best = {std::min(best.intercept, formula.intercept), std::min(best.slope, formula.slope)};
    }
    return best;
  }
  const double ranks = setting.ranks;
  Work work{.steps = ranks, .messages = ranks, .wire = ranks};
  double call = 0;
  if (collective::reduces(setting.kind)) work.reduced = ranks;
  if (const auto way = find_direct_way(algorithm)) {
    work = direct_work(*way, setting);
  } else if (const auto program = program_work(setting, algorithm)) {
    work = *program;
    call = kProgramCall;
  }
  const double neighbours = ranks / std::max(setting.hosts, 1);
  const double crowd = std::max(neighbours / std::max(figures.cores, 1), 1.0);
  const double step = crowd > 1 ? figures.crowded_step * crowd : figures.step;
  const double share = has_sockets(setting) ? kSocketShare : kMessageShare;
  const double further = std::max(work.messages - work.steps, 0.0);
  // What crosses waits for the network, where ranks of a host share a line, and is passed on piece by piece;
  // what each message costs its sender comes on top.
  const double network_wire = std::max(figures.wire, kNetworkWire);
  const double passed_on = std::max(work.crossing.steps - 1, 0) * work.chunk * kNetworkPiece;
  const double crossing =
      work.crossing.steps * std::max(figures.step, kNetworkStep) + passed_on * network_wire;
  const double inside = std::max(work.steps - work.crossing.steps, 0.0);
  return {.intercept = call + crossing + (inside + share * (further + work.crossing.steps)) * step,
          .slope = work.crossing.wire * network_wire +
                   crowd * (work.wire * figures.wire + work.copied * figures.copy +
                            work.reduced * figures.reduce)};
}

}  // namespace weft::comm
