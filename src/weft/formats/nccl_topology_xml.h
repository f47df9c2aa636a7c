// weft/formats/nccl_topology_xml.h -- a machine as described by NCCL_TOPO_DUMP_FILE of NCCL and
// RCCL.
//
//   <system version="1">
//     <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">          cpus[0]
//       <pci busid="0000:07:00.0" class="0x060400" ...>             pcis[0]        a bridge
//         <pci busid="0000:0a:00.0" class="0x030200" ...>           pcis[1]        parent 0
//           <gpu dev="0" sm="80" rank="0">                          gpus[0]        pci 1
//             <nvlink target="..." count="12" tclass="0x068000"/>   gpus[0].peers
//
// read_nccl_topology() keeps what the file states; links() is the graph that NCCL makes of it, with
// NCCL's bandwidths. Lists are in document order. A file may omit what NCCL detects by itself, even
// gpus.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::formats {

// Limits per list; NCCL itself accepts a few hundred. All pairs of cpus of a host are linked, so
// their limit is lower.
inline constexpr std::size_t kMaxNcclElements = 4096, kMaxNcclCpus = 256;

struct NcclCpu {
  std::int64_t numa = 0;
  std::string host;  // host_hash, in files with several hosts
  std::string arch, vendor;
  std::int64_t family = 0, model = 0;
};

struct NcclPci {
  std::int32_t cpu = 0;
  std::int32_t parent = -1;        // the bridge above; -1: its cpu
  std::string bus;                 // "0000:07:00.0"
  std::string device_class;        // "0x060400"
  std::string speed;               // "16.0 GT/s PCIe"; empty: unknown
  std::int32_t width = 0;          // lanes; 0: unknown
  std::vector<std::string> links;  // <pcilink>: buses of other bridges linked to it
};

// A direct link of a gpu: <nvlink>, <xgmi> or <c2c>.
struct NcclPeer {
  enum class Kind : std::uint8_t { nvlink, xgmi, c2c };
  Kind kind = Kind::nvlink;
  std::string target;        // bus of the gpu or switch; empty for c2c, which leads to the cpu
  std::string target_class;  // "0x068000" is an NVSwitch, "0x068001" the cpu
  std::int32_t count = 1;
  double bandwidth = 0;  // c2c: MB/s per link
};

struct NcclGpu {
  std::int32_t pci = 0;
  std::int32_t device = 0;
  std::int32_t rank = -1;    // -1: unknown
  std::int32_t compute = 0;  // sm; for AMD, the number of compute units
  std::string architecture;  // gcn: "gfx942", "908"; empty: NVIDIA
  bool direct_rdma = false;  // gdr
  std::vector<NcclPeer> peers;
};

struct NcclNic {
  std::int32_t cpu = 0;
  std::int32_t pci = -1;  // -1: attached to the cpu
};

struct NcclNet {
  std::int32_t nic = 0;
  std::int32_t device = 0;
  std::string name;
  double speed = 0;    // Mbit/s
  double latency = 0;  // microseconds; 0: unknown
  std::int32_t port = 0;
};

struct NcclSystem {
  std::int32_t version = 1;  // RCCL writes 2
  std::vector<NcclCpu> cpus;
  std::vector<NcclPci> pcis;
  std::vector<NcclGpu> gpus;
  std::vector<NcclNic> nics;
  std::vector<NcclNet> nets;
};

Result<NcclSystem> read_nccl_topology(std::string_view text);

// A vertex of the graph: an element of the list that its kind names. All NVSwitches of a host are
// one vertex, with the index of the host's first cpu.
struct NcclVertex {
  enum class Kind : std::uint8_t { gpu, pci, nvswitch, cpu, nic, net };
  Kind kind = Kind::gpu;
  std::int32_t index = 0;

  friend auto operator<=>(const NcclVertex&, const NcclVertex&) = default;
};

std::string_view name(NcclVertex::Kind kind);  // "gpu"

// One direction of a link. A pci element that contains a gpu or nic is not a vertex.
struct NcclLink {
  enum class Kind : std::uint8_t { nvlink, xgmi, c2c, pci, system, net };
  NcclVertex from, to;
  Kind kind = Kind::pci;
  double bandwidth = 0;  // GB/s
  double latency = 0;    // seconds
};

std::string_view name(NcclLink::Kind kind);  // "nvlink"

// Every link once per direction, with parallel links added up, sorted by from, to and kind. Links
// to devices missing from the file are omitted, as in NCCL.
std::vector<NcclLink> links(const NcclSystem& system);

// GB/s: of a bus ("16.0 GT/s PCIe", 16 lanes: 24), per NVLink (sm 90: 20.6), per XGMI link
// ("gfx942": 48), and between cpus of a host.
double pci_bandwidth(std::string_view speed, std::int32_t width);
double nvlink_bandwidth(std::int32_t compute);
double xgmi_bandwidth(std::string_view architecture);
double cpu_bandwidth(const NcclCpu& cpu);

}  // namespace weft::formats
