#include "weft/language/define_cluster.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "weft/base/embedded.h"
#include "weft/base/file.h"
#include "weft/base/nearest.h"
#include "weft/plan/cluster/rates.h"

namespace weft {
std::span<const EmbeddedFile> embedded_rates();
}  // namespace weft

namespace weft::language {
namespace {

struct DeviceSetting {
  std::string_view name;
  Dimension dimension;
  double& (*field)(cluster::Device&);
};

template <cluster::Precision precision>
double& rate(cluster::Device& device) {
  return device.flops_per_second[static_cast<std::size_t>(precision)];
}

template <cluster::KernelKind kind>
double& kernel_rate(cluster::Device& device) {
  return device.kernels[static_cast<std::size_t>(kind)];
}

using enum cluster::Precision;
using enum cluster::KernelKind;
constexpr DeviceSetting kSettings[] = {
    {"f64", Dimension::flops_per_second, rate<f64>},
    {"f32", Dimension::flops_per_second, rate<f32>},
    {"tf32", Dimension::flops_per_second, rate<tf32>},
    {"f16", Dimension::flops_per_second, rate<f16>},
    {"bf16", Dimension::flops_per_second, rate<bf16>},
    {"f8", Dimension::flops_per_second, rate<f8>},
    {"i8", Dimension::flops_per_second, rate<i8>},
    {"memory", Dimension::bytes, [](cluster::Device& device) -> double& { return device.memory_bytes; }},
    {"bandwidth", Dimension::bytes_per_second,
     [](cluster::Device& device) -> double& { return device.memory_bytes_per_second; }},
    {"launch", Dimension::seconds, [](cluster::Device& device) -> double& { return device.launch_seconds; }},
    {"reach", Dimension::count, [](cluster::Device& device) -> double& { return device.reach; }},
    {"step_error", Dimension::count, [](cluster::Device& device) -> double& { return device.step_error; }},
    {"attention", Dimension::flops_per_second, kernel_rate<attention>},
    {"attention_gradient", Dimension::flops_per_second, kernel_rate<attention_gradient>},
    {"convolution", Dimension::flops_per_second, kernel_rate<convolution>},
    {"convolution_gradient", Dimension::flops_per_second, kernel_rate<convolution_gradient>},
};

Result<double> quantity(const syntax::Value& value, Dimension wanted, std::string_view what) {
  const bool fits = (value.kind == syntax::ValueKind::quantity && value.quantity.dimension == wanted) ||
                    (value.kind == syntax::ValueKind::number && wanted == Dimension::count);
  if (!fits) {
    const bool has_dimension =
        value.kind == syntax::ValueKind::quantity || value.kind == syntax::ValueKind::number;
    const std::string found =
        has_dimension ? fmt::format(", found {}", name(value.quantity.dimension)) : std::string();
    return user_error(fmt::format("{} must be {}{}", what, name(wanted), found),
                      fmt::format("for example: {}", example(wanted)), value.span);
  }
  if (value.quantity.value < 0 || (value.quantity.value == 0 && wanted != Dimension::seconds))
    return user_error(fmt::format("{} must be positive, found {}", what, value.number.value),
                      fmt::format("for example: {}", example(wanted)), value.span);
  return value.quantity.value;
}

// The rates that ship under this name: clusters/rates/NAME.rates.
Status take_rates(cluster::Device& device, const syntax::Value& value) {
  std::vector<std::string_view> names;
  for (const EmbeddedFile& file : embedded_rates()) {
    std::string_view shipped = file.path.substr(file.path.rfind('/') + 1);
    shipped.remove_suffix(std::string_view(".rates").size());
    names.push_back(shipped);
    if (shipped != value.text) continue;
    // Each file is read once per process, since every start of a session defines all devices.
    static std::mutex mutex;
    static std::map<std::string_view, std::shared_ptr<const cluster::Rates>> known;
    const std::lock_guard lock(mutex);
    std::shared_ptr<const cluster::Rates>& rates = known[shipped];
    if (rates == nullptr) {
      WEFT_TRY(read, cluster::read_rates(file.text, file.path));
      rates = std::make_shared<const cluster::Rates>(std::move(read));
    }
    device.rates = rates;
    device.rates_digest = Hasher().text(file.text).digest();
    return {};
  }
  if (value.kind == syntax::ValueKind::text && value.text.find_first_of("./") != std::string_view::npos) {
    constexpr std::int64_t kMostBytes = 1 << 20;
    const std::string path(value.text);
    auto text = read_file(path, kMostBytes);
    if (!text.ok()) return user_error(text.error().message, text.error().hint, value.span);
    auto read = cluster::read_rates(*text, path);
    if (!read.ok()) return user_error(read.error().message, read.error().hint, value.span);
    device.rates = std::make_shared<const cluster::Rates>(*std::move(read));
    device.rates_digest = Hasher().text(*text).digest();
    return {};
  }
  std::string hint = did_you_mean(value.text, names);
  return user_error(fmt::format("unknown rates: {}", value.text.empty() ? "a number" : value.text),
                    hint.empty() ? fmt::format("rates are a file, or those of {}", fmt::join(names, ", "))
                                 : std::move(hint),
                    value.span);
}

Status wire_shape(const syntax::Link& link, cluster::Axis& axis) {
  using cluster::Shape;
  const auto shape = cluster::find_shape(link.shape.text);
  if (!shape) {
    std::vector<std::string_view> names;
    for (std::size_t s = 1; s < cluster::kShapes; ++s) names.push_back(cluster::name(static_cast<Shape>(s)));
    return unknown("shape", link.shape, names);
  }
  const bool sided = *shape == Shape::mesh || *shape == Shape::torus;
  if (!sided && !link.sides.empty())
    return user_error(fmt::format("a {} has no sides", link.shape.text),
                      fmt::format("write SHAPE {}", link.shape.text), link.sides[0].span);
  axis.link.shape = *shape;
  std::string sides;
  for (const syntax::Number& side : link.sides) {
    axis.link.sides.push_back(side.whole);
    sides += fmt::format("{}{}", sides.empty() ? "" : ", ", side.whole);
  }
  const std::int64_t wanted = cluster::devices_of(axis.link, axis.size);
  if (wanted == axis.size) return {};
  if (!sided)
    return user_error(
        fmt::format("a {} has {} devices, found {} per node", link.shape.text, wanted, axis.size),
        fmt::format("write OF {} DEVICES", wanted), link.shape.span);
  auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(axis.size)));
  while (axis.size % side != 0) --side;
  if (link.sides.empty())
    return user_error(fmt::format("a {} has sides", link.shape.text),
                      fmt::format("for example: SHAPE {}({}, {})", link.shape.text, side, axis.size / side),
                      link.shape.span);
  return user_error(fmt::format("a {}({}) does not match the number of devices per node: {}", link.shape.text,
                                sides, axis.size),
                    fmt::format("the product of the sides must be {}", axis.size), link.shape.span);
}

// SCALING: what collectives reach of the link, by the number of nodes.
Status scale(const syntax::Link& link, cluster::Axis& axis) {
  if (link.scaling.empty()) return {};
  if (link.kind == syntax::LinkKind::within)
    return user_error("a link WITHIN node does not scale with the number of nodes",
                      "SCALING follows a link ACROSS node", link.scaling.front().nodes.span);
  for (const syntax::LinkShare& at : link.scaling) {
    if (!(at.share.value > 0 && at.share.value <= 1))
      return user_error(fmt::format("a share must be above 0 and at most 1, found {}", at.share.value),
                        "SCALING (4 NODES 0.8) if collectives among 4 nodes reach 80 % of the rate",
                        at.share.span);
    if (!axis.link.scaling.empty() && axis.link.scaling.back().nodes >= at.nodes.whole)
      return user_error(fmt::format("numbers of nodes must ascend, found {} after {}", at.nodes.whole,
                                    axis.link.scaling.back().nodes),
                        "SCALING (4 NODES 0.8, 64 NODES 0.5)", at.nodes.span);
    axis.link.scaling.push_back({at.nodes.whole, at.share.value});
  }
  return {};
}

// SHAPE and OVERSUBSCRIBED: the topology between the devices of a node, or between nodes.
Status wire(const syntax::Link& link, cluster::Axis& axis) {
  const bool inner = link.kind == syntax::LinkKind::within;
  if (link.shape.given()) {
    if (!inner)
      return user_error("a link ACROSS node has no shape",
                        "nodes are connected by a fat tree: OVERSUBSCRIBED 2 halves the bandwidth at its top",
                        link.shape.span);
    WEFT_TRY_STATUS(wire_shape(link, axis));
  }
  if (!link.oversubscribed) return {};
  if (inner)
    return user_error("a link WITHIN node cannot be oversubscribed", "state its topology: SHAPE ring",
                      link.oversubscribed->span);
  const double times = link.oversubscribed->value;
  constexpr int kMost = 1'000'000;
  if (!(times >= 1 && times <= kMost))
    return user_error(fmt::format("oversubscription must be from 1 to {}, found {}", kMost, times),
                      "OVERSUBSCRIBED 2 means half the bandwidth of the nodes' links",
                      link.oversubscribed->span);
  axis.link.oversubscribed = times;
  return {};
}

// Counts all nodes of a cluster, and collects its device kinds if there are several. Consecutive
// nodes of one kind are merged.
Result<std::int64_t> count_nodes(const Catalog& catalog, const syntax::CreateCluster& statement,
                                 cluster::Cluster& made) {
  constexpr std::int64_t kMost = 1 << 24;  // ranks are 32-bit, with room to count pairs of them
  std::vector<cluster::DeviceKind> kinds;
  std::int64_t nodes = 0;
  const auto add = [&](const syntax::NodesOf& some) -> Status {
    const auto device = catalog.devices.find(some.device.text);
    if (device == catalog.devices.end()) return unknown("device", some.device, names_of(catalog.devices));
    if (some.devices.whole != statement.devices.whole)
      return user_error(
          fmt::format("all nodes of a cluster must have the same number of devices, found {} and {}",
                      statement.devices.whole, some.devices.whole),
          fmt::format("write OF {} DEVICES {}", statement.devices.whole, some.device.text),
          some.devices.span);
    if (some.nodes.whole > kMost || some.devices.whole > kMost ||
        (nodes + some.nodes.whole) * some.devices.whole > kMost)
      return user_error(fmt::format("a cluster has at most {} devices", kMost),
                        "use fewer nodes, or fewer devices per node", some.nodes.span);
    nodes += some.nodes.whole;
    if (!kinds.empty() && kinds.back().device.name == device->second.name)
      kinds.back().nodes += some.nodes.whole;
    else
      kinds.push_back({some.nodes.whole, device->second});
    return {};
  };
  WEFT_TRY_STATUS(add({statement.nodes, statement.devices, statement.device}));
  for (const syntax::NodesOf& more : statement.more) WEFT_TRY_STATUS(add(more));
  if (kinds.size() == 1) return nodes;
  std::vector<cluster::Device> devices;
  for (const cluster::DeviceKind& kind : kinds) devices.push_back(kind.device);
  made.device = cluster::weakest_of(devices);
  made.kinds = std::move(kinds);
  return nodes;
}

}  // namespace

Result<cluster::Device> make_device(const syntax::CreateDevice& statement) {
  cluster::Device device;
  device.name = std::string(statement.name.text);
  std::vector<std::string_view> names, given;
  for (const DeviceSetting& known : kSettings) names.push_back(known.name);
  for (const syntax::Setting& setting : statement.settings) {
    if (setting.name.text == "rates" && device.rates == nullptr) {
      WEFT_TRY_STATUS(take_rates(device, setting.value));
      continue;
    }
    const DeviceSetting* found = nullptr;
    for (const DeviceSetting& known : kSettings)
      if (known.name == setting.name.text) found = &known;
    if (found == nullptr) {
      std::string hint = did_you_mean(setting.name.text, names);
      return user_error(fmt::format("a device has no {}", setting.name.text),
                        hint.empty() ? fmt::format("it has {}", fmt::join(names, ", ")) : std::move(hint),
                        setting.name.span);
    }
    for (const std::string_view other : given)
      if (other == setting.name.text)
        return user_error(fmt::format("{} is given twice", setting.name.text), "remove one of them",
                          setting.name.span);
    given.push_back(setting.name.text);
    WEFT_TRY(value, quantity(setting.value, found->dimension, found->name));
    found->field(device) = value;
    if (device.reach > 1)
      return user_error(
          fmt::format("reach is the fraction of its peak rates that a device achieves, at most 1, found {}",
                      setting.value.number.value),
          "for example: reach = 0.85", setting.value.span);
  }
  if (device.memory_bytes == 0 || device.memory_bytes_per_second == 0)
    return user_error(fmt::format("device {} needs memory and bandwidth", statement.name.text),
                      "for example: (f32 = 67 TFLOP/s, memory = 80 GiB, bandwidth = 3.35 TB/s)",
                      statement.name.span);
  bool computes = false;
  for (const double rate : device.flops_per_second) computes = computes || rate > 0;
  if (!computes)
    return user_error(fmt::format("device {} needs a compute rate", statement.name.text),
                      "for example: f32 = 67 TFLOP/s", statement.name.span);
  return device;
}

Result<cluster::Stack> make_stack(const syntax::CreateStack& statement) {
  cluster::Stack stack;
  stack.name = std::string(statement.name.text);
  if (statement.version) stack.version = statement.version->text;
  std::vector<std::string_view> names, given;
  for (const cluster::StackField& field : cluster::stack_fields()) names.push_back(field.name);
  for (const syntax::Setting& setting : statement.settings) {
    const auto fields = cluster::stack_fields();
    const auto found = std::ranges::find(fields, setting.name.text, &cluster::StackField::name);
    if (found == fields.end()) {
      std::string hint = did_you_mean(setting.name.text, names);
      return user_error(fmt::format("a stack has no {}", setting.name.text),
                        hint.empty() ? fmt::format("it has {}", fmt::join(names, ", ")) : std::move(hint),
                        setting.name.span);
    }
    if (std::ranges::find(given, setting.name.text) != given.end())
      return user_error(fmt::format("{} is given twice", setting.name.text), "remove one of them",
                        setting.name.span);
    given.push_back(setting.name.text);
    // Zero turns most of them off.
    const bool is_zero = setting.value.kind == syntax::ValueKind::number && setting.value.quantity.value == 0;
    double value = 0;
    if (!is_zero) {
      WEFT_TRY(read, quantity(setting.value, found->dimension, found->name));
      value = read;
    }
    stack.*found->field = value;
  }
  return stack;
}

Result<cluster::Cluster> make_cluster(const Catalog& catalog, const syntax::CreateCluster& statement) {
  cluster::Cluster made;
  made.name = std::string(statement.name.text);
  if (const auto device = catalog.devices.find(statement.device.text); device != catalog.devices.end())
    made.device = device->second;
  WEFT_TRY(nodes, count_nodes(catalog, statement, made));

  cluster::Axis across{"node", nodes, {}}, within{"device", statement.devices.whole, {}};
  for (const syntax::Link& link : statement.links) {
    if (link.level.text != "node")
      return user_error(fmt::format("expected a link WITHIN node or ACROSS node, found {}", link.level.text),
                        "write node", link.level.span);
    const bool inner = link.kind == syntax::LinkKind::within;
    cluster::Axis& axis = inner ? within : across;
    if (!axis.link.name.empty())
      return user_error(fmt::format("two links {} node: {} is already defined", inner ? "WITHIN" : "ACROSS",
                                    axis.link.name),
                        "remove one of them", link.span);
    if (inner && link.name.text == across.name)
      return user_error("the link within a node must not be named node",
                        "node is the name of the axis across nodes: choose another", link.name.span);
    WEFT_TRY(bandwidth, quantity(link.bandwidth, Dimension::bytes_per_second, "a link's first number"));
    WEFT_TRY(latency, quantity(link.latency, Dimension::seconds, "a link's second number"));
    axis.link.name = std::string(link.name.text);
    axis.link.bytes_per_second = bandwidth;
    axis.link.latency_seconds = latency;
    WEFT_TRY_STATUS(wire(link, axis));
    WEFT_TRY_STATUS(scale(link, axis));
    if (inner) axis.name = std::string(link.name.text);
  }
  const auto needs = [&](const cluster::Axis& axis, std::string_view kind) -> Status {
    if (axis.size == 1 || !axis.link.name.empty()) return {};
    return user_error(fmt::format("cluster {} has no link {} node", statement.name.text, kind),
                      fmt::format("add: LINK name {} node (50 GB/s, 5 us)", kind), statement.name.span);
  };
  WEFT_TRY_STATUS(needs(within, "WITHIN"));
  WEFT_TRY_STATUS(needs(across, "ACROSS"));
  made.axes = {across, within};
  return made;
}

}  // namespace weft::language
