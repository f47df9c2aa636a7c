// C chunks, S steps, R rounds: solutions become programs that the checker accepts, and infeasible
// cases agree with exhaustive search.
#include "weft/collectives/synthesis/step_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <numeric>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/file.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/collectives/compile/compile.h"
#include "weft/collectives/synthesis/step_bounds.h"
#include "weft/collectives/synthesis/step_pareto.h"
#include "weft/formats/topology_json.h"

namespace weft::synthesis {
namespace {

using collective::Kind;

const std::string kTopologies = WEFT_SOURCE_DIR "/../shared/corpus/ccl-topologies/";

StepNetwork corpus_network(const std::string& name) {
  const auto text = read_file(kTopologies + name + ".json", 1 << 24);
  EXPECT_TRUE(text.ok());
  const auto topology = formats::read_topology_json(*text, name);
  EXPECT_TRUE(topology.ok());
  auto network = step_network(*topology);
  EXPECT_TRUE(network.ok());
  return std::move(network).value();
}

// Every edge with its own limit.
StepNetwork network_of(std::int32_t devices, const std::vector<std::array<std::int32_t, 3>>& links) {
  StepNetwork network;
  network.devices = devices;
  std::map<StepEdge, std::int32_t> sorted;
  for (const auto& [from, to, capacity] : links) sorted[{from, to}] += capacity;
  for (const auto& [edge, capacity] : sorted) {
    network.limits.push_back(
        {{static_cast<std::int32_t>(network.edges.size())}, static_cast<double>(capacity)});
    network.edges.push_back(edge);
  }
  return network;
}

StepNetwork ring_network(std::int32_t devices) {
  std::vector<std::array<std::int32_t, 3>> links;
  for (std::int32_t i = 0; i < devices; ++i) {
    links.push_back({i, (i + 1) % devices, 1});
    links.push_back({(i + 1) % devices, i, 1});
  }
  return network_of(devices, links);
}

StepNetwork star_network(std::int32_t devices) {
  StepNetwork network;
  network.devices = devices;
  std::vector<StepLimit> out(static_cast<std::size_t>(devices)), in(out);
  for (std::int32_t from = 0; from < devices; ++from)
    for (std::int32_t to = 0; to < devices; ++to) {
      if (from == to) continue;
      out[static_cast<std::size_t>(from)].edges.push_back(static_cast<std::int32_t>(network.edges.size()));
      in[static_cast<std::size_t>(to)].edges.push_back(static_cast<std::int32_t>(network.edges.size()));
      network.edges.push_back({from, to});
    }
  network.limits = out;
  network.limits.insert(network.limits.end(), in.begin(), in.end());
  return network;
}

StepVerdict ask(StepSearch& search, const StepQuestion& question) {
  const auto answer = search.answer(question, {});
  EXPECT_TRUE(answer.ok()) << answer.error().message;
  return answer->verdict;
}

StepVerdict ask(const StepNetwork& network, const StepQuestion& question) {
  StepSearch search(network);
  return ask(search, question);
}

// Finds a solution and proves its program.
void expect_program(StepSearch& search, const StepNetwork& network, const StepQuestion& question) {
  SCOPED_TRACE(
      fmt::format("{} ({},{},{})", name(question.kind), question.chunks, question.steps, question.rounds));
  const auto answer = search.answer(question, {});
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  ASSERT_EQ(answer->verdict, StepVerdict::satisfiable) << answer->why;
  std::int32_t steps = 0, rounds = 0;
  for (const auto& part : {answer->combine, answer->spread})
    if (part) {
      steps += static_cast<std::int32_t>(part->rounds.size());
      rounds += std::accumulate(part->rounds.begin(), part->rounds.end(), 0);
    }
  EXPECT_EQ(steps, question.steps);
  EXPECT_LE(rounds, question.rounds);
  const auto program = collective::compile(step_moves(question, network, *answer));
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_EQ(collective::check(*program).verdict(), collective::Verdict::ok);
}

void expect_program(const StepNetwork& network, const StepQuestion& question) {
  StepSearch search(network);
  expect_program(search, network, question);
}

// All choices of sends, step by step. Sending less than fits is never better, so only full choices
// are tried.
class Exhaustive {
 public:
  Exhaustive(const StepNetwork& network, const StepProblem& problem)
      : network_(network), problem_(problem), limits_(network.edges.size()) {
    for (const StepLimit& limit : network.limits) limits_[static_cast<std::size_t>(limit.edges[0])] = limit;
  }

  bool possible(std::int32_t steps, std::int32_t rounds) {
    std::uint64_t has = 0;
    for (std::size_t i = 0; i < problem_.chunks.size(); ++i) has |= bit(i, problem_.chunks[i].source);
    return reaches(has, steps, rounds);
  }

 private:
  std::uint64_t bit(std::size_t chunk, std::int32_t device) const {
    return std::uint64_t{1} << (chunk * static_cast<std::size_t>(network_.devices) +
                                static_cast<std::size_t>(device));
  }

  bool done(std::uint64_t has) const {
    for (std::size_t i = 0; i < problem_.chunks.size(); ++i)
      for (const std::int32_t target : problem_.chunks[i].targets)
        if (!(has & bit(i, target))) return false;
    return true;
  }

  bool reaches(std::uint64_t has, std::int32_t steps, std::int32_t rounds) {
    if (done(has)) return true;
    if (steps == 0) return false;
    const auto [known, is_new] = known_.try_emplace({has, steps, rounds}, false);
    if (!is_new) return known->second;
    bool found = false;
    for (std::int32_t now = 1; now <= rounds - (steps - 1) && !found; ++now)
      found = choose(has, has, 0, 0, 0, steps, rounds, now);
    known_[{has, steps, rounds}] = found;
    return found;
  }

  // Sends over edge `edge` from chunk `chunk` on; `sent` chunks so far.
  bool choose(std::uint64_t before, std::uint64_t after, std::size_t edge, std::size_t chunk,
              std::int64_t sent, std::int32_t steps, std::int32_t rounds, std::int32_t now) {
    if (edge == network_.edges.size()) return reaches(after, steps - 1, rounds - now);
    const auto [from, to] = network_.edges[edge];
    const std::int64_t room = chunks_in(limits_[edge], now);
    if (chunk == problem_.chunks.size()) {
      std::int64_t useful = sent;
      for (std::size_t i = 0; i < chunk; ++i) useful += (before & bit(i, from)) && !(after & bit(i, to));
      return sent == std::min(room, useful) && choose(before, after, edge + 1, 0, 0, steps, rounds, now);
    }
    const bool can = (before & bit(chunk, from)) && !(after & bit(chunk, to)) && sent < room;
    if (can && choose(before, after | bit(chunk, to), edge, chunk + 1, sent + 1, steps, rounds, now))
      return true;
    return choose(before, after, edge, chunk + 1, sent, steps, rounds, now);
  }

  const StepNetwork& network_;
  const StepProblem& problem_;
  std::vector<StepLimit> limits_;  // by edge
  std::map<std::tuple<std::uint64_t, std::int32_t, std::int32_t>, bool> known_;
};

TEST(StepSearch, AgreesWithExhaustiveSearch) {
  if (!can_decide_steps()) GTEST_SKIP() << "built without a solver";
  std::mt19937 random(7);
  int found = 0, refuted = 0;
  for (int round = 0; round < 16; ++round) {
    const std::int32_t devices = 3 + round % 2;
    std::vector<std::array<std::int32_t, 3>> links;
    for (std::int32_t i = 0; i < devices; ++i)
      links.push_back({i, (i + 1) % devices, 1 + static_cast<std::int32_t>(random() % 2)});
    for (int more = 0; more < 2; ++more) {
      const auto count = static_cast<unsigned>(devices);
      const auto from = static_cast<std::int32_t>(random() % count);
      const auto hop = 1 + static_cast<std::int32_t>(random() % (count - 1));
      links.push_back({from, (from + hop) % devices, 1});
    }
    const StepNetwork network = network_of(devices, links);
    for (const Kind kind : {Kind::all_gather, Kind::broadcast, Kind::gather, Kind::scatter, Kind::all_to_all,
                            Kind::reduce_scatter, Kind::reduce})
      for (std::int32_t chunks = 1; chunks <= (devices == 3 && kind != Kind::all_to_all ? 2 : 1); ++chunks)
        for (std::int32_t steps = 1; steps <= 3; ++steps)
          for (std::int32_t rounds = steps; rounds <= std::min(steps + 1, 3); ++rounds) {
            if (devices == 4 && kind == Kind::all_to_all) continue;  // too many cases
            StepQuestion question{kind, devices - 1, kind == Kind::all_to_all ? devices : chunks, steps,
                                  rounds};
            const StepNetwork used = runs_backwards(kind) ? reversed(network) : network;
            const StepProblem problem = step_problem(question, devices);
            const bool possible = Exhaustive(used, problem).possible(steps, rounds);
            ++(possible ? found : refuted);
            EXPECT_EQ(ask(network, question),
                      possible ? StepVerdict::satisfiable : StepVerdict::unsatisfiable)
                << name(kind) << " " << question.chunks << " " << steps << " " << rounds << " of case "
                << round;
          }
  }
  EXPECT_GT(found, 100);
  EXPECT_GT(refuted, 100);
}

TEST(StepSearch, EveryCollectiveBecomesAProgram) {
  if (!can_decide_steps()) GTEST_SKIP() << "built without a solver";
  const StepNetwork uneven =
      network_of(4, {{0, 1, 2}, {1, 2, 1}, {2, 3, 1}, {3, 0, 1}, {1, 0, 1}, {2, 0, 1}});
  for (const StepNetwork& network : {ring_network(4), star_network(4), uneven})
    for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::broadcast, Kind::reduce,
                            Kind::gather, Kind::scatter, Kind::all_to_all, Kind::all_reduce}) {
      const bool whole = kind == Kind::all_to_all || kind == Kind::all_reduce;
      expect_program(network, {kind, 1, whole ? 8 : 2, 8, 16});
    }
}

TEST(StepSearch, OneDeviceNeedsNoSteps) {
  if (!can_decide_steps()) GTEST_SKIP() << "built without a solver";
  StepNetwork alone;
  alone.devices = 1;
  for (const Kind kind : {Kind::all_gather, Kind::broadcast, Kind::all_to_all, Kind::gather})
    expect_program(alone, {kind, 0, 2, 1, 1});
  expect_program(alone, {Kind::all_reduce, 0, 2, 2, 2});
}

TEST(StepSearch, IsDeterministic) {
  if (!can_decide_steps()) GTEST_SKIP() << "built without a solver";
  const StepQuestion question{Kind::all_gather, 0, 2, 3, 5};
  const StepNetwork network = ring_network(6);
  const auto one = answer_steps(network, question, {}), other = answer_steps(network, question, {});
  ASSERT_TRUE(one.ok() && other.ok());
  ASSERT_EQ(one->verdict, StepVerdict::satisfiable);
  EXPECT_EQ(print(step_moves(question, network, *one)), print(step_moves(question, network, *other)));
}

TEST(StepSearch, RejectsInvalidProblems) {
  const StepNetwork network = ring_network(4);
  const auto message = [&](const StepQuestion& question) {
    const auto answer = answer_steps(network, question, {});
    return answer.ok() ? "" : answer.error().message;
  };
  EXPECT_EQ(message({Kind::all_gather, 0, 0, 2, 2}), "chunks must be at least 1: 0");
  EXPECT_EQ(message({Kind::all_gather, 0, 1, 0, 2}), "steps must be at least 1: 0");
  EXPECT_EQ(message({Kind::all_gather, 0, 1, 3, 2}), "every step takes a round: 3 steps in 2 rounds");
  EXPECT_EQ(message({Kind::broadcast, 4, 1, 3, 3}), "the root is not one of the 4 devices: 4");
  EXPECT_EQ(message({Kind::all_to_all, 0, 6, 3, 3}),
            "chunks of all_to_all must be a multiple of 4 devices: 6");
  EXPECT_EQ(message({Kind::barrier, 0, 1, 3, 3}), "no algorithm is synthesized for barrier");
  EXPECT_EQ(message({Kind::all_gather, 0, 1 << 30, 3, 3}),
            "too large to search: 1073741824 chunks, 3 steps, 4 devices");
}

TEST(StepSearch, CountingRefutesByDistanceAndBandwidth) {
  const StepNetwork network = ring_network(8);
  const auto why = [&](const StepQuestion& question) {
    const auto answer = answer_steps(network, question, {});
    EXPECT_EQ(answer->verdict, StepVerdict::unsatisfiable);
    EXPECT_EQ(answer->formulas, 0);
    return answer->why;
  };
  EXPECT_EQ(why({Kind::all_gather, 0, 1, 3, 9}), "some chunk has 4 steps to go");
  EXPECT_EQ(why({Kind::all_gather, 0, 2, 6, 6}),
            "devices 0 1 2 3 4 5 6 have 14 chunks for the others, and 12 can leave in the 6 usable rounds");
}

TEST(StepSearch, StopsAtOnceWhenAsked) {
  if (!can_decide_steps()) GTEST_SKIP() << "built without a solver";
  StepClock over;
  over.stop = [] { return true; };
  const auto stopped = answer_steps(ring_network(8), {Kind::all_gather, 0, 2, 7, 7}, over);
  ASSERT_TRUE(stopped.ok());
  EXPECT_EQ(stopped->verdict, StepVerdict::unknown);
  EXPECT_EQ(stopped->why, "stopped before an answer was found");
}

TEST(StepSearch, StopsInTheMiddle) {
  if (!can_decide_steps()) GTEST_SKIP() << "built without a solver";
  // Stop requests while the solver runs, on a problem that would take many seconds.
  int asked = 0;
  StepClock soon;
  soon.stop = [&] { return ++asked > 400; };
  std::vector<std::array<std::int32_t, 3>> links;
  for (std::int32_t i = 0; i < 8; ++i)
    for (std::int32_t axis = 1; axis < 8; axis *= 2) links.push_back({i, i ^ axis, 2});
  const auto stopped = answer_steps(network_of(8, links), {Kind::broadcast, 0, 22, 5, 6}, soon);
  ASSERT_TRUE(stopped.ok());
  EXPECT_NE(stopped->verdict, StepVerdict::satisfiable);
}

// The rows of SCCL's tables, and those that z3 refuted; the ones that take a second are in
// bench/synthesis_steps.
TEST(StepSearch, ReproducesTheTablesOfSccl) {
  if (!can_decide_steps()) GTEST_SKIP() << "built without a solver";
  if (!std::filesystem::exists(kTopologies)) GTEST_SKIP() << "the corpus is missing";
  const auto text = read_file(kTopologies + "anchors.json", 1 << 24);
  ASSERT_TRUE(text.ok());
  const auto anchors = nlohmann::json::parse(*text);
  const std::map<std::string, std::vector<Kind>> kinds{
      {"allgather_reducescatter", {Kind::all_gather, Kind::reduce_scatter}},
      {"allreduce", {Kind::all_reduce}},
      {"broadcast_reduce", {Kind::broadcast, Kind::reduce}},
      {"gather_scatter", {Kind::gather, Kind::scatter}},
      {"alltoall", {Kind::all_to_all}}};
  int rows = 0;
  for (const auto& [table, file] :
       {std::pair{"sccl_paper_DGX1", "sccl_DGX1"}, {"sccl_paper_Z52_ring8", "sccl_Ring8_Z52_model"}}) {
    const StepNetwork network = corpus_network(file);
    StepSearch search(network);
    for (const auto& [key, of_table] : kinds)
      for (const auto& row : anchors[table][key])
        for (const Kind kind : of_table) {
          const StepQuestion question{kind, 0, row["C"], row["S"], row["R"]};
          if (question.chunks == 18) continue;
          ++rows;
          // Long programs are proved in bench/synthesis_steps.
          if (question.steps <= 4)
            expect_program(search, network, question);
          else
            EXPECT_EQ(ask(search, question), StepVerdict::satisfiable);
        }
  }
  EXPECT_EQ(rows, 76);
  const StepNetwork dgx1 = corpus_network("sccl_DGX1");
  EXPECT_EQ(ask(dgx1, {Kind::all_gather, 0, 3, 2, 4}), StepVerdict::unsatisfiable);
  EXPECT_EQ(ask(dgx1, {Kind::all_to_all, 0, 8, 2, 2}), StepVerdict::unsatisfiable);
  EXPECT_EQ(ask(dgx1, {Kind::broadcast, 0, 6, 2, 3}), StepVerdict::unsatisfiable);
}

TEST(StepPareto, FindsTheFrontierOfADgx1) {
  if (!can_decide_steps()) GTEST_SKIP() << "built without a solver";
  if (!std::filesystem::exists(kTopologies)) GTEST_SKIP() << "the corpus is missing";
  const auto frontier = step_frontier(corpus_network("sccl_DGX1"), Kind::all_gather, 0, {}, {});
  ASSERT_TRUE(frontier.ok());
  ASSERT_EQ(frontier->points.size(), 2u);
  EXPECT_EQ(frontier->points[0].question, (StepQuestion{Kind::all_gather, 0, 2, 2, 3}));
  EXPECT_EQ(best_in(*frontier, frontier->points[0]), "latency");
  EXPECT_EQ(frontier->points[1].question, (StepQuestion{Kind::all_gather, 0, 6, 3, 7}));
  EXPECT_EQ(best_in(*frontier, frontier->points[1]), "bandwidth");
  EXPECT_TRUE(frontier->reaches_bandwidth);
}

// msccl-tools never stops adding steps here: its all_reduce of one chunk never reaches the required
// bandwidth.
TEST(StepPareto, AllReduceOnRingsTerminates) {
  if (!can_decide_steps()) GTEST_SKIP() << "built without a solver";
  for (std::int32_t devices = 2; devices <= 9; ++devices) {
    const auto frontier = step_frontier(ring_network(devices), Kind::all_reduce, 0, {}, {});
    ASSERT_TRUE(frontier.ok());
    EXPECT_TRUE(frontier->reaches_bandwidth) << devices;
    EXPECT_EQ(best_in(*frontier, frontier->points.back()), "both") << devices;
  }
}

TEST(StepPareto, APipelineStopsAtTheStepLimit) {
  if (!can_decide_steps()) GTEST_SKIP() << "built without a solver";
  const auto frontier =
      step_frontier(network_of(3, {{0, 1, 1}, {1, 2, 1}, {2, 0, 1}}), Kind::broadcast, 0, {}, {});
  ASSERT_TRUE(frontier.ok());
  EXPECT_FALSE(frontier->reaches_bandwidth);
  ASSERT_FALSE(frontier->points.empty());
  EXPECT_EQ(frontier->points.front().question, (StepQuestion{Kind::broadcast, 0, 1, 2, 2}));
  for (const StepPoint& point : frontier->refuted)
    EXPECT_EQ(point.answer.verdict, StepVerdict::unsatisfiable);
}

TEST(StepSchedule, DetectsFaults) {
  const StepNetwork network = network_of(3, {{0, 1, 1}, {1, 2, 1}, {2, 0, 1}});
  const StepProblem problem = step_problem({Kind::broadcast, 0, 2, 3, 3}, 3);
  const StepSchedule right{{1, 1, 1}, {{0, 0, 0}, {1, 0, 1}, {1, 1, 0}, {2, 1, 1}}};
  EXPECT_EQ(first_fault(network, problem, right), std::nullopt);
  StepSchedule early = right;
  early.sends[2].step = 0;
  std::ranges::sort(early.sends);
  EXPECT_EQ(first_fault(network, problem, early), "device 1 sends chunk 0 in step 0 before it has it");
  StepSchedule crowded = right;
  crowded.sends[1].step = 0;
  EXPECT_EQ(first_fault(network, problem, crowded), "2 chunks in step 0 where 1 fit 1 rounds");
  StepSchedule lost = right;
  lost.sends.pop_back();
  EXPECT_EQ(first_fault(network, problem, lost), "chunk 1 never reaches device 2");
}

TEST(StepSchedule, SplitsALongStep) {
  const StepNetwork network = network_of(2, {{0, 1, 2}, {1, 0, 1}});
  const StepProblem problem = step_problem({Kind::broadcast, 0, 5, 1, 3}, 2);
  const StepSchedule whole{{3}, {{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {0, 0, 3}, {0, 0, 4}}};
  const StepSchedule split = split_steps(network, whole, 3);
  EXPECT_EQ(split.rounds, (std::vector<std::int32_t>{1, 1, 1}));
  EXPECT_EQ(first_fault(network, problem, split), std::nullopt);
}

}  // namespace
}  // namespace weft::synthesis
