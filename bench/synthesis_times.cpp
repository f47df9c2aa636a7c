// Quality and time of synthesis, compared with published results.
//
//   build/release/bench_synthesis_times [--quick] [FOLDER]
//
// FOLDER holds the topologies, and anchors.json with the results of ForestColl, TE-CCL and TACOS.
// Tables: the optimum, and the time to find it and its trees; bandwidth of checked programs at 1
// GB; finish times compared with TE-CCL and TACOS; growth to 4,096 devices. --quick leaves out what
// takes longer than a few seconds.
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/collective.h"
#include "weft/base/file.h"
#include "weft/collectives/synthesis/forest.h"
#include "weft/collectives/synthesis/time_search.h"
#include "weft/formats/topology_json.h"

namespace {

using namespace weft;
using collective::Kind;
using Json = nlohmann::json;

#ifdef WEFT_SOURCE_DIR
constexpr const char* kRoot = WEFT_SOURCE_DIR;
#else
constexpr const char* kRoot = ".";
#endif

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

cluster::Topology read(const std::filesystem::path& file) {
  const auto text = read_file(file.string(), 1 << 26);
  if (!text.ok()) return {};
  auto topology = formats::read_topology_json(*text, file.string());
  return topology.ok() ? std::move(*topology) : cluster::Topology{};
}

const std::map<std::string, std::string> kFiles = {
    {"dgx1", "dgx1_25GBps"},           {"ring8", "direct_ring8"},        {"torus4x4", "direct_torus4x4"},
    {"mesh4x4", "direct_mesh4x4"},     {"torus8x8", "direct_torus8x8"},  {"a100x1", "forestcoll_a100x1"},
    {"a100x2", "forestcoll_a100x2"},   {"a100x4", "forestcoll_a100x4"},  {"a100x8", "forestcoll_a100x8"},
    {"mi250x1", "forestcoll_mi250x1"}, {"mi250x2", "forestcoll_mi250x2"}};

// Through the public interface: the program is made, checked and simulated at 1 GB.
void attained(const std::filesystem::path& folder, bool quick) {
  fmt::print("\nprograms at 1 GB, checked and simulated\n{:<12} {:<15} {:>12} {:>12} {:>8} {:>10}\n",
             "topology", "collective", "optimum", "attained", "%", "seconds");
  for (const auto& [name, file] : kFiles) {
    if (quick && (name == "torus8x8" || name == "a100x8" || name == "mi250x2")) continue;
    for (const char* kind : {"all_gather", "all_reduce", "all_to_all"}) {
      command::CollectiveSynthesize request;
      request.collective = kind;
      request.cluster = (folder / (file + ".json")).string();
      request.format = session::Format::json;
      const auto start = std::chrono::steady_clock::now();
      const session::Reply reply = command::run(request);
      const Json answer = Json::parse(reply.output, nullptr, false);
      if (!answer.is_object() || !answer["attained"].is_number()) {
        fmt::print("{:<12} {:<15} {}\n", name, kind, reply.complaint);
        continue;
      }
      const double best = answer["optimum"], has = answer["attained"];
      fmt::print("{:<12} {:<15} {:>12.3f} {:>12.3f} {:>8.1f} {:>10.2f}\n", name, kind, best, has,
                 100 * has / best, since(start));
      std::fflush(stdout);
    }
  }
}

void optima(const std::filesystem::path& folder, const Json& anchors) {
  fmt::print("\nall_gather, optimum and trees\n{:<12} {:>12} {:>12} {:>10} {:>14}\n", "topology",
             "ForestColl", "here GB/s", "seconds", "its seconds");
  for (const Json& row : anchors["forestcoll_optimum_allgather_algbw_GBps"]["results"]) {
    const std::string name = row["topo"];
    const cluster::Topology topology = read(folder / (kFiles.at(name) + ".json"));
    const auto start = std::chrono::steady_clock::now();
    const auto forest = synthesis::grow_forest(topology, Kind::all_gather, 0);
    const double seconds = since(start);
    fmt::print("{:<12} {:>12.3f} {:>12.3f} {:>10.4f} {:>14.2f}\n", name, row["opt_algbw"].get<double>(),
               forest.ok() ? forest->optimum / 1e9 : 0, seconds, row["trees_cpu_s"].get<double>());
  }
}

double bytes_of(const std::string& size) {
  const double number = std::stod(size);
  return number * (size.ends_with("KB") ? 1e3 : size.ends_with("MB") ? 1e6 : 1e9);
}

// TE-CCL's results assume switches that copy, and ignore latencies if an epoch is ten times as
// long. There its time may be below the bound, which includes them.
void finish_times(const std::filesystem::path& folder, const Json& anchors, bool quick) {
  struct Machine {
    const char *file, *anchor;
  };
  for (const Machine& machine : {Machine{"teccl_DGX2_2chassis", "DGX2/2_chassis/AllGather"},
                                 {"teccl_NDv2_4chassis", "NDv2/4_chassis/AllGather"}}) {
    const cluster::Topology topology = read(folder / (std::string(machine.file) + ".json"));
    const auto network = synthesis::step_network(topology);
    const auto forest = synthesis::grow_forest(topology, Kind::all_gather, 0);
    if (!network.ok() || !forest.ok()) continue;
    fmt::print("\nall_gather on {}, finish in us\n{:>8} {:>12} {:>10} {:>12} {:>12} {:>8} {:>8}\n",
               machine.file, "size", "TE-CCL", "its s", "here", "bound", "gap %", "seconds");
    const Json& fast = anchors["teccl_shipped_results"]["results"][std::string(machine.anchor) + "/Fast"];
    const Json& slow = anchors["teccl_shipped_results"]["results"][std::string(machine.anchor) + "/Slow"];
    std::map<double, std::string> sizes;
    for (const auto& [size, row] : fast.items()) sizes[bytes_of(size)] = size;
    for (const auto& [bytes, size] : sizes) {
      if (quick && size != "1KB" && size != "1MB" && size != "64MB") continue;
      const Json& best = slow[size]["finish_us"] < fast[size]["finish_us"] ? slow[size] : fast[size];
      synthesis::StepClock clock;
      const auto start = std::chrono::steady_clock::now();
      clock.end = start + std::chrono::seconds(9);
      synthesis::TimeEffort effort;
      effort.forest = &*forest;
      const auto found = synthesis::search_in_time(*network, {Kind::all_gather, 0, bytes, 0}, effort, clock);
      if (!found.ok()) continue;
      fmt::print("{:>8} {:>12.3f} {:>10.0f} {:>12.3f} {:>12.3f} {:>8.2f} {:>8.2f}\n", size,
                 best["finish_us"].get<double>(), best["solver_s"].get<double>(), found->finish * 1e6,
                 found->bound * 1e6, 100 * found->gap(), since(start));
    }
  }
  fmt::print("\nall_gather of 1 GiB against TACOS, GiB/s\n{:<12} {:>7} {:>10} {:>8} {:>10} {:>8}\n",
             "topology", "chunks", "TACOS", "its s", "here", "seconds");
  for (const Json& row : anchors["tacos_here"]["results"]) {
    const std::string name = row["topo"];
    if (!kFiles.contains(name)) continue;
    // Its links carry 50 GiB/s, those of the files 50 GB/s: bandwidths are compared relative to a
    // link's.
    const auto network = synthesis::step_network(read(folder / (kFiles.at(name) + ".json")));
    if (!network.ok()) continue;
    const auto start = std::chrono::steady_clock::now();
    synthesis::TimeEffort effort;
    effort.most_turns = 12;
    const auto found = synthesis::search_in_time(*network, {Kind::all_gather, 0, 1e9, 0}, effort, {});
    if (!found.ok()) continue;
    fmt::print("{:<12} {:>7} {:>10.1f} {:>8.4f} {:>10.1f} {:>8.3f}\n", name, row["chunks"].get<int>(),
               row["algbw"].get<double>(), row["synth_s"].get<double>(), 1 / found->finish, since(start));
  }
}

// Boxes of eight devices on a switch, connected by rails.
cluster::Topology rails(std::int32_t boxes) {
  cluster::Topology topology;
  for (std::int32_t i = 0; i < 8 * boxes; ++i)
    topology.add_node(cluster::NodeKind::device, fmt::format("gpu {}", i));
  std::vector<std::int32_t> rail;
  for (std::int32_t r = 0; r < 8; ++r)
    rail.push_back(topology.add_node(cluster::NodeKind::switch_, fmt::format("rail {}", r)));
  for (std::int32_t box = 0; box < boxes; ++box) {
    const std::int32_t hub = topology.add_node(cluster::NodeKind::switch_, fmt::format("hub {}", box));
    for (std::int32_t i = 0; i < 8; ++i) {
      topology.add_cable(8 * box + i, hub, 300e9, 1e-6);
      topology.add_cable(8 * box + i, rail[static_cast<std::size_t>(i)], 25e9, 2e-6);
    }
  }
  return topology;
}

void growth(bool quick) {
  fmt::print("\nall_gather on boxes of eight with rails\n{:>8} {:>14} {:>14} {:>10}\n", "devices",
             "optimum GB/s", "planned GB/s", "seconds");
  for (const std::int32_t devices : {64, 256, 1024, 2048, 4096}) {
    if (quick && devices > 1024) continue;
    const cluster::Topology topology = rails(devices / 8);
    const auto start = std::chrono::steady_clock::now();
    const auto forest = synthesis::grow_forest(topology, Kind::all_gather, 0);
    fmt::print("{:>8} {:>14.3f} {:>14.3f} {:>10.2f}\n", devices, forest.ok() ? forest->optimum / 1e9 : 0,
               forest.ok() ? forest->planned / 1e9 : 0, since(start));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::filesystem::path folder = std::filesystem::path(kRoot) / "../shared/corpus/ccl-topologies";
  bool quick = false;
  for (int i = 1; i < argc; ++i)
    if (std::string(argv[i]) == "--quick")
      quick = true;
    else
      folder = argv[i];
  growth(quick);
  const auto text = read_file((folder / "anchors.json").string(), 1 << 26);
  if (!text.ok()) {
    fmt::print("no anchors in {}: their tables are left out\n", folder.string());
    return 0;
  }
  const Json anchors = Json::parse(*text, nullptr, false);
  if (anchors.is_discarded()) return 1;
  optima(folder, anchors);
  attained(folder, quick);
  finish_times(folder, anchors, quick);
}
