// weft/formats/nccl_topology_xml.h -- the machine as NCCL_TOPO_DUMP_FILE of NCCL and RCCL describes it.
//
//   <system version="1">
//     <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">          cpus[0]
//       <pci busid="0000:07:00.0" class="0x060400" ...>             pcis[0]        a bridge
//         <pci busid="0000:0a:00.0" class="0x030200" ...>           pcis[1]        parent 0
//           <gpu dev="0" sm="80" rank="0">                          gpus[0]        pci 1
//             <nvlink target="..." count="12" tclass="0x068000"/>   gpus[0].peers
//
// read_nccl_topology() keeps what the file says; links() is the graph NCCL makes of it, with NCCL's own
// bandwidths. Lists are in document order. A file may leave to NCCL what it finds out by itself, even gpus.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::formats {

// Of each list; NCCL itself takes some hundreds. Every two cpus of a host are tied, so those are fewer.
inline constexpr std::size_t kMaxNcclElements = 4096, kMaxNcclCpus = 256;

struct NcclCpu {
  std::int64_t numa = 0;
  std::string host;  // host_hash; files of several hosts have several
  std::string arch, vendor;
  std::int64_t family = 0, model = 0;
};

struct NcclPci {
  std::int32_t cpu = 0;
  std::int32_t parent = -1;        // the bridge it hangs from; -1: its cpu
  std::string bus;                 // "0000:07:00.0"
  std::string device_class;        // "0x060400"
  std::string speed;               // "16.0 GT/s PCIe"; empty: not said
  std::int32_t width = 0;          // lanes; 0: not said
  std::vector<std::string> links;  // <pcilink>: the buses of other bridges it is tied to
};

// A direct link of a gpu: <nvlink>, <xgmi> or <c2c>.
struct NcclPeer {
  enum class Kind : std::uint8_t { nvlink, xgmi, c2c };
  Kind kind = Kind::nvlink;
  std::string target;        // bus of the gpu or switch; c2c has none: it leads to the cpu
  std::string target_class;  // "0x068000" is an NVSwitch, "0x068001" the cpu
  std::int32_t count = 1;
  double bandwidth = 0;  // c2c: of one link, in MB/s
};

struct NcclGpu {
  std::int32_t pci = 0;
  std::int32_t device = 0;
  std::int32_t rank = -1;    // -1: not said
  std::int32_t compute = 0;  // sm; of AMD's, the number of compute units
  std::string architecture;  // gcn: "gfx942", "908"; empty: NVIDIA
  bool direct_rdma = false;  // gdr
  std::vector<NcclPeer> peers;
};

struct NcclNic {
  std::int32_t cpu = 0;
  std::int32_t pci = -1;  // -1: hangs from the cpu itself
};

struct NcclNet {
  std::int32_t nic = 0;
  std::int32_t device = 0;
  std::string name;
  double speed = 0;    // Mbit/s
  double latency = 0;  // microseconds; 0: not said
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

// A vertex of the graph: an element of the list its kind names. All NVSwitches of a host are one, the
// index being that of the first cpu of the host.
struct NcclVertex {
  enum class Kind : std::uint8_t { gpu, pci, nvswitch, cpu, nic, net };
  Kind kind = Kind::gpu;
  std::int32_t index = 0;

  friend auto operator<=>(const NcclVertex&, const NcclVertex&) = default;
};

std::string_view name(NcclVertex::Kind kind);  // "gpu"

// One direction of a link. A pci element with a gpu or nic in it is no vertex of its own.
struct NcclLink {
  enum class Kind : std::uint8_t { nvlink, xgmi, c2c, pci, system, net };
  NcclVertex from, to;
  Kind kind = Kind::pci;
  double bandwidth = 0;  // GB/s
  double latency = 0;    // seconds
};

std::string_view name(NcclLink::Kind kind);  // "nvlink"

// Every link once in each direction, those between the same two vertices added up; sorted by from, to and
// kind. What leads to a device that the file does not have is left out, as NCCL does.
std::vector<NcclLink> links(const NcclSystem& system);

// GB/s: of a bus ("16.0 GT/s PCIe", 16 lanes: 24), of one NVLink (sm 90: 20.6), of one XGMI link
// ("gfx942": 48), of what ties the cpu to others of its host.
double pci_bandwidth(std::string_view speed, std::int32_t width);
double nvlink_bandwidth(std::int32_t compute);
double xgmi_bandwidth(std::string_view architecture);
double cpu_bandwidth(const NcclCpu& cpu);

}  // namespace weft::formats
