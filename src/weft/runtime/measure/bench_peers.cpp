#include "weft/runtime/measure/bench_peers.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/communication/transport/rendezvous.h"

namespace weft::measure {
namespace {

constexpr std::string_view kPeers[] = {"openmpi", "mpich", "gloo"};

std::filesystem::path this_program() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self/exe", failure);
}

bool is_installed(std::string_view program) {
  const char* path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "/usr/bin:/bin" : path;
  while (!folders.empty()) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    const std::filesystem::path place = std::filesystem::path(folders.substr(0, end)) / program;
    if (access(place.c_str(), X_OK) == 0) return true;
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return false;
}

class LineUp {
 public:
  LineUp(const BenchSelection& who, std::int32_t ranks) : who_(who), ranks_(ranks) {}

  BenchContenders make() {
    add_weft();
    for (const std::string& peer : who_.peers) {
      if (peer == "openmpi") add_openmpi();
      if (peer == "mpich") add_mpich();
      if (peer == "gloo") add_gloo();
    }
    return std::move(all_);
  }

 private:
  bool over_tcp() const { return who_.transport == "tcp"; }

  std::size_t add_group(BenchRecipe recipe) {
    all_.groups.push_back(std::move(recipe));
    return all_.groups.size() - 1;
  }

  // The path of the peer's program. Empty, with a reason in left_out, if the peer is not available.
  std::string find(std::string_view peer, std::string_view launcher, std::string_view package) {
    const std::filesystem::path folder =
        who_.programs.empty() ? this_program().parent_path() : std::filesystem::path(who_.programs);
    const std::filesystem::path program = folder / fmt::format("weft-peer-{}", peer);
    if (!launcher.empty() && !is_installed(launcher)) {
      all_.left_out.push_back(fmt::format("{}: {} is not installed (package {})", peer, launcher, package));
      return {};
    }
    if (access(program.c_str(), X_OK) != 0) {
      all_.left_out.push_back(
          fmt::format("{}: {} is not there; install {} and build it with `make bench-peers`", peer,
                      program.string(), package));
      return {};
    }
    return program.string();
  }

  void add_weft() {
    const std::size_t group = add_group({{this_program().string(), "bench-rank", who_.transport},
                                         true,
                                         {{"WEFT_JOB_SECRET", transport::new_secret()}}});
    const bool allocates = !over_tcp();  // TCP gains nothing from shared memory
    if (who_.buffers != BenchBuffers::allocated || !allocates)
      all_.contenders.push_back({"weft", "private", group, false});
    if (who_.buffers != BenchBuffers::private_memory && allocates)
      all_.contenders.push_back({"weft", "allocated", group, true});
  }

  void add_openmpi() {
    const std::string program = find("openmpi", "mpirun.openmpi", "openmpi-bin libopenmpi-dev");
    if (program.empty()) return;
    const auto add = [&](std::string setting, std::vector<std::string> options) {
      std::vector<std::string> command = {"mpirun.openmpi",
                                          "-np",
                                          std::to_string(ranks_),
                                          "--oversubscribe",
                                          "--bind-to",
                                          "none",
                                          "--mca",
                                          "mpi_yield_when_idle",
                                          "1"};
      // Open MPI refuses to run as root without this flag.
      if (getuid() == 0) command.emplace_back("--allow-run-as-root");
      for (std::size_t i = 0; i + 1 < options.size(); i += 2) {
        command.emplace_back("--mca");
        command.push_back(options[i]);
        command.push_back(options[i + 1]);
      }
      command.push_back(program);
      all_.contenders.push_back(
          {"openmpi", std::move(setting), add_group({std::move(command), false, {}}), false});
    };
    if (over_tcp()) {
      add("tcp", {"pml", "ob1", "btl", "tcp,self", "btl_tcp_if_include", "lo", "btl_tcp_sndbuf", "4194304",
                  "btl_tcp_rcvbuf", "4194304"});
      return;
    }
    add("cma", {"pml", "ob1", "btl", "vader,self"});
    add("no cma", {"pml", "ob1", "btl", "vader,self", "btl_vader_single_copy_mechanism", "none"});
    add("ucx", {"pml", "ucx", "opal_common_ucx_tls", "any", "opal_common_ucx_devices", "any"});
  }

  void add_mpich() {
    const std::string program = find("mpich", "mpirun.mpich", "mpich libmpich-dev");
    if (program.empty()) return;
    BenchRecipe recipe{{"mpirun.mpich", "-n", std::to_string(ranks_), program}, false, {}};
    if (over_tcp()) recipe.environment = {{"MPIR_CVAR_NOLOCAL", "1"}, {"UCX_TLS", "tcp,self"}};
    all_.contenders.push_back({"mpich", over_tcp() ? "tcp" : "shm", add_group(std::move(recipe)), false});
  }

  void add_gloo() {
    const std::string program = find("gloo", "", "libgloo-dev");
    if (program.empty()) return;
    all_.contenders.push_back({"gloo", "", add_group({{program}, true, {}}), false});
  }

  const BenchSelection& who_;
  std::int32_t ranks_;
  BenchContenders all_;
};

}  // namespace

Status check_peers(const std::vector<std::string>& peers) {
  for (const std::string& peer : peers) {
    if (std::ranges::find(kPeers, peer) != std::ranges::end(kPeers)) continue;
    const std::string hint = did_you_mean(peer, kPeers);
    return user_error(fmt::format("unknown peer: {}", peer), hint.empty() ? "openmpi, mpich or gloo" : hint);
  }
  return {};
}

BenchContenders select_contenders(const BenchSelection& who, std::int32_t ranks) {
  return LineUp(who, ranks).make();
}

}  // namespace weft::measure
