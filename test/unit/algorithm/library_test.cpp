// Every shipped algorithm computes its collective and costs what it claims, for any number of ranks
// and any values of its parameters.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weft/collectives/algorithm/claims.h"
#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/chunks/program.h"

namespace weft::collective {
namespace {

// Contents of a chunk: the sum of input[index] over some ranks. There is no subtraction, so a value
// of any other form (a rank twice, two indices, uninitialized memory) can never become correct
// again.
struct Held {
  std::int32_t index = -1;
  std::uint64_t ranks = 0;  // one bit per rank
  std::uint64_t order = 0;  // depends on how additions are parenthesized, not on operand order

  bool same_sum(const Held& other) const { return index == other.index && ranks == other.ranks; }
};

std::uint64_t mix(std::uint64_t low, std::uint64_t high) {
  return (low * 0x9E3779B97F4A7C15U ^ (high + 0x7F4A7C15U)) * 0xBF58476D1CE4E5B9U;
}

Held one(std::int32_t rank, std::int32_t index) {
  return {index, std::uint64_t{1} << rank, static_cast<std::uint64_t>(rank) + 1};
}

Held sum(const Held& left, const Held& right) {
  if (left.index < 0 || left.index != right.index || (left.ranks & right.ranks) != 0) return {};
  const auto [low, high] = std::minmax(left.order, right.order);
  return {left.index, left.ranks | right.ranks, mix(low, high)};
}

Held wanted(const Want& want, std::int32_t ranks) {
  switch (want.what) {
    case Want::What::chunk: return one(want.rank, want.index);
    case Want::What::sum: return {want.index, ~std::uint64_t{0} >> (64 - ranks), 0};
    case Want::What::listed: {
      Held held = one(want.contributions.front().rank, want.contributions.front().index);
      for (std::size_t i = 1; i < want.contributions.size(); ++i)
        held = sum(held, one(want.contributions[i].rank, want.contributions[i].index));
      return held;
    }
    case Want::What::anything: break;
  }
  return {};
}

// Memory after the moves ran one after another.
class Execution {
 public:
  explicit Execution(const Moves& moves)
      : collective_(moves.collective),
        placement_(moves.in_place ? Placement::in_place : Placement::out_of_place) {
    for (std::int32_t rank = 0; rank < collective_.ranks; ++rank) {
      for (const Buffer buffer : {Buffer::input, Buffer::output})
        memory_.emplace_back(extent(collective_, buffer, rank));
      memory_.emplace_back(moves.scratch[rank]);
      for (std::int32_t i = 0; i < extent(collective_, Buffer::input, rank); ++i)
        *at({rank, Buffer::input, i}) = one(rank, i);
    }
    for (const Move& move : moves.moves) perform(move);
  }

  // Number of output chunks that do not hold what the collective requires.
  int wrong() {
    int count = 0;
    for (std::int32_t rank = 0; rank < collective_.ranks; ++rank) {
      for (std::int32_t i = 0; i < extent(collective_, Buffer::output, rank); ++i) {
        const Want promise = want(collective_, rank, i);
        if (promise.what == Want::What::anything) continue;
        count += !at({rank, Buffer::output, i})->same_sum(wanted(promise, collective_.ranks));
      }
    }
    return count;
  }

  // Whether all ranks added in the same order, so that their outputs are bitwise equal.
  bool same_bits() {
    for (std::int32_t rank = 1; rank < collective_.ranks; ++rank)
      for (std::int32_t i = 0; i < extent(collective_, Buffer::output, rank); ++i)
        if (at({rank, Buffer::output, i})->order != at({0, Buffer::output, i})->order) return false;
    return true;
  }

 private:
  // Source and target of a move do not overlap: trace() rejects overlaps.
  void perform(const Move& move) {
    const Held* const from = at(move.from);
    Held* const to = at(move.to);
    for (std::int32_t i = 0; i < move.count; ++i)
      to[i] = move.verb == Move::Verb::copy ? from[i] : sum(to[i], from[i]);
  }

  // Chunks that are adjacent under one name are adjacent in memory.
  Held* at(const Place& place) {
    const Slot slot = resolve(collective_, placement_, place.rank, {place.buffer, place.index});
    return memory_[place.rank * 3 + static_cast<std::int32_t>(slot.buffer)].data() + slot.index;
  }

  const Collective& collective_;
  Placement placement_;
  std::vector<std::vector<Held>> memory_;  // input, output and scratch of rank 0, then of rank 1, ...
};

using Choices = std::vector<Argument>;

Choices divisors(std::int64_t number) {
  Choices result;
  for (std::int64_t i = 1; i <= number; ++i)
    if (number % i == 0) result.emplace_back(i);
  return result;
}

// Blocks of 0 to 3 chunks, and no chunks at all.
Choices uneven(std::int64_t length) {
  std::vector<std::int64_t> mixed;
  for (std::int64_t i = 0; i < length; ++i) mixed.push_back((5 * i * i + 3 * i + 2) % 4);
  return {mixed, std::vector<std::int64_t>(length)};
}

// Values to try for a parameter. Empty: only its default.
Choices choices(const Algorithm& algorithm, std::string_view parameter, std::int64_t ranks) {
  const Kind kind = algorithm.kind();
  if (parameter == "chunks") return {1, 3};
  if (parameter == "channels" || parameter == "lanes") return {1, 2};
  if (parameter == "aggregate") return {ranks, 1, 2, 3};
  if (parameter == "distance") return {1, 0, -ranks - 2};
  if (parameter == "root") return {0, ranks / 2, ranks - 1};
  if (parameter == "servers") return {1, std::max<std::int64_t>(ranks - 1, 1)};
  if (parameter == "own") return {1, 0, 3};
  if (parameter == "served") return {2, 1};
  if (parameter == "peer") return {ranks - 1, 0};
  if (parameter == "local" || parameter == "rows") return divisors(ranks);
  if (parameter == "columns") return {1};  // valid for any number of rows
  if (parameter == "counts") return uneven(kind == Kind::all_to_all ? ranks * ranks : ranks);
  if (parameter == "within") return {"ring", "all_pairs", "pat"};
  if (parameter == "across" && kind == Kind::broadcast) return {"relay", "linear"};
  if (parameter == "across" && kind != Kind::all_reduce) return {"ring", "pat"};
  if (parameter == "across") return {"ring", "recursive_doubling", "all_pairs_two_shot", "chain", "swing"};
  if (parameter == "scatter") return {"pat", "recursive_halving", "pairwise"};
  if (parameter == "gather" && algorithm.name() == "all_reduce_scatter_gather")
    return {"pat", "recursive_doubling", "bruck"};
  return {};
}

// Every choice of every parameter, combined with the first choice of all others.
std::vector<Arguments> settings(const Algorithm& algorithm, std::int64_t ranks) {
  Arguments first{{"ranks", ranks}};
  for (const Algorithm::Parameter& parameter : algorithm.parameters())
    if (const Choices all = choices(algorithm, parameter.name, ranks); !all.empty())
      first.emplace(parameter.name, all.front());
  std::vector<Arguments> result{first};
  for (const Algorithm::Parameter& parameter : algorithm.parameters()) {
    for (const Argument& choice : choices(algorithm, parameter.name, ranks)) {
      Arguments changed = first;
      changed[parameter.name] = choice;
      if (changed != first) result.push_back(std::move(changed));
    }
  }
  return result;
}

void expect_correct(const Algorithm& algorithm, const Arguments& arguments) {
  SCOPED_TRACE(print(AlgorithmReference{algorithm.name(), arguments}));
  const auto moves = trace(algorithm, arguments, shipped_algorithms());
  ASSERT_TRUE(moves.ok()) << moves.error().message;
  Execution execution(*moves);
  EXPECT_EQ(execution.wrong(), 0);
  EXPECT_TRUE(algorithm.kind() != Kind::all_reduce || execution.same_bits());

  const auto claimed = claims(algorithm, arguments);
  ASSERT_TRUE(claimed.ok()) << claimed.error().message;
  const Measure measured = measure(*moves);
  EXPECT_EQ(claimed->steps.value_or(measured.steps), measured.steps);
  EXPECT_EQ(claimed->wire.value_or(measured.wire), measured.wire);
}

void expect_correct(std::string_view reference) {
  const auto parsed = parse_reference(reference);
  ASSERT_TRUE(parsed.ok()) << reference;
  const Algorithm* const algorithm = shipped_algorithms().find(parsed->name);
  ASSERT_TRUE(algorithm) << reference;
  expect_correct(*algorithm, parsed->arguments);
}

// Whether the algorithm supports this number of ranks.
bool exists(const Algorithm& algorithm, std::int64_t ranks) {
  if (algorithm.name() == "custom_summation_service") return ranks > 1;
  return algorithm.name() != "all_gather_neighbor_exchange" || ranks % 2 == 0;
}

class LibraryTest : public testing::TestWithParam<std::int64_t> {};

TEST_P(LibraryTest, EveryAlgorithmIsCorrectAndMeetsItsClaims) {
  for (const std::string_view name : shipped_algorithms().names()) {
    const Algorithm& algorithm = *shipped_algorithms().find(name);
    for (const Arguments& arguments : settings(algorithm, GetParam())) {
      if (exists(algorithm, GetParam()))
        expect_correct(algorithm, arguments);
      else
        EXPECT_FALSE(check_arguments(algorithm, arguments).ok()) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, LibraryTest, testing::Range<std::int64_t>(1, 10),
                         testing::PrintToStringParamName());

// As few parameters as possible. For the largest rank counts, algorithms with linearly many steps
// are skipped: rounding does not occur in them.
TEST(Library, WorksOnManyRanks) {
  for (const std::string_view name : shipped_algorithms().names()) {
    const Algorithm& algorithm = *shipped_algorithms().find(name);
    for (const std::int64_t ranks : {10, 11, 12, 13, 14, 15, 16, 17, 24, 32, 33}) {
      Arguments arguments{{"ranks", ranks}};
      for (const Algorithm::Parameter& parameter : algorithm.parameters())
        if (!parameter.has_default && parameter.name != "ranks")
          arguments.emplace(parameter.name, parameter.name == "columns" ? 1 : std::gcd(ranks, 12));
      if (!exists(algorithm, ranks)) continue;
      const auto claimed = claims(algorithm, arguments);
      ASSERT_TRUE(claimed.ok()) << name;
      if (ranks <= 17 || claimed->steps.value_or(0) < ranks / 2) expect_correct(algorithm, arguments);
    }
  }
}

TEST(Library, TotalReplacesChunks) {
  for (const std::string_view name : shipped_algorithms().names()) {
    const Algorithm& algorithm = *shipped_algorithms().find(name);
    if (algorithm.kind() != Kind::all_reduce) continue;
    const bool has_total = std::ranges::any_of(
        algorithm.parameters(), [](const auto& parameter) { return parameter.name == "total"; });
    EXPECT_TRUE(has_total) << name << " cannot be called by all_reduce_hierarchical";
    Arguments arguments{{"ranks", 6}, {"total", 24}};
    for (const Algorithm::Parameter& parameter : algorithm.parameters())
      if (!parameter.has_default && parameter.name != "ranks") arguments.emplace(parameter.name, 3);
    if (arguments.contains("columns")) arguments["columns"] = 2;
    expect_correct(algorithm, arguments);
    EXPECT_EQ(trace(algorithm, arguments, shipped_algorithms())->collective.chunks, 24) << name;
  }
}

TEST(Library, CombinesParameters) {
  for (const char* const reference : {
           "all_reduce_ring(ranks=5, chunks=2, channels=3)",
           "all_reduce_ring_bidirectional(ranks=5, chunks=2, channels=2)",
           "all_reduce_torus(ranks=12, rows=4, chunks=2)",
           "all_reduce_torus_3d(ranks=12, rows=3, columns=2, chunks=2)",
           "all_reduce_torus_3d(ranks=16, rows=2, columns=4)",
           "all_reduce_hierarchical(ranks=12, local=4, chunks=2, within=all_pairs, "
           "across=recursive_doubling)",
           "all_reduce_hierarchical(ranks=12, local=3, chunks=2, within=recursive_halving, gather=bruck)",
           "all_reduce_hierarchical(ranks=12, local=3, across=double_binary_tree)",
           "all_reduce_hierarchical(ranks=12, local=3, across=halving_doubling)",
           "all_reduce_hierarchical_streamed(ranks=12, local=3, chunks=2, within=all_pairs)",
           "all_reduce_leaders(ranks=12, local=3, chunks=2)",
           "reduce_scatter_leaders(ranks=12, local=3, chunks=2)",
           "all_gather_leaders(ranks=12, local=3, chunks=2)",
           "reduce_scatter_hierarchical(ranks=12, local=3, chunks=2, within=all_pairs, "
           "across=recursive_halving)",
           "all_gather_hierarchical(ranks=12, local=3, chunks=2, within=bruck, across=recursive_doubling)",
           "all_to_all_two_step(ranks=12, local=3, chunks=2)",
           "all_to_all_three_step(ranks=14, local=2, chunks=2)",
           "broadcast_scatter_all_gather(ranks=7, chunks=2, root=4)",
           "all_gather_pat(ranks=13, chunks=2, aggregate=4)",
           "send_direct(ranks=5, chunks=2, channels=3, root=3, peer=1)",
       })
    expect_correct(reference);
}

// In each tree of the double binary tree, a rank that receives sums is a leaf of the other tree.
TEST(Library, NoRankIsInteriorInBothBinaryTrees) {
  const Algorithm& algorithm = *shipped_algorithms().find("all_reduce_double_binary_tree");
  for (std::int64_t ranks = 1; ranks <= 33; ++ranks) {
    const auto moves = trace(algorithm, {{"ranks", ranks}}, shipped_algorithms());
    ASSERT_TRUE(moves.ok());
    std::vector<std::int32_t> inner(ranks);  // one bit per tree
    for (const Move& move : moves->moves)
      if (move.verb == Move::Verb::reduce) inner[move.to.rank] |= 1 << move.channel;
    EXPECT_EQ(std::ranges::count(inner, 3), 0) << ranks;
  }
}

// Two levels of rings move as many bytes as one ring, in far fewer steps.
TEST(Library, HierarchicalRingsTakeFewerSteps) {
  const Algorithm& algorithm = *shipped_algorithms().find("all_reduce_hierarchical");
  const auto moves = trace(algorithm, {{"ranks", 12}, {"local", 4}}, shipped_algorithms());
  ASSERT_TRUE(moves.ok());
  EXPECT_EQ(measure(*moves), (Measure{2 * 3 + 2 * 2, 2 * 11}));
}

TEST(Library, DetectsWrongMoves) {
  Moves moves;
  moves.collective.kind = Kind::all_reduce;
  moves.collective.ranks = 2;
  moves.in_place = true;
  moves.scratch = {1, 1};
  const Place first{0, Buffer::input, 0}, second{1, Buffer::input, 0}, spare{1, Buffer::scratch, 0};
  const Move add{Move::Verb::reduce, first, second}, back{Move::Verb::copy, second, first};
  moves.moves = {add, back};
  EXPECT_EQ(Execution(moves).wrong(), 0);
  EXPECT_TRUE(Execution(moves).same_bits());
  moves.moves = {add};  // one rank lacks the sum
  EXPECT_EQ(Execution(moves).wrong(), 1);
  moves.moves = {add, add, back};  // rank 0 counts twice
  EXPECT_EQ(Execution(moves).wrong(), 2);
  moves.moves = {{Move::Verb::reduce, spare, second}, back};  // uninitialized scratch
  EXPECT_EQ(Execution(moves).wrong(), 2);
}

TEST(Library, EveryFileShipsAndIsListed) {
  const std::filesystem::path folder = WEFT_SOURCE_DIR "/algorithms";
  std::ifstream file(folder / "README.md");
  const std::string list{std::istreambuf_iterator<char>(file), {}};
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".algorithm") continue;
    ++files;
    const std::string name = entry.path().stem();
    const Algorithm* const algorithm = shipped_algorithms().find(name);
    ASSERT_TRUE(algorithm) << name;
    EXPECT_TRUE(name.starts_with(std::string(collective::name(algorithm->kind())) + "_")) << name;
    EXPECT_TRUE(algorithm->text().starts_with("-- ")) << name << " does not say what it does";
    EXPECT_NE(list.find("`" + name + "`"), list.npos) << name << " is not in the README";
  }
  EXPECT_EQ(files, shipped_algorithms().names().size());
}

}  // namespace
}  // namespace weft::collective
