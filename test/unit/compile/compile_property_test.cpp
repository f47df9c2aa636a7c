// A compiled program does what its moves do, within the available FIFO slots.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <optional>

#include "weft/base/random.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/check_moves.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/collectives/compile/compile.h"
#include "weft/collectives/compile/out_of_place.h"

namespace weft::collective {
namespace {

int draw(Random& random, int low, int high) { return static_cast<int>(random.between(low, high)); }

// Contents of a chunk: how often each contribution occurs, or nothing if undefined.
using Content = std::optional<std::map<Contribution, int>>;

struct Sizes {
  int ranks = 1, input = 1, output = 1, scratch = 0;

  int of(Buffer buffer) const {
    return buffer == Buffer::input ? input : buffer == Buffer::output ? output : scratch;
  }
};

Place random_place(Random& random, const Sizes& sizes, int count) {
  for (;;) {
    const auto buffer = static_cast<Buffer>(random.below(3));
    if (sizes.of(buffer) < count) continue;
    return {draw(random, 0, sizes.ranks - 1), buffer, draw(random, 0, sizes.of(buffer) - count)};
  }
}

// In-place custom collectives have input[k] = output[k].
Place plain(Place place, bool in_place) {
  if (in_place && place.buffer == Buffer::output) place.buffer = Buffer::input;
  return place;
}

// Random moves. The collective requires part of what they leave in the output.
Moves random_moves(Random& random) {
  Moves moves;
  moves.name = "random";
  moves.in_place = random.below(2) == 0;
  const Sizes sizes{draw(random, 1, 5), draw(random, 1, 5), draw(random, 1, 5), draw(random, 0, 4)};
  moves.collective.ranks = sizes.ranks;
  moves.scratch.assign(static_cast<std::size_t>(sizes.ranks), sizes.scratch);
  const int most = std::min(sizes.input, sizes.output), channels = draw(random, 0, 3);
  const int length = draw(random, 0, 40);

  std::map<Place, Content> memory;
  for (int rank = 0; rank < sizes.ranks; ++rank)
    for (int index = 0; index < sizes.input; ++index)
      memory[{rank, Buffer::input, index}] = std::map<Contribution, int>{{{rank, index}, 1}};
  for (int i = 0; i < length; ++i) {
    Move move;
    move.verb = random.below(3) == 0 ? Move::Verb::reduce : Move::Verb::copy;
    move.count = random.below(2) == 0 ? 1 : draw(random, 1, most);
    move.from = random_place(random, sizes, move.count);
    // Sometimes forwards what has just arrived, as algorithms do.
    if (!moves.moves.empty() && random.below(2) == 0) {
      move.from = moves.moves.back().to;
      move.count = moves.moves.back().count;
    }
    move.to = random_place(random, sizes, move.count);
    move.channel = draw(random, -1, channels - 1);
    Place from = plain(move.from, moves.in_place), to = plain(move.to, moves.in_place);
    const bool meet = from.rank == to.rank && from.buffer == to.buffer &&
                      from.index < to.index + move.count && to.index < from.index + move.count;
    if (meet) continue;
    for (int k = 0; k < move.count; ++k, ++from.index, ++to.index) {
      const Content source = memory[from];
      Content& target = memory[to];
      if (move.verb == Move::Verb::copy) {
        target = source;
      } else if (!source || !target) {
        target.reset();
      } else {
        for (const auto& [part, times] : *source) (*target)[part] += times;
      }
    }
    moves.moves.push_back(move);
  }
  for (int rank = 0; rank < sizes.ranks; ++rank)
    for (int index = 0; index < sizes.output; ++index) {
      const Content& content = memory[plain({rank, Buffer::output, index}, moves.in_place)];
      if (!content || random.below(4) == 0) continue;
      CustomWant want{rank, index, {}};
      bool once = true;
      for (const auto& [part, times] : *content) {
        want.contributions.push_back(part);
        once = once && times == 1;
      }
      if (once) moves.collective.wants.push_back(want);
    }
  return moves;
}

CompileOptions random_options(Random& random) {
  CompileOptions options;
  options.protocol = random.below(2) == 0 ? Protocol::simple : Protocol::ll;
  options.slots = draw(random, 0, 3);
  options.instances = random.below(3) == 0 ? draw(random, 2, 3) : 1;
  options.max_channels = options.instances * draw(random, 3, 5);
  options.fuse = random.below(4) != 0;
  return options;
}

void is_right(const Program& program, std::int32_t slots) {
  const Report report = check(program);
  if (report.finding) RC_FAIL(report.finding->text + "\n" + print(program));
  RC_ASSERT(report.slots <= slots);
  for (const RankProgram& rank : program.ranks)
    for (const Threadblock& block : rank.blocks)
      for (std::size_t i = 0; i < block.steps.size(); ++i)
        if (block.steps[i].op == Op::nop)
          RC_ASSERT(i + 1 < block.steps.size() && block.steps[i].wait_block >= 0 &&
                    block.steps[i + 1].wait_block >= 0);
}

RC_GTEST_PROP(Compile, CompilesRandomMovesToCorrectPrograms, (std::uint64_t seed)) {
  Random random(seed);
  const Moves moves = random_moves(random);
  const CompileOptions options = random_options(random);
  const Result<Program> program = compile(moves, options);
  if (first_wrong(moves)) {
    RC_ASSERT(moves.collective.wants.empty());  // some output would then be undefined
    RC_ASSERT(!program.ok());
    return;
  }
  if (!program.ok()) RC_FAIL(program.error().message);
  is_right(*program, options.slots > 0 ? options.slots : fifo_slots(options.protocol));
}

RC_GTEST_PROP(Compile, OutOfPlaceKeepsTheInputAndComputesTheSame, (std::uint64_t seed)) {
  Random random(seed);
  Moves moves = random_moves(random);
  moves.in_place = true;
  if (!check_moves(moves).ok() || first_wrong(moves)) return;
  const Moves apart = out_of_place(moves);
  for (const Move& move : apart.moves) RC_ASSERT(move.to.buffer != Buffer::input);
  RC_ASSERT(check_moves(apart).ok());
  if (moves.collective.wants.empty()) return;
  RC_ASSERT(!first_wrong(apart).has_value());
  RC_ASSERT(compile(apart).ok());
}

}  // namespace
}  // namespace weft::collective
