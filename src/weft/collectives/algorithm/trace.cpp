#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "weft/collectives/algorithm/tracer.h"
#include "weft/collectives/chunks/collective_text.h"

namespace weft::collective {
namespace {

constexpr std::int64_t kMostContributions = std::int64_t{1} << 22;  // in all WANTs together

// Sorted by place. Several WANTs of one chunk add up.
std::vector<CustomWant> gather_wants(std::vector<CustomWant> said) {
  const auto key = [](const CustomWant& want) { return std::pair(want.rank, want.index); };
  std::ranges::stable_sort(said, {}, key);
  std::vector<CustomWant> wants;
  for (CustomWant& want : said) {
    if (wants.empty() || key(wants.back()) != key(want)) {
      wants.push_back(std::move(want));
    } else {
      std::vector<Contribution>& parts = wants.back().contributions;
      parts.insert(parts.end(), want.contributions.begin(), want.contributions.end());
    }
  }
  for (CustomWant& want : wants) std::ranges::sort(want.contributions);
  return wants;
}

}  // namespace

Result<Moves> Tracer::trace(const AlgorithmSyntax& syntax, const Arguments& arguments) {
  Run run(syntax, progress_);
  if (!start(run, arguments)) return *progress_.error;
  moves_.name = syntax.name;
  moves_.collective = run.collective;
  moves_.in_place = syntax.in_place;
  moves_.scratch = run.scratch;
  if (!execute(run, syntax.body)) return *progress_.error;
  return std::move(moves_);
}

bool Tracer::start(Run& run, const Arguments& arguments) {
  if (!run.values.bind(arguments) || !make_collective(run)) return false;
  if (!execute(run, run.syntax.ensure)) return false;
  run.collective.wants = gather_wants(std::move(run.collective.wants));
  if (const Status sound = check_collective(run.collective); !sound.ok())
    return run.values.fail({}, fmt::format("{}: {}", run.syntax.name, sound.error().message));

  std::int32_t inputs = 0, outputs = 0;
  if (!small(run, run.syntax.inputs, "inputs", inputs) || !small(run, run.syntax.outputs, "outputs", outputs))
    return false;
  run.places = Places(run.collective, run.syntax.in_place, inputs, outputs);
  return make_scratch(run);
}

bool Tracer::small(Run& run, ExpressionId id, std::string_view what, std::int32_t& result) {
  if (id == kNoExpression) return true;
  const std::int64_t value = run.values.number(id);
  if (run.values.failed()) return false;
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  if (value < 0 || value > kMost)
    return run.values.fail(run.values.span(id), fmt::format("{} is 0 to {}: {}", what, kMost, value),
                           run.values.variables({id}));
  result = static_cast<std::int32_t>(value);
  return true;
}

bool Tracer::make_collective(Run& run) {
  const AlgorithmSyntax& syntax = run.syntax;
  Collective& collective = run.collective;
  collective.kind = syntax.kind;
  collective.ranks = static_cast<std::int32_t>(run.values.ranks());
  if (!small(run, syntax.chunks, "chunks", collective.chunks) ||
      !small(run, syntax.root, "root", collective.root) || !small(run, syntax.peer, "peer", collective.peer))
    return false;
  if (syntax.counts == kNoExpression) return true;
  for (const std::int64_t count : run.values.list(syntax.counts)) {
    if (count < 0 || count > std::numeric_limits<std::int32_t>::max())
      return run.values.fail(run.values.span(syntax.counts),
                             fmt::format("expected a number of chunks, found {}", count));
    collective.counts.push_back(static_cast<std::int32_t>(count));
  }
  return !run.values.failed();
}

bool Tracer::make_scratch(Run& run) {
  const AlgorithmSyntax& syntax = run.syntax;
  run.scratch.assign(run.collective.ranks, 0);
  for (std::int32_t rank = 0; rank < run.collective.ranks; ++rank) {
    if (syntax.scratch_slot >= 0) run.values.set(syntax.scratch_slot, rank);
    if (syntax.scratch_slot < 0 && rank > 0) {
      run.scratch[rank] = run.scratch[0];
    } else if (!small(run, syntax.scratch, "scratch", run.scratch[rank])) {
      return false;
    }
    memory_chunks_ += run.scratch[rank];
    if (!run.caller)
      memory_chunks_ +=
          std::int64_t{run.places.extent(Buffer::input, rank)} + run.places.extent(Buffer::output, rank);
    if (memory_chunks_ > limits_.memory_chunks)
      return run.values.fail(
          {}, fmt::format("{} needs too much memory: {} chunks or more over all ranks, at most {}",
                          syntax.name, memory_chunks_, limits_.memory_chunks));
  }
  return true;
}

bool Tracer::execute(Run& run, const Block& block) {
  for (const Statement& statement : block)
    if (!execute(run, statement)) return false;
  return true;
}

bool Tracer::execute(Run& run, const Statement& statement) {
  if (!run.values.spend(statement.span)) return false;
  switch (statement.does.index()) {
    case 0: {
      const auto& assignment = *std::get_if<Assignment>(&statement.does);
      run.values.set(assignment.slot, run.values.number(assignment.value));
      return !run.values.failed();
    }
    case 1: return execute(run, *std::get_if<ForLoop>(&statement.does), statement.span);
    case 2: return execute(run, *std::get_if<WhileLoop>(&statement.does), statement.span);
    case 3: return execute(run, *std::get_if<Branch>(&statement.does));
    case 4: return execute(run, *std::get_if<Transfer>(&statement.does), statement.span);
    case 5: return execute(run, *std::get_if<Call>(&statement.does), statement.span);
    case 6: return execute(run, *std::get_if<Requirement>(&statement.does), statement.span);
    default: return execute(run, *std::get_if<WantClause>(&statement.does));
  }
}

bool Tracer::execute(Run& run, const ForLoop& loop, Span span) {
  std::int64_t at = run.values.number(loop.from);
  const std::int64_t to = run.values.number(loop.to);
  const std::int64_t by = run.values.number_or(loop.by, 1);
  if (run.values.failed()) return false;
  if (by == 0)
    return run.values.fail(run.values.span(loop.by), "FOR steps by zero", run.values.variables({loop.by}));
  while (by > 0 ? at <= to : at >= to) {
    run.values.set(loop.slot, at);
    if (!run.values.spend(span) || !execute(run, loop.body)) return false;
    if (__builtin_add_overflow(at, by, &at)) break;
  }
  return true;
}

bool Tracer::execute(Run& run, const WhileLoop& loop, Span span) {
  while (run.values.number(loop.condition) != 0 && !run.values.failed())
    if (!run.values.spend(span) || !execute(run, loop.body)) return false;
  return !run.values.failed();
}

bool Tracer::execute(Run& run, const Branch& branch) {
  for (const Branch::Arm& arm : branch.arms) {
    const bool taken = run.values.number_or(arm.condition, 1) != 0;
    if (run.values.failed()) return false;
    if (taken) return execute(run, arm.body);
  }
  return true;
}

bool Tracer::execute(Run& run, const Requirement& requirement, Span span) {
  const bool holds = run.values.number(requirement.condition) != 0;
  if (run.values.failed()) return false;
  if (holds) return true;
  const std::string values = run.values.variables({requirement.condition});
  return run.values.fail(span,
                         fmt::format("{}{}{}", requirement.message, values.empty() ? "" : ": ", values));
}

bool Tracer::execute(Run& run, const WantClause& promise) {
  const auto read = [&](const PlaceSyntax& place, std::int32_t& rank, std::int32_t& index) {
    return small(run, place.rank, "a rank", rank) && small(run, place.index, "an index", index);
  };
  CustomWant want;
  if (!read(promise.output, want.rank, want.index)) return false;
  for (const PlaceSyntax& input : promise.inputs) {
    Contribution part;
    if (!read(input, part.rank, part.index)) return false;
    want.contributions.push_back(part);
  }
  contributions_ += static_cast<std::int64_t>(want.contributions.size());
  if (contributions_ > kMostContributions)
    return run.values.fail(promise.output.span, fmt::format("ENSURE wants too much: at most {} contributions",
                                                            kMostContributions));
  run.collective.wants.push_back(std::move(want));
  return true;
}

bool Tracer::take_place(Run& run, const PlaceSyntax& syntax, std::int64_t count, Place& result) {
  const std::int64_t rank = run.values.number(syntax.rank), index = run.values.number(syntax.index);
  if (run.values.failed()) return false;
  const Buffer buffer = syntax.buffer == PlaceBuffer::data ? shared_buffer(run.collective.kind)
                                                           : static_cast<Buffer>(syntax.buffer);
  if (rank < 0 || rank >= run.collective.ranks)
    return run.values.fail(syntax.span, fmt::format("no such rank: {} of {}", rank, run.collective.ranks),
                           run.values.variables({syntax.rank}));
  const auto small_rank = static_cast<std::int32_t>(rank);
  const std::int64_t extent =
      buffer == Buffer::scratch ? run.scratch[small_rank] : run.places.extent(buffer, small_rank);
  if (index < 0 || index >= extent || count > extent - index) {
    constexpr std::string_view kNames[] = {"input", "output", "scratch", "data"};
    return run.values.fail(syntax.span,
                           fmt::format("{}[{}] at rank {} is out of range: {} requested, the buffer has {}",
                                       kNames[static_cast<std::size_t>(syntax.buffer)], index, rank,
                                       print_amount(count, "chunk"), extent),
                           run.values.variables({syntax.index, syntax.rank}));
  }
  result = run.places.resolve({small_rank, buffer, static_cast<std::int32_t>(index)});
  return true;
}

bool Tracer::execute(Run& run, const Transfer& transfer, Span span) {
  const std::int64_t count = run.values.number_or(transfer.count, 1);
  const std::int64_t channel = run.values.number_or(transfer.channel, -1);
  if (run.values.failed()) return false;
  if (count == 0) return true;  // nothing moves
  if (count < 0)
    return run.values.fail(run.values.span(transfer.count), fmt::format("COUNT is negative: {}", count),
                           run.values.variables({transfer.count}));
  if (transfer.channel != kNoExpression && (channel < 0 || channel >= kMostChannels))
    return run.values.fail(run.values.span(transfer.channel),
                           fmt::format("channels are 0 to {}: {}", kMostChannels - 1, channel),
                           run.values.variables({transfer.channel}));
  Move move;
  move.verb = transfer.verb;
  if (!take_place(run, transfer.from, count, move.from) || !take_place(run, transfer.to, count, move.to))
    return false;
  move.count = static_cast<std::int32_t>(count);
  move.channel = static_cast<std::int32_t>(channel);
  return emit_outermost(run, move, span);
}

Result<Moves> trace(const Algorithm& algorithm, const Arguments& arguments, const AlgorithmLibrary& library,
                    const TraceLimits& limits) {
  return Tracer(library, limits).trace(algorithm.syntax(), arguments);
}

Status check_arguments(const Algorithm& algorithm, const Arguments& arguments) {
  Progress progress{TraceLimits{}.work, {}};
  if (Evaluation(algorithm.syntax(), progress).bind(arguments)) return {};
  return *progress.error;
}

}  // namespace weft::collective
