// weft/app/session/cluster_files.h -- files other than logs in CREATE CLUSTER .. FROM.
//
//   topo.xml       from NCCL_TOPO_DUMP_FILE: a node's devices, NVLinks and network cards
//   topo.txt       from nvidia-smi topo -m: a node's devices and NVLinks
//   hosts          a hostfile or Slurm node list: the number of nodes
//
// The kind is detected from the contents; any other file is treated as a log. Rates are the nominal
// ones that NCCL uses, not measurements.
//
// Included by app/session and app/command only.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/smi_topology.h"
#include "weft/language/syntax.h"

namespace weft::session {

struct DescribedNode {
  std::string path;
  std::int64_t devices = 0;
  std::string device;               // as CREATE DEVICE names it; empty: not in the file
  std::string device_why;           // "sm 90"
  double inside = 0;                // bytes per second per device within a node; 0: unknown
  std::string inside_why;           // "18 NVLinks of 20.6 GB/s"
  double cards = 0;                 // bytes per second of all network cards together; 0: unknown
  std::string cards_why;            // "8 cards of 50 GB/s"
  double card_latency_seconds = 0;  // 0: unknown
  std::optional<formats::SmiTopology> links;

  // Fills in link rates that depend on the device: the catalog's `name_of_device`.
  void settle(std::string_view name_of_device);
};

struct DescribedHosts {
  std::string path;
  std::int64_t nodes = 0, slots = 0;
};

struct ClusterFiles {
  std::vector<language::syntax::Text> logs;
  std::optional<DescribedNode> node;
  std::optional<DescribedHosts> hosts;
};

Result<ClusterFiles> read_cluster_files(std::span<const language::syntax::Text> files);

}  // namespace weft::session
