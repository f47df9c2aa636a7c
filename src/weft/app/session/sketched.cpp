#include "weft/app/session/sketched.h"

#include <utility>

#include "weft/app/session/find_cluster.h"
#include "weft/base/file.h"
#include "weft/formats/taccl_sketch.h"
#include "weft/formats/topology_json.h"

namespace weft::session {
namespace {

constexpr std::int64_t kMostSketchBytes = std::int64_t{16} << 20;

}  // namespace

Result<synthesis::Sketch> read_sketch(const std::string& path) {
  WEFT_TRY(text, read_file(path, kMostSketchBytes));
  return formats::read_taccl_sketch(text, path);
}

Result<cluster::Topology> find_sketched(const std::string& reference, const std::string& sketch,
                                        std::int32_t& chunks) {
  if (sketch.empty()) {
    WEFT_TRY(found, find_collective_cluster(reference));
    return std::move(found.topology);
  }
  WEFT_TRY(drawn, read_sketch(sketch));
  chunks = drawn.chunks;
  if (reference.ends_with(".json")) {
    // A profile describes one node and can be replicated; other files describe all nodes and reject
    // `nodes`.
    WEFT_TRY(text, read_file(reference, kMostSketchBytes));
    formats::TopologyOptions options;
    options.nodes = drawn.nodes;
    if (const auto many = formats::read_topology_json(text, reference, options); many.ok())
      return synthesis::apply(drawn, *many);
  }
  WEFT_TRY(found, find_collective_cluster(reference));
  return synthesis::apply(drawn, found.topology);
}

}  // namespace weft::session
