#include "weft/formats/reshard_cases.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "weft/formats/json_node.h"

namespace weft::formats {
namespace {

constexpr auto kMostCaseSize = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kMostElementBytes = 1 << 10;
constexpr std::size_t kMostCaseDims = 16;

Result<ReshardSide> read_side(const JsonNode& node, const char* mesh_key, const char* spec_key,
                              const std::vector<std::int64_t>& sizes) {
  WEFT_TRY(mesh, node.wholes(mesh_key, 1, static_cast<std::int32_t>(reshard::kMostDevices)));
  WEFT_TRY(mesh_node, node.at(mesh_key));
  if (mesh.size() != 2)
    return mesh_node.error(
        fmt::format("expected two numbers, hosts and the devices of each, found {}", mesh.size()));
  if (std::int64_t{mesh[0]} * mesh[1] > reshard::kMostDevices)
    return mesh_node.error(fmt::format("the mesh is too large: expected at most {} devices, found {}",
                                       reshard::kMostDevices, std::int64_t{mesh[0]} * mesh[1]));
  ReshardSide side{mesh[0], mesh[1], {}};
  WEFT_TRY(spec, node.at(spec_key));
  WEFT_TRY(dims, node.list(spec_key));
  if (dims.size() != sizes.size())
    return spec.error(fmt::format("expected one list of mesh axes per dim of the shape: {} lists, {} dims",
                                  dims.size(), sizes.size()));
  std::vector<bool> used(mesh.size());
  for (std::size_t dim = 0; dim < dims.size(); ++dim) {
    std::vector<std::int32_t>& axes = side.slicing.emplace_back();
    WEFT_TRY(items, dims[dim].items());
    std::int64_t parts = 1;
    for (const JsonNode& item : items) {
      auto axis = item.whole(0, 1);
      if (!axis.ok())
        return item.error("no such mesh axis: expected 0, the hosts, or 1, the devices of each");
      if (used[*axis])
        return item.error(fmt::format("a mesh axis may slice only one dim, once: axis {}", *axis));
      used[*axis] = true;
      parts *= mesh[*axis];
      axes.push_back(*axis);
    }
    if (sizes[dim] % parts != 0)
      return dims[dim].error(
          fmt::format("the mesh does not divide the dim: {} parts, {} elements", parts, sizes[dim]));
  }
  return side;
}

Result<ReshardCase> read_case(const JsonNode& node) {
  ReshardCase one;
  WEFT_TRY(name, node.text("name"));
  one.name = name;
  WEFT_TRY(sizes, node.wholes("shape", 1, kMostCaseSize));
  if (sizes.size() > kMostCaseDims)
    return node.error(fmt::format("expected at most {} dims, found {}", kMostCaseDims, sizes.size()));
  one.sizes.assign(sizes.begin(), sizes.end());
  WEFT_TRY(bytes, node.whole("dtype_bytes", 1, kMostElementBytes));
  one.element_bytes = bytes;
  WEFT_TRY(source, read_side(node, "src_mesh", "src_spec", one.sizes));
  one.source = std::move(source);
  WEFT_TRY(destination, read_side(node, "dst_mesh", "dst_spec", one.sizes));
  one.destination = std::move(destination);
  return one;
}

Result<std::vector<ReshardCase>> read_cases(std::string_view text) {
  WEFT_TRY(root, parse_json(text));
  // Wrapping the list in an object gives its items a path: cases[3].shape.
  const Json named = root.is_array() ? Json{{"cases", std::move(root)}} : std::move(root);
  const JsonNode top(named);
  WEFT_TRY(nodes, top.list("cases"));
  std::vector<ReshardCase> cases;
  for (const JsonNode& node : nodes) {
    WEFT_TRY(one, read_case(node));
    cases.push_back(std::move(one));
  }
  return cases;
}

}  // namespace

Result<std::vector<ReshardCase>> read_reshard_cases(std::string_view text, std::string_view path) {
  auto cases = read_cases(text);
  if (cases.ok()) return cases;
  Error error = std::move(cases).error();
  error.message = fmt::format("{}: {}", path, error.message);
  return error;
}

Result<reshard::Reshard> reshard_of(const ReshardCase& one) {
  reshard::Reshard made;
  made.sizes = one.sizes;
  made.element_bytes = one.element_bytes;
  std::int32_t host = 0;
  const auto add = [&](const ReshardSide& side, std::vector<reshard::Holding>& holdings) -> Status {
    const std::int32_t mesh[] = {side.hosts, side.devices};
    WEFT_TRY(boxes, reshard::boxes_of(one.sizes, mesh, side.slicing));
    holdings = reshard::holdings_of(std::move(boxes), static_cast<std::int32_t>(made.hosts.size()));
    for (std::int32_t rank = 0; rank < side.ranks(); ++rank) made.hosts.push_back(host + rank / side.devices);
    host += side.hosts;
    return {};
  };
  WEFT_TRY_STATUS(add(one.source, made.sources));
  WEFT_TRY_STATUS(add(one.destination, made.destinations));
  return made;
}

}  // namespace weft::formats
