#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "weft/base/letters.h"
#include "weft/formats/nccl_topology_xml.h"

namespace weft::formats {
namespace {

using Vertex = NcclVertex;

constexpr double kLocal = 5000;  // GB/s: NCCL's value for no limit
constexpr std::string_view kSwitchClass = "0x068000", kCpuClass = "0x068001";

// Seconds per hop, from NCCL's tuning table for a ring with LL (the smallest values): NVLink 0.6
// us, PCI 1 us, network 2.7 us.
constexpr double kDirectLatency = 0.6e-6, kPciLatency = 1.0e-6, kNetLatency = 2.7e-6;

class Graph {
 public:
  explicit Graph(const NcclSystem& system) : system_(system) {
    for (const NcclGpu& gpu : system_.gpus) has_device_.insert(gpu.pci);
    for (const NcclNic& nic : system_.nics) has_device_.insert(nic.pci);
    for (std::size_t i = 0; i < system_.cpus.size(); ++i)
      first_cpu_.try_emplace(system_.cpus[i].host, static_cast<std::int32_t>(i));
    for (std::size_t i = 0; i < system_.pcis.size(); ++i)
      if (is_vertex(static_cast<std::int32_t>(i)))
        by_bus_.try_emplace(key(system_.pcis[i].cpu, system_.pcis[i].bus),
                            Vertex{Vertex::Kind::pci, index(i)});
    for (std::size_t i = 0; i < system_.gpus.size(); ++i) {
      const NcclPci& pci = system_.pcis[system_.gpus[i].pci];
      by_bus_.insert_or_assign(key(pci.cpu, pci.bus), Vertex{Vertex::Kind::gpu, index(i)});
    }
  }

  std::vector<NcclLink> links() {
    add_cpus();
    add_pcis();
    for (std::size_t i = 0; i < system_.gpus.size(); ++i) add_gpu(index(i));
    for (std::size_t i = 0; i < system_.nics.size(); ++i) add_nic(index(i));
    for (std::size_t i = 0; i < system_.nets.size(); ++i) add_net(index(i));
    std::vector<NcclLink> out;
    for (const auto& [ends, link] : links_) out.push_back(link);
    return out;
  }

 private:
  static std::int32_t index(std::size_t i) { return static_cast<std::int32_t>(i); }

  // Buses are identified per host, and case-insensitively.
  std::pair<std::string_view, std::string> key(std::int32_t cpu, std::string_view bus) const {
    return {system_.cpus[cpu].host, lower(bus)};
  }

  // NVSwitches form one vertex, which is made when an nvlink leads to it.
  bool is_vertex(std::int32_t pci) const {
    return !has_device_.contains(pci) && system_.pcis[pci].device_class != kSwitchClass;
  }

  // The nearest vertex at or above `pci`; the cpu if there is none.
  Vertex above(std::int32_t cpu, std::int32_t pci) const {
    while (pci >= 0 && !is_vertex(pci)) pci = system_.pcis[pci].parent;
    return pci >= 0 ? Vertex{Vertex::Kind::pci, pci} : Vertex{Vertex::Kind::cpu, cpu};
  }

  void add(Vertex from, Vertex to, NcclLink::Kind kind, double bandwidth, double latency) {
    if (from == to) return;
    NcclLink& link = links_[{from, to, kind}];
    link = {from, to, kind, link.bandwidth + bandwidth, latency};
  }
  void add_both(Vertex a, Vertex b, NcclLink::Kind kind, double bandwidth, double latency) {
    add(a, b, kind, bandwidth, latency);
    add(b, a, kind, bandwidth, latency);
  }

  void add_cpus() {
    for (std::size_t a = 0; a < system_.cpus.size(); ++a)
      for (std::size_t b = 0; b < system_.cpus.size(); ++b)
        if (a != b && system_.cpus[a].host == system_.cpus[b].host)
          add({Vertex::Kind::cpu, index(a)}, {Vertex::Kind::cpu, index(b)}, NcclLink::Kind::system,
              cpu_bandwidth(system_.cpus[a]), kPciLatency);
  }

  void add_pcis() {
    for (std::size_t i = 0; i < system_.pcis.size(); ++i) {
      const NcclPci& pci = system_.pcis[i];
      if (!is_vertex(index(i))) continue;
      const Vertex self{Vertex::Kind::pci, index(i)};
      add_both(self, above(pci.cpu, pci.parent), NcclLink::Kind::pci, pci_bandwidth(pci.speed, pci.width),
               kPciLatency);
      for (const std::string& target : pci.links)
        if (const auto other = by_bus_.find(key(pci.cpu, target)); other != by_bus_.end())
          add(self, other->second, NcclLink::Kind::pci, kLocal, kPciLatency);
    }
  }

  void add_gpu(std::int32_t i) {
    const NcclGpu& gpu = system_.gpus[i];
    const NcclPci& pci = system_.pcis[gpu.pci];
    const Vertex self{Vertex::Kind::gpu, i}, cpu{Vertex::Kind::cpu, pci.cpu};
    add_both(self, above(pci.cpu, pci.parent), NcclLink::Kind::pci, pci_bandwidth(pci.speed, pci.width),
             kPciLatency);
    for (const NcclPeer& peer : gpu.peers) {
      if (peer.kind == NcclPeer::Kind::c2c) {
        constexpr double kMegabytes = 1000;  // per gigabyte
        add_both(self, cpu, NcclLink::Kind::c2c, peer.bandwidth * peer.count / kMegabytes, kDirectLatency);
        continue;
      }
      const bool xgmi = peer.kind == NcclPeer::Kind::xgmi;
      const NcclLink::Kind kind = xgmi ? NcclLink::Kind::xgmi : NcclLink::Kind::nvlink;
      const double bandwidth =
          peer.count * (xgmi ? xgmi_bandwidth(gpu.architecture) : nvlink_bandwidth(gpu.compute));
      if (peer.target_class == kCpuClass) {
        add_both(self, cpu, kind, bandwidth, kDirectLatency);
      } else if (peer.target_class == kSwitchClass) {
        const Vertex fabric{Vertex::Kind::nvswitch, first_cpu_.at(system_.cpus[pci.cpu].host)};
        add_both(self, fabric, kind, bandwidth, kDirectLatency);
      } else if (const auto other = by_bus_.find(key(pci.cpu, peer.target));
                 other != by_bus_.end() && other->second.kind == Vertex::Kind::gpu) {
        add(self, other->second, kind, bandwidth, kDirectLatency);  // the other gpu lists its own direction
      }
    }
  }

  void add_nic(std::int32_t i) {
    const NcclNic& nic = system_.nics[i];
    const Vertex self{Vertex::Kind::nic, i};
    if (nic.pci < 0)
      return add_both(self, {Vertex::Kind::cpu, nic.cpu}, NcclLink::Kind::pci, kLocal, kPciLatency);
    const NcclPci& pci = system_.pcis[nic.pci];
    add_both(self, above(nic.cpu, pci.parent), NcclLink::Kind::pci, pci_bandwidth(pci.speed, pci.width),
             kPciLatency);
  }

  void add_net(std::int32_t i) {
    const NcclNet& net = system_.nets[i];
    constexpr double kUnknownSpeed = 10000, kMegabits = 8000;  // Mbit per gigabyte
    const double speed = net.speed > 0 ? net.speed : kUnknownSpeed;
    add_both({Vertex::Kind::nic, net.nic}, {Vertex::Kind::net, i}, NcclLink::Kind::net, speed / kMegabits,
             net.latency > 0 ? net.latency * 1e-6 : kNetLatency);
  }

  const NcclSystem& system_;
  std::set<std::int32_t> has_device_;
  std::map<std::string_view, std::int32_t> first_cpu_;  // per host
  std::map<std::pair<std::string_view, std::string>, Vertex> by_bus_;
  std::map<std::tuple<Vertex, Vertex, NcclLink::Kind>, NcclLink> links_;
};

}  // namespace

std::string_view name(NcclVertex::Kind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"gpu", "pci", "nvswitch", "cpu", "nic", "net"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name(NcclLink::Kind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"nvlink", "xgmi", "c2c", "pci", "system", "net"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<NcclLink> links(const NcclSystem& system) { return Graph(system).links(); }

double pci_bandwidth(std::string_view speed, std::int32_t width) {
  // 100 Mbit/s per lane, net of line coding. Linux prints "16 GT/s" before 5.7 and "16.0 GT/s PCIe"
  // since.
  constexpr std::array<std::pair<std::string_view, double>, 6> kRates = {
      {{"2.5", 15}, {"5", 30}, {"8", 60}, {"16", 120}, {"32", 240}, {"64", 480}}};
  constexpr double kUnknownRate = 60;
  constexpr std::int32_t kUnknownWidth = 16;
  std::string_view transfers = speed.substr(0, speed.find(' '));
  if (transfers.ends_with(".0")) transfers.remove_suffix(2);
  const auto rate = std::ranges::find(kRates, transfers, [](const auto& known) { return known.first; });
  return (rate == kRates.end() ? kUnknownRate : rate->second) * (width > 0 ? width : kUnknownWidth) / 80;
}

double nvlink_bandwidth(std::int32_t compute) {
  if (compute >= 100) return 40.1;
  if (compute >= 90) return 20.6;
  if (compute == 86) return 12;
  return compute >= 60 && compute < 70 ? 18 : 20;
}

double xgmi_bandwidth(std::string_view architecture) {
  if (architecture.starts_with("gfx90a") || architecture == "910") return 36;  // MI200; older files have 910
  if (architecture.starts_with("gfx94") || architecture.starts_with("94")) return 48;
  return 24;
}

double cpu_bandwidth(const NcclCpu& cpu) {
  if (cpu.arch == "ppc64") return 32;
  if (cpu.arch == "arm64") return 6;
  if (cpu.arch != "x86_64") return kLocal;
  if (cpu.vendor == "AuthenticAMD") return 16;
  if (cpu.vendor == "CentaurHauls" || cpu.vendor == "  Shanghai  ")
    return cpu.family == 7 && cpu.model == 0x5b ? 9 : 6;
  if (cpu.vendor != "GenuineIntel") return kLocal;
  if (cpu.family != 6) return 6;
  return cpu.model >= 0xcf ? 40 : cpu.model >= 0x8f ? 22 : cpu.model >= 0x55 ? 10 : 6;
}

}  // namespace weft::formats
