// weft/formats/nccl_graph_xml.h -- rings and trees for stock NCCL, as NCCL_GRAPH_FILE.
//
//   rings {{0, 1, 3, 2}}  ->   <graph id="0" pattern="4" ... nchannels="1">
//                                <channel> <gpu dev="0x0"/> <gpu dev="0x1"/> <gpu dev="0x3"/> ...
//
// A channel is the order in which data visits the gpus of one host. The last gpu leads to the first
// of the next host, or of the same host. If data leaves by the network, the channel begins and ends
// with a <net>.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::formats {

struct NcclChannel {
  std::vector<std::int32_t> devices;       // every gpu of the host once
  std::int32_t net_in = -1, net_out = -1;  // network devices; -1: stays on the host

  friend bool operator==(const NcclChannel&, const NcclChannel&) = default;
};

struct NcclGraph {
  enum class Pattern : std::uint8_t { ring, tree };
  Pattern pattern = Pattern::ring;
  double speed_inside = 0, speed_between = 0;  // GB/s per channel
  std::string type_inside = "NVL";             // slowest link: LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS
  std::string type_between = "PIX";            // path to the network
  std::vector<NcclChannel> channels;

  friend bool operator==(const NcclGraph&, const NcclGraph&) = default;
};

// Fails if there are no channels or too many, or if they do not all visit the same gpus once.
Result<std::string> write_nccl_graphs(const std::vector<NcclGraph>& graphs);

// Reads such a file and checks it as the writer does.
Result<std::vector<NcclGraph>> read_nccl_graphs(std::string_view text);

}  // namespace weft::formats
