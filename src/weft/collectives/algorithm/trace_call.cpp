#include <algorithm>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/collectives/algorithm/tracer.h"

namespace weft::collective {
namespace {

constexpr std::int32_t kDeepestAlgorithm = 16;  // nested CALLs

}  // namespace

const Algorithm* Tracer::find_callee(Run& run, const Call& call, Span span) {
  std::string wanted = call.callee;
  if (call.scheme != kNoExpression) {
    wanted = fmt::format("{}_{}", name(*find_kind(call.callee)), run.values.word(call.scheme));
    if (run.values.failed()) return nullptr;
  }
  if (const Algorithm* const found = library_.find(wanted)) return found;
  run.values.fail(span, fmt::format("no such algorithm: {}", wanted), did_you_mean(wanted, library_.names()));
  return nullptr;
}

bool Tracer::execute(Run& run, const Call& call, Span span) {
  const Algorithm* const algorithm = find_callee(run, call, span);
  if (!algorithm) return false;
  if (run.depth >= kDeepestAlgorithm)
    return run.values.fail(span, fmt::format("algorithms call each other too deep: {}", run.depth + 1));
  if (algorithm->in_place() != call.chunk.has_value())
    return run.values.fail(
        span,
        fmt::format("{} {} in place", algorithm->name(), algorithm->in_place() ? "works" : "does not work"),
        algorithm->in_place() ? "write CHUNK j AT ..." : "write INPUT j AT ... OUTPUT j AT ...");
  Arguments arguments;
  for (const Call::NamedArgument& argument : call.arguments) {
    if (!arguments.emplace(argument.name, run.values.argument(argument.value, argument.type)).second)
      return run.values.fail(argument.span, fmt::format("given twice: {}", argument.name));
  }
  if (run.values.failed()) return false;

  Run callee(algorithm->syntax(), progress_);
  callee.caller = &run;
  callee.call = &call;
  callee.depth = run.depth + 1;
  callee.channel_offset = run.values.number_or(call.channel, -1);
  if (call.channel != kNoExpression && (callee.channel_offset < 0 || callee.channel_offset >= kMostChannels))
    return run.values.fail(run.values.span(call.channel),
                           fmt::format("channels are 0 to {}: {}", kMostChannels - 1, callee.channel_offset));
  if (!start(callee, arguments)) {
    // An error about the parameters as a whole is reported at this CALL.
    if (!progress_.error->span.known()) {
      progress_.error->span = span;
      progress_.error->text = run.syntax.text;
    }
    return false;
  }
  return place_ranks(callee, span) && execute(callee, callee.syntax.body);
}

// Maps the callee's ranks to the caller's and allocates scratch on each.
bool Tracer::place_ranks(Run& callee, Span span) {
  Run& caller = *callee.caller;
  const Call& call = *callee.call;
  const std::int32_t ranks = callee.collective.ranks;
  if (!caller.values.spend(span, ranks)) return false;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    caller.values.set(call.rank_slot, rank);
    const std::int64_t outer = caller.values.number(call.rank);
    if (caller.values.failed()) return false;
    if (outer < 0 || outer >= caller.collective.ranks)
      return caller.values.fail(caller.values.span(call.rank),
                                fmt::format("rank {} of {} maps to no rank of the caller: {} of {}", rank,
                                            callee.syntax.name, outer, caller.collective.ranks),
                                caller.values.variables({call.rank}));
    callee.caller_ranks.push_back(static_cast<std::int32_t>(outer));
    const std::int32_t home =
        caller.caller ? caller.outermost_ranks[outer] : static_cast<std::int32_t>(outer);
    callee.outermost_ranks.push_back(home);
    callee.scratch_first.push_back(moves_.scratch[home]);
    moves_.scratch[home] += callee.scratch[rank];
  }
  std::vector<std::int32_t> taken = callee.caller_ranks;
  std::ranges::sort(taken);
  const auto twice = std::ranges::adjacent_find(taken);
  if (twice != taken.end())
    return caller.values.fail(
        caller.values.span(call.rank),
        fmt::format("two ranks of {} map to the same rank: {}", callee.syntax.name, *twice));
  return true;
}

// Emits the move in the ranks and memory of the outermost caller.
bool Tracer::emit_outermost(Run& run, Move move, Span span) {
  if (!run.caller) return emit(run, move, span);
  for (const Run* inner = &run; inner->caller; inner = inner->caller)
    if (inner->channel_offset >= 0)
      move.channel = static_cast<std::int32_t>(std::max(move.channel, 0) + inner->channel_offset);

  // Chunks adjacent in the callee may be scattered in the caller: each contiguous run is a move.
  Move stretch = move;
  stretch.count = 0;
  for (std::int32_t i = 0; i < move.count; ++i) {
    Place from = move.from, to = move.to;
    from.index += i;
    to.index += i;
    Run *from_run = &run, *to_run = &run;
    while (from_run->caller)
      if (!map_to_caller(from_run, from)) return false;
    while (to_run->caller)
      if (!map_to_caller(to_run, to)) return false;
    Place next_from = stretch.from, next_to = stretch.to;
    next_from.index += stretch.count;
    next_to.index += stretch.count;
    if (stretch.count > 0 && from == next_from && to == next_to) {
      ++stretch.count;
      continue;
    }
    if (stretch.count > 0 && !emit(run, stretch, span)) return false;
    stretch.from = from;
    stretch.to = to;
    stretch.count = 1;
  }
  return emit(run, stretch, span);
}

// Maps a callee's place to the caller's. Scratch maps to the outermost caller directly.
bool Tracer::map_to_caller(Run*& run, Place& place) {
  if (place.buffer == Buffer::scratch) {
    place.index += run->scratch_first[place.rank];
    place.rank = run->outermost_ranks[place.rank];
    while (run->caller) run = run->caller;
    return true;
  }
  const Call& call = *run->call;
  Run& caller = *run->caller;
  const auto& mapping = call.chunk ? call.chunk : place.buffer == Buffer::input ? call.input : call.output;
  if (!mapping)
    return caller.values.fail(
        caller.values.span(call.rank),
        fmt::format("{} uses its {}, which the CALL does not map", run->syntax.name, name(place.buffer)),
        fmt::format("write {} j AT ...", place.buffer == Buffer::input ? "INPUT" : "OUTPUT"));
  caller.values.set(call.rank_slot, place.rank);
  caller.values.set(mapping->slot, place.index);
  const std::int64_t index = caller.values.number(mapping->index);
  if (caller.values.failed() || !caller.values.spend(caller.values.span(mapping->index))) return false;
  Place outer;
  outer.rank = run->caller_ranks[place.rank];
  outer.buffer = mapping->buffer == PlaceBuffer::data ? shared_buffer(caller.collective.kind)
                                                      : static_cast<Buffer>(mapping->buffer);
  const std::int64_t extent = outer.buffer == Buffer::scratch
                                  ? caller.scratch[outer.rank]
                                  : caller.places.extent(outer.buffer, outer.rank);
  if (index < 0 || index >= extent)
    return caller.values.fail(
        caller.values.span(mapping->index),
        fmt::format("chunk {} of rank {} of {} is out of range: {}[{}] at rank {}, {} chunks", place.index,
                    place.rank, run->syntax.name, name(outer.buffer), index, outer.rank, extent),
        caller.values.variables({mapping->index}));
  outer.index = static_cast<std::int32_t>(index);
  place = caller.places.resolve(outer);
  run = &caller;
  return true;
}

bool Tracer::emit(Run& run, const Move& move, Span span) {
  const bool same_memory = move.local() && move.from.buffer == move.to.buffer;
  const std::int64_t apart = std::int64_t{move.from.index} - move.to.index;
  if (same_memory && apart == 0 && move.verb == Move::Verb::copy) return true;  // a copy onto itself
  if (same_memory && apart < move.count && -apart < move.count)
    return run.values.fail(span, fmt::format("a move onto itself: {}[{}] and {}[{}] of rank {}, {} chunks",
                                             name(move.from.buffer), move.from.index, name(move.to.buffer),
                                             move.to.index, move.from.rank, move.count));
  moved_chunks_ += move.count;
  if (static_cast<std::int64_t>(moves_.moves.size()) >= limits_.moves || moved_chunks_ > limits_.moved_chunks)
    return run.values.fail(span, fmt::format("too many moves: at most {} moves and {} chunks moved",
                                             limits_.moves, limits_.moved_chunks));
  moves_.moves.push_back(move);
  return true;
}

}  // namespace weft::collective
