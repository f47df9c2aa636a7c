// weft/app/session/cluster_files.h -- what files besides logs say of a cluster that is created FROM them.
//
//   topo.xml       NCCL_TOPO_DUMP_FILE's: devices of a node, their NVLinks, its network cards
//   topo.txt       nvidia-smi topo -m's: devices of a node, their NVLinks
//   hosts          a hostfile or Slurm's list of nodes: how many nodes there are
//
// Their kind is told by what is in them; what is none of these is taken for a log. Rates are those that NCCL counts
// with, not measured ones.
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
  std::string device;               // as CREATE DEVICE names it; empty: the file does not say
  std::string device_why;           // "sm 90"
  double inside = 0;                // bytes per second of a device to the others of its node; 0: not known
  std::string inside_why;           // "18 NVLinks of 20.6 GB/s"
  double cards = 0;                 // bytes per second of all network cards together; 0: not known
  std::string cards_why;            // "8 cards of 50 GB/s"
  double card_latency_seconds = 0;  // 0: not known
  std::optional<formats::SmiTopology> links;

  // Fills in how fast links are that only the device tells: `device` of the catalog.
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
