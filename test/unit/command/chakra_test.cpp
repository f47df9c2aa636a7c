// Chakra traces: read, written and simulated on networks, and compared with ASTRA-sim on the same
// files.
#include "weft/formats/chakra.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chakra_case.h"
#include "mesh_case.h"
#include "temporary_folder.h"
#include "weft/app/command/simulate.h"
#include "weft/base/file.h"
#include "weft/base/hash.h"
#include "weft/formats/astra_config.h"
#include "weft/formats/chakra_program.h"
#include "weft/formats/gzip.h"
#include "weft/formats/protobuf_wire.h"
#include "weft/predict/sim/step/predict.h"
#include "weft/predict/sim/trace/trace_collective.h"
#include "weft/predict/sim/trace/trace_run.h"

namespace weft::sim {
namespace {

using Collective = TraceNode::Collective;
using Kind = TraceNode::Kind;
using Net = TraceDimension::Kind;

namespace fs = std::filesystem;

constexpr double kNanosecond = 1e-9;
const fs::path kCorpus = fs::path(WEFT_SOURCE_DIR) / "../shared/corpus/chakra";

double seconds_of(const ExecutionTrace& trace, const TraceNetwork& network, const TraceSystem& system = {}) {
  const auto run = run_trace(trace, network, system);
  if (!run.ok()) throw std::runtime_error(run.error().message);
  return run->seconds;
}

std::string complaint_of(const ExecutionTrace& trace, const TraceNetwork& network) {
  const auto run = run_trace(trace, network, {});
  return run.ok() ? "" : run.error().message;
}

// --- the wire format

TEST(ProtobufWireTest, ReadsBackWhatWasWritten) {
  formats::WireWriter writer;
  const std::uint64_t values[] = {0, 1, 127, 128, 300, 1ULL << 35, UINT64_MAX};
  for (const std::uint64_t value : values) writer.field(3, value);
  writer.field(9, "bytes");
  formats::WireReader reader(writer.bytes());
  formats::WireField field;
  for (const std::uint64_t value : values) {
    ASSERT_TRUE(reader.read_field(field));
    EXPECT_EQ(field.number, 3u);
    EXPECT_EQ(field.whole, value);
  }
  ASSERT_TRUE(reader.read_field(field));
  EXPECT_EQ(field.bytes, "bytes");
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(formats::unzigzag(3), -2);
}

TEST(ProtobufWireTest, RejectsTruncatedAndOverlongFields) {
  formats::WireField field;
  const std::string_view bad[] = {"\x08",
                                  "\x08\x80",
                                  "\x12\x05hi",
                                  "\x0b",
                                  "\x09\x01\x02",
                                  "\x07",
                                  "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
                                  "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
                                  "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"};
  for (const std::string_view bytes : bad) {
    formats::WireReader reader(bytes);
    EXPECT_FALSE(reader.read_field(field)) << bytes.size();
    EXPECT_EQ(reader.offset(), 0u);
  }
}

// --- files

ExecutionTrace small_trace() {
  ExecutionTrace trace =
      alike(2, {computing(0, 12.345e-6), meeting(1, Collective::all_gather, 4096, {0}, 0)});
  trace.groups = {{"1", {0, 1}}};
  trace.ranks[0].nodes.push_back(mail(2, Kind::send, 1, 100, 7, {0, 1}));
  trace.ranks[1].nodes.push_back(mail(2, Kind::receive, 0, 100, 7));
  trace.ranks[1].nodes.push_back({.id = 9,
                                  .name = "cpu",
                                  .kind = Kind::compute,
                                  .on_cpu = true,
                                  .seconds = 1e-6,
                                  .operations = 5,
                                  .tensor_bytes = 6,
                                  .after = {2}});
  return trace;
}

TEST(ChakraTest, ReadsBackWhatWasWritten) {
  const TemporaryFolder folder;
  const ExecutionTrace trace = small_trace();
  ASSERT_TRUE(formats::write_chakra(trace, folder.path() + "/small").ok());
  for (const std::string& name : {folder.path() + "/small", folder.path()}) {
    const auto read = formats::read_chakra(name);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->groups, trace.groups);
    ASSERT_EQ(read->ranks.size(), 2u);
    for (std::size_t r = 0; r < 2; ++r) EXPECT_EQ(read->ranks[r], trace.ranks[r]) << r;
    EXPECT_TRUE(read->notes.empty());
  }
}

TEST(ChakraTest, NamesRanksWithoutAFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(formats::write_chakra(alike(5, {computing(0, 1)}), folder.path() + "/run").ok());
  fs::remove(folder.path() + "/run.1.et");
  fs::remove(folder.path() + "/run.3.et");
  EXPECT_EQ(formats::read_chakra(folder.path()).error().message,
            "found traces up to rank 4, but none for rank 1, 3");
  ASSERT_TRUE(formats::write_chakra(alike(1, {computing(0, 1)}), folder.path() + "/other").ok());
  EXPECT_TRUE(formats::read_chakra(folder.path())
                  .error()
                  .message.ends_with("has traces of several runs: other, run"));
  EXPECT_FALSE(formats::read_chakra(folder.path() + "/none").ok());
  EXPECT_FALSE(formats::read_chakra("/nowhere/at/all").ok());
}

// One node with one attribute of any type.
std::string file_with(std::uint32_t field, std::uint64_t value, std::string_view attribute = "comm_size") {
  formats::WireWriter inner, node, file;
  inner.field(1, attribute);
  inner.field(field, value);
  node.field(3, std::uint64_t{7});
  node.field(10, inner.bytes());
  file.delimited("");
  file.delimited(node.bytes());
  return file.take();
}

TEST(ChakraTest, AcceptsIntegerAttributesOfAnyWidth) {
  for (const std::uint32_t field : {7u, 9u, 11u, 13u, 27u}) {
    ExecutionTrace trace;
    ASSERT_TRUE(formats::parse_chakra(file_with(field, 300), "a", trace).ok());
    EXPECT_EQ(trace.ranks[0].nodes[0].bytes, 300) << field;
  }
  ExecutionTrace zigzag;
  ASSERT_TRUE(formats::parse_chakra(file_with(17, 600), "a", zigzag).ok());
  EXPECT_EQ(zigzag.ranks[0].nodes[0].bytes, 300);
}

TEST(ChakraTest, ReportsTheLocationInBadFiles) {
  ExecutionTrace trace;
  EXPECT_EQ(formats::parse_chakra(file_with(9, UINT64_MAX), "a.0.et", trace).error().message,
            "a.0.et: node 0: comm_size is out of range: -1");
  const std::string whole = formats::print_chakra(small_trace(), 0);
  for (std::size_t length = 1; length < whole.size(); ++length) {
    ExecutionTrace cut;
    cut.groups = small_trace().groups;
    const auto parsed = formats::parse_chakra(whole.substr(0, length), "a", cut);
    EXPECT_TRUE(parsed.ok() || parsed.error().message.find("truncated") != std::string::npos);
  }
  ExecutionTrace twice = alike(1, {computing(4, 1), computing(4, 1)}), read;
  EXPECT_EQ(formats::parse_chakra(formats::print_chakra(twice, 0), "a", read).error().message,
            "a: two nodes have the id 4");
  ExecutionTrace stranger = alike(1, {meeting(0, Collective::all_reduce, 8, {}, 0)}), without;
  stranger.groups = {{"12", {0}}};
  EXPECT_EQ(formats::parse_chakra(formats::print_chakra(stranger, 0), "a", without).error().message,
            "a: node 0 \"all-reduce\" uses the unknown process group 12");
}

TEST(ChakraTest, ReportsErrorsInConfigurations) {
  const auto network = [](std::string_view text) {
    const auto parsed = formats::parse_astra_network(text);
    return parsed.ok() ? fmt::format("{} ranks", parsed->ranks()) : parsed.error().message;
  };
  const std::string good = "npus_count: [ 8, 4 ]\nbandwidth: [ 300.0, 50 ] # GB/s\nlatency: [ 1, 2 ]\n";
  EXPECT_EQ(network("topology: [ Ring, Switch ]\n" + good), "32 ranks");
  EXPECT_EQ(network("topology: [ Ring, Torus ]\n" + good),
            "topology: expected Ring, Switch or FullyConnected, found Torus");
  EXPECT_EQ(network("topology: [ Ring ]\n" + good), "topology has 1 dimensions, npus_count has 2");
  EXPECT_EQ(network("nothing\n"), "line 1: expected \"key: [ .. ]\", found nothing");
  EXPECT_EQ(network("topology: [ Ring ]\nnpus_count: [ 8 ]\nlatency: [ 0 ]\n"),
            "the network has no bandwidth");
  EXPECT_EQ(network("topology: Ring\nnpus_count: 8\nlatency: 0\nbandwidth: 0\n"),
            "a dimension needs a bandwidth above 0");
  EXPECT_FALSE(formats::parse_astra_system("{\"all-reduce-implementation\": [\"magic\"]}").ok());
  EXPECT_FALSE(formats::parse_astra_system("{\"preferred-dataset-splits\": 0}").ok());
  const auto system = formats::parse_astra_system("{\"local-mem-bw\": 1600, \"endpoint-delay\": 10}");
  EXPECT_EQ(system.value().memory_bytes_per_second, 1600e9);
}

// --- one collective, computed by hand: 1 GB/s, 1 us

TEST(TraceRunTest, RingTakesItsSteps) {
  // Four ranks pass on a kilobyte six times; each pass takes one microsecond plus the latency.
  const ExecutionTrace trace = alike(4, {meeting(0, Collective::all_reduce, 4000)});
  EXPECT_NEAR(seconds_of(trace, network_of({{Net::ring, 4}})), 12e-6, kNanosecond);
  EXPECT_NEAR(seconds_of(trace, network_of({{Net::switched, 4}})), 18e-6, kNanosecond);
  TraceSystem whole_first;
  whole_first.wires = WireModel::store_and_forward;
  EXPECT_NEAR(seconds_of(trace, network_of({{Net::switched, 4}}), whole_first), 24e-6, kNanosecond);
  TraceSystem endpoint;
  endpoint.endpoint_seconds = 1e-6;
  endpoint.memory_bytes_per_second = 1e9;  // three passes over a kilobyte in each of three reductions
  EXPECT_NEAR(seconds_of(trace, network_of({{Net::ring, 4}}), endpoint), (12 + 7 + 9) * 1e-6, kNanosecond);
}

TEST(TraceRunTest, DirectMessagesShareTheLink) {
  const ExecutionTrace trace = alike(4, {meeting(0, Collective::all_reduce, 4000)});
  TraceSystem direct;
  direct.all_reduce = {TraceAlgorithm::direct};
  // Three messages leave one after the other, twice; each crosses two links.
  EXPECT_NEAR(seconds_of(trace, network_of({{Net::switched, 4}}), direct), 2 * (3 + 2) * 1e-6, kNanosecond);
  EXPECT_NEAR(seconds_of(trace, network_of({{Net::fully_connected, 4}}), direct), 2 * 2e-6, kNanosecond);
  direct.wires = WireModel::uncontended;
  EXPECT_NEAR(seconds_of(trace, network_of({{Net::switched, 4}}), direct), 2 * 3e-6, kNanosecond);
}

TEST(TraceRunTest, OneRankRepresentsAllInSymmetricCollectives) {
  const std::vector<TraceNetwork> networks = {network_of({{Net::ring, 8}}), network_of({{Net::switched, 8}}),
                                              network_of({{Net::fully_connected, 8}}),
                                              network_of({{Net::ring, 4}, {Net::switched, 2}}),
                                              network_of({{Net::fully_connected, 2}, {Net::ring, 4}})};
  for (const TraceNetwork& network : networks) {
    for (const auto algorithm : {TraceAlgorithm::ring, TraceAlgorithm::direct,
                                 TraceAlgorithm::halving_doubling, TraceAlgorithm::double_binary_tree}) {
      for (const auto collective : {Collective::all_reduce, Collective::all_gather,
                                    Collective::reduce_scatter, Collective::all_to_all}) {
        for (const auto wires :
             {WireModel::cut_through, WireModel::store_and_forward, WireModel::uncontended}) {
          TraceSystem system;
          system.all_reduce = system.all_gather = system.reduce_scatter = system.all_to_all = {algorithm};
          system.chunks = 3;
          system.active_chunks = 2;
          system.endpoint_seconds = 1e-7;
          system.memory_bytes_per_second = 1e10;
          system.wires = wires;
          const CollectiveCall call{collective, 48000, {}};
          const CollectiveEnds one = run_alone(call, network, system).value();
          const CollectiveEnds all = run_alone(call, network, system, true).value();
          EXPECT_NEAR(std::ranges::max(one.seconds), std::ranges::max(all.seconds), 1e-12)
              << name(algorithm) << " " << name(collective) << " " << static_cast<int>(wires);
        }
      }
    }
  }
}

TEST(TraceRunTest, TreesNeedAPowerOfTwo) {
  TraceSystem tree;
  tree.all_reduce = {TraceAlgorithm::double_binary_tree};
  const auto run =
      run_trace(alike(6, {meeting(0, Collective::all_reduce, 600)}), network_of({{Net::ring, 6}}), tree);
  EXPECT_EQ(run.error().message, "doubleBinaryTree needs a power-of-two number of ranks, found 6");
}

TEST(TraceRunTest, GroupsShareACommonLink) {
  // 0 with 2 and 1 with 3 on a ring: both routes use the link between 1 and 2.
  ExecutionTrace trace = alike(4, {meeting(0, Collective::all_gather, 1000000)});
  trace.groups = {{"1", {0, 2}}, {"2", {1, 3}}};
  for (std::size_t r = 0; r < 4; ++r) trace.ranks[r].nodes[0].group = static_cast<std::int32_t>(r % 2);
  const double together = seconds_of(trace, network_of({{Net::ring, 4}}));
  ExecutionTrace alone = trace;
  alone.ranks[1].nodes.clear();
  alone.ranks[3].nodes.clear();
  const double apart = seconds_of(alone, network_of({{Net::ring, 4}}));
  EXPECT_GT(together, 1.4 * apart);
  EXPECT_NEAR(seconds_of(trace, network_of({{Net::switched, 4}})), apart, 1e-6);
}

// --- nodes

TEST(TraceRunTest, ARankRunsOneNodePerKindAtATime) {
  // Two computations of one second each, a concurrent collective, and one that waits for it.
  ExecutionTrace trace = alike(2, {computing(0, 1), computing(1, 1), meeting(2, Collective::other, 0),
                                   meeting(3, Collective::other, 0)});
  for (RankTrace& rank : trace.ranks) rank.nodes[2].seconds = rank.nodes[3].seconds = 3;
  const auto run = run_trace(trace, network_of({{Net::ring, 2}}), {}, {.timeline = true}).value();
  EXPECT_DOUBLE_EQ(run.seconds, 6);
  EXPECT_DOUBLE_EQ(run.ranks[0].compute_seconds, 2);
  EXPECT_DOUBLE_EQ(run.ranks[0].communication_seconds, 6);
  EXPECT_DOUBLE_EQ(run.ranks[0].exposed_seconds, 4);
  EXPECT_EQ(run.timeline.size(), 8u);
  TraceSystem two_at_once;
  two_at_once.communications = 2;
  EXPECT_DOUBLE_EQ(seconds_of(trace, network_of({{Net::ring, 2}}), two_at_once), 3);
}

TEST(TraceRunTest, ReceivesWaitForTheirTagWithoutBlockingOthers) {
  ExecutionTrace trace;
  trace.ranks = {{{mail(0, Kind::send, 1, 1000, 5, {}), mail(1, Kind::send, 1, 1000, 6, {})}},
                 {{mail(0, Kind::receive, 0, 1000, 6), computing(1, 1, {0}),
                   mail(2, Kind::receive, 0, 1000, 5), computing(3, 1, {2})}}};
  EXPECT_NEAR(seconds_of(trace, network_of({{Net::ring, 2}})), 2 + 2e-6, kNanosecond);
}

TEST(TraceRunTest, RooflineTakesTheMaximumOfComputeAndMemory) {
  ExecutionTrace trace = alike(1, {computing(0, 99), computing(1, 99), computing(2, 99)});
  trace.ranks[0].nodes[0].operations = 2e12;
  trace.ranks[0].nodes[0].tensor_bytes = 1;
  trace.ranks[0].nodes[1].operations = 1;
  trace.ranks[0].nodes[1].tensor_bytes = 3e9;
  TraceSystem system;
  system.roofline = true;
  system.operations_per_second = 1e12;
  system.memory_bytes_per_second = 1e9;
  EXPECT_NEAR(seconds_of(trace, network_of({{Net::ring, 1}}), system), 2 + 3, kNanosecond);
}

TEST(TraceRunTest, NamesADependencyCycle) {
  const TraceNetwork pair = network_of({{Net::ring, 2}});
  ExecutionTrace circle = alike(2, {computing(10, 1, {1}), computing(11, 1, {0})});
  EXPECT_EQ(
      complaint_of(circle, pair),
      "nodes wait for each other: rank 0 \"compute\" (node 10) waits for rank 0 \"compute\" (node 11), which "
      "waits for rank 0 \"compute\" (node 10)");
  ExecutionTrace itself = alike(2, {computing(3, 1, {0})});
  EXPECT_EQ(complaint_of(itself, pair),
            "nodes wait for each other: rank 0 \"compute\" (node 3) waits for itself");

  // Two collectives in opposite orders.
  ExecutionTrace crossed =
      alike(2, {meeting(0, Collective::all_reduce, 8), meeting(1, Collective::all_gather, 8)});
  std::swap(crossed.ranks[1].nodes[0].collective, crossed.ranks[1].nodes[1].collective);
  std::swap(crossed.ranks[1].nodes[0].name, crossed.ranks[1].nodes[1].name);
  EXPECT_EQ(
      complaint_of(crossed, pair),
      "the ranks wait for each other: rank 0 \"all-reduce\" (node 0) waits for rank 1 \"all-reduce\" (node "
      "1), "
      "which waits for rank 1 \"all-gather\" (node 0), which waits for rank 0 \"all-gather\" (node 1), which "
      "waits for rank 0 \"all-reduce\" (node 0)");
}

TEST(TraceRunTest, NamesMissingPeers) {
  const TraceNetwork pair = network_of({{Net::ring, 2}});
  ExecutionTrace lonely = alike(2, {});
  lonely.ranks[0].nodes = {meeting(0, Collective::all_reduce, 8)};
  EXPECT_EQ(complaint_of(lonely, pair),
            "the trace deadlocks: rank 0 \"all-reduce\" (node 0) waits for rank 1, which never joins an "
            "all-reduce of 8 bytes");
  lonely.ranks[0].nodes = {mail(0, Kind::receive, 1, 8, 3)};
  EXPECT_EQ(complaint_of(lonely, pair),
            "the trace deadlocks: rank 0 \"receive\" (node 0) waits for a message from rank 1 with tag 3, "
            "which never sends it");
  EXPECT_EQ(complaint_of(alike(3, {}), pair), "the network has 2 ranks, the trace 3");
  lonely.ranks[0].nodes = {mail(0, Kind::send, 7, 8, 3)};
  EXPECT_EQ(complaint_of(lonely, pair), "rank 0 \"send\" (node 0): the network has no rank 7");
}

// --- Weft's own predictions, exported as traces

StepCosts arbitrary_costs() {
  const auto draw = [](std::uint64_t a, std::uint64_t b) {
    return 1e-6 * static_cast<double>(1 + mix(mix(a) ^ mix(b + 7)) % 997);
  };
  return {[=](const program::Program&, const program::Task& task) {
            return TaskCost{draw(task.unit, static_cast<std::uint64_t>(task.begin)), Source::datasheet};
          },
          [=](const program::Exchange& exchange, std::size_t axis, std::int64_t bytes) {
            return ExchangeCost{draw(axis, 1), draw(exchange.node.value, static_cast<std::uint64_t>(bytes)),
                                "ring", Source::datasheet};
          }};
}

TEST(ChakraProgramTest, AnExportedStepTakesThePredictedTime) {
  for (const std::string_view mesh_text : {"gpu=4", "node=2, gpu=4"}) {
    const plan::Graph graph = ops::read_plan(ops::kTwoSums);
    const plan::Mesh mesh = plan::read_mesh(mesh_text).value();
    const auto layouts = spmd::infer_layouts(graph, mesh).value();
    const Prediction prediction = predict(graph, mesh, layouts, arbitrary_costs()).value();
    const TemporaryFolder folder;
    ASSERT_TRUE(formats::write_chakra(prediction, mesh, folder.path() + "/step").ok());
    const ExecutionTrace trace = formats::read_chakra(folder.path()).value();
    TraceSystem system;
    system.replay = true;
    system.communications = static_cast<std::int32_t>(mesh.axes.size());
    const auto run = run_trace(trace, network_of({{Net::switched, mesh.ranks()}}), system).value();
    EXPECT_NEAR(run.seconds, prediction.seconds, 0.001 * prediction.seconds) << mesh_text;
    EXPECT_NEAR(run.ranks[0].compute_seconds, prediction.compute_seconds, 0.001 * prediction.seconds);
    EXPECT_EQ(run.collectives, 2 * mesh.ranks() / 4);
    EXPECT_EQ(trace.groups.size(), mesh.ranks() == 4 ? 0u : 2u);
    // It also runs with simulated links, and with the bytes that the plan moves.
    EXPECT_GT(seconds_of(trace, network_of({{Net::switched, mesh.ranks()}})), 0);
    EXPECT_EQ(std::ranges::find(trace.ranks[0].nodes, Kind::collective, &TraceNode::kind)->bytes, 64);
  }
}

TEST(ChakraProgramTest, RejectsAPredictionWithoutTimelines) {
  EXPECT_EQ(formats::execution_trace(Prediction(), plan::read_mesh("gpu=2").value()).error().message,
            "the prediction has no timelines to export");
}

// --- the command

TEST(SimulateTest, AnswersInTextAndJson) {
  const TemporaryFolder folder;
  ASSERT_TRUE(
      formats::write_chakra(alike(4, {computing(0, 1e-3), meeting(1, Collective::all_reduce, 1 << 20, {0})}),
                            folder.path() + "/run")
          .ok());
  const std::string network = folder.path() + "/net.yml", timeline = folder.path() + "/timeline.json";
  ASSERT_TRUE(write_file_atomically(
                  network, "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 1 ]\nlatency: [ 0 ]\n")
                  .ok());
  command::Simulate request{
      .traces = folder.path() + "/run", .network = network, .system = "", .timeline = timeline};
  const session::Reply text = command::run(request);
  EXPECT_EQ(text.exit_code, session::ExitCode::ok) << text.complaint;
  EXPECT_TRUE(text.output.starts_with("2.46 ms on 4 ranks\n")) << text.output;
  EXPECT_NE(text.output.find("0 to 3"), std::string::npos) << text.output;
  request.format = session::Format::json;
  const auto json = nlohmann::json::parse(command::run(request).output);
  EXPECT_NEAR(json["seconds"].get<double>(), 1e-3 + 1.5 / 1024, 1e-9);
  EXPECT_EQ(json["ranks"].size(), 4u);
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(timeline))["traceEvents"].size(), 4u * (3 + 2));
  request.wires = "store-and-forwards";
  EXPECT_EQ(command::run(request).exit_code, session::ExitCode::user_error);
  EXPECT_NE(command::run(request).complaint.find("store-and-forward"), std::string::npos);
}

// --- ASTRA-sim's results

struct Reference {
  std::string tag, backend, workload, system, network;
  double seconds = 0;  // 0: it never finished
  double wall = 0;
};

std::vector<Reference> references() {
  const auto json = nlohmann::json::parse(std::ifstream(kCorpus / "reference.json"));
  std::vector<Reference> all;
  for (const auto& row : json["results"]) {
    Reference reference{row.value("tag", row.value("trace", "") + "-" + row.value("topology", "")),
                        row["backend"],
                        row["workload"],
                        row["system"],
                        row["network"],
                        0,
                        row["wall_s"]};
    const auto& time = row["sim_ns"];
    for (const auto& value : time.is_array() ? time : nlohmann::json::array({time}))
      reference.seconds = std::max(reference.seconds, value.get<double>() * kNanosecond);
    all.push_back(std::move(reference));
  }
  return all;
}

const ExecutionTrace& read_workload(const std::string& workload, const TraceNetwork& network) {
  static std::map<std::string, ExecutionTrace> known;
  if (const auto found = known.find(workload); found != known.end()) return found->second;
  if (fs::exists(kCorpus / "et" / fs::path(workload).parent_path()))
    return known[workload] = formats::read_chakra((kCorpus / "et" / workload).string()).value();
  // The large traces are archived; each rank has a single node, which the name describes.
  return known[workload] = alike(network.ranks(), {meeting(0, Collective::all_reduce, 64 << 20)});
}

// With the reference's own link model, Weft is within 5 % of it on every case. In Weft's model, links
// carry one message at a time and switches cut through. The results then differ for two reasons only:
//
//   stores     its congestion-aware switch receives a whole message before it forwards any: Weft is
//              faster
//   no wires   its congestion-unaware network lets any number of messages share a link, as where
//              chunks or direct messages share one: Weft is slower
TEST(ChakraReferenceTest, MatchesAstraSimOnEveryCase) {
  if (!fs::exists(kCorpus)) GTEST_SKIP() << "the Chakra corpus is not here";
  constexpr double kTolerance = 0.05;
  std::map<std::string, int> reasons;
  std::string table = fmt::format("{:36} {:9} {:>11} {:>11} {:>7} {:>11} {:>8}\n", "case", "backend",
                                  "ASTRA-sim us", "same wires", "off", "Weft", "reason");
  for (const Reference& reference : references()) {
    SCOPED_TRACE(reference.tag + " " + reference.backend);
    const TraceNetwork network =
        formats::parse_astra_network(
            read_file((kCorpus / "cfg" / reference.network).string(), 1 << 20).value())
            .value();
    TraceSystem system =
        formats::parse_astra_system(read_file((kCorpus / "cfg" / reference.system).string(), 1 << 20).value())
            .value();
    // Recorded with one active chunk; the file was changed later for the chunks* cases.
    if (reference.tag.starts_with("ar-multidim")) system.active_chunks = 1;
    const ExecutionTrace& trace = read_workload(reference.workload, network);
    const bool aware = reference.backend == "Aware";
    const auto own = run_trace(trace, network, system);
    ASSERT_TRUE(own.ok()) << own.error().message;
    system.wires = aware ? WireModel::store_and_forward : WireModel::uncontended;
    const auto same = run_trace(trace, network, system);
    if (reference.seconds == 0) {
      // ASTRA-sim stopped silently. Weft fails too on this message order, but names the cycle.
      ASSERT_FALSE(same.ok());
      EXPECT_TRUE(same.error().message.starts_with("the ranks wait for each other: rank 4"))
          << same.error().message;
      ++reasons["standstill"];
      continue;
    }
    ASSERT_TRUE(same.ok()) << same.error().message;
    const double off = same->seconds / reference.seconds - 1, own_off = own->seconds / reference.seconds - 1;
    EXPECT_LT(std::abs(off), kTolerance);
    std::string reason = "";
    if (std::abs(own_off) >= kTolerance) {
      const bool has_switch = std::ranges::any_of(
          network.dimensions, [](const TraceDimension& d) { return d.kind == Net::switched; });
      reason = aware ? "stores" : "no wires";
      EXPECT_TRUE(aware ? has_switch && own_off < 0 : own_off > 0) << own_off;
    }
    ++reasons[reason];
    table += fmt::format("{:36} {:9} {:11.1f} {:11.1f} {:+6.2f}% {:11.1f} {:>8}\n", reference.tag,
                         reference.backend, reference.seconds * 1e6, same->seconds * 1e6, 100 * off,
                         own->seconds * 1e6, reason);
  }
  EXPECT_EQ(reasons["standstill"], 1);
  EXPECT_GE(reasons[""], 40);
  if (std::getenv("WEFT_SHOW_TABLES") != nullptr) fmt::print("{}", table);
}

// PyTorch's own trace of a job: CPU and GPU nodes, dense dependencies, collectives without sizes.
TEST(ChakraReferenceTest, ReadsARealTrace) {
  const fs::path packed = kCorpus / "real/feeder_tests_trace.tar.gz";
  if (!fs::exists(packed)) GTEST_SKIP() << "the Chakra corpus is not here";
  const auto tar = formats::inflate_gzip(read_file(packed.string(), 1 << 24).value(), 1 << 24, "real");
  ASSERT_TRUE(tar.ok()) << tar.error().message;
  // A tar file: a header of 512 bytes with the size in octal, then the file.
  const std::size_t size = std::stoul(tar->substr(124, 11), nullptr, 8);
  ExecutionTrace trace;
  const auto parsed = formats::parse_chakra(std::string_view(*tar).substr(512, size), "chakra.0.et", trace);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const std::vector<TraceNode>& nodes = trace.ranks[0].nodes;
  EXPECT_EQ(nodes.size(), 3664u);
  std::size_t edges = 0;
  for (const TraceNode& node : nodes) edges += node.after.size();
  EXPECT_GT(edges, 150'000u);
  const auto run = run_trace(trace, network_of({{Net::ring, 1}}), {});
  EXPECT_TRUE(run.ok() ? run->seconds > 0 : run.error().message.find("wait for") != std::string::npos);
}

}  // namespace
}  // namespace weft::sim
