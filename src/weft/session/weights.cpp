#include "weft/session/weights.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "weft/base/hash.h"
#include "weft/base/random.h"
#include "weft/device/element_access.h"

namespace weft::session {
namespace {

using program::Port;

// An element depends on the seed, the tensor's name and its place alone, not on what else there is.
void write_initial(exec::Rank& rank, const Port& port, std::uint64_t seed) {
  const plan::Graph& graph = *rank.program().graph;
  const plan::NodeView node = graph.view(graph.value(port.value).producer);
  const std::string_view kind = node.word(2);
  const double a = node.real(3), b = node.real(4);
  const std::uint64_t stream = Hasher().text(port.name).digest().low;
  std::byte* memory = rank.memory(port).data();
  for (std::int64_t i = 0; i < port.place.elements(); ++i) {
    const auto place = static_cast<std::uint64_t>(i);
    const double value = kind == "normal"     ? a + b * normal_at(seed, stream, place)
                         : kind == "uniform"  ? a + (b - a) * uniform_at(seed, stream, place)
                         : kind == "constant" ? a
                         : kind == "ones"     ? 1
                                              : 0;
    device::store_element(port.place.dtype, memory, i, value);
  }
}

std::string print(plan::DType dtype, std::span<const std::int64_t> shape) {
  return fmt::format("{}[{}]", plan::name(dtype), fmt::join(shape, ","));
}

template <class Whole>
Whole whole_at(const std::map<std::string, std::string>& metadata, const std::string& key) {
  Whole value = 0;
  if (const auto found = metadata.find(key); found != metadata.end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  return value;
}

}  // namespace

std::vector<std::int64_t> shape_of(const program::Place& place) {
  std::vector<std::int64_t> shape;
  for (const program::Axis& axis : place.axes) shape.push_back(axis.size);
  return shape;
}

void write_initial(exec::Rank& rank, std::uint64_t seed) {
  for (const Port& port : rank.program().parameters) write_initial(rank, port, seed);
  for (const Port& port : rank.program().states) write_initial(rank, port, seed);
}

Status write_weights(exec::Rank& rank, const Weights& weights) {
  const auto write = [&](const Port& port, bool needed) -> Status {
    const auto found = weights.tensors.find(port.name);
    if (found == weights.tensors.end()) {
      if (needed)
        return user_error(fmt::format("what {} learned holds no parameter {}", weights.model, port.name),
                          "TRAIN with restart = true starts from new initial values");
      write_initial(rank, port, weights.seed);
      return {};
    }
    const Tensor& tensor = found->second;
    const std::vector<std::int64_t> shape = shape_of(port.place);
    if (tensor.dtype != port.place.dtype || tensor.shape != shape)
      return user_error(
          fmt::format("what {} learned has {} as {}, this plan has it as {}", weights.model, port.name,
                      print(tensor.dtype, tensor.shape), print(port.place.dtype, shape)),
          "give the sizes and the precision it was trained with; TRAIN with restart = true starts anew");
    std::memcpy(rank.memory(port).data(), tensor.bytes.data(), tensor.bytes.size());
    return {};
  };
  for (const Port& port : rank.program().parameters) WEFT_TRY_STATUS(write(port, true));
  for (const Port& port : rank.program().states) WEFT_TRY_STATUS(write(port, false));
  return {};
}

void read_weights(const exec::Rank& rank, Weights& weights) {
  weights.tensors.clear();
  for (const auto* ports : {&rank.program().parameters, &rank.program().states})
    for (const Port& port : *ports) {
      const std::span<const std::byte> memory = rank.memory(port);
      weights.tensors.emplace(port.name,
                              Tensor{port.place.dtype, shape_of(port.place), {memory.begin(), memory.end()}});
    }
}

formats::Checkpoint to_checkpoint(const Weights& weights) {
  formats::Checkpoint checkpoint;
  checkpoint.metadata = {{"model", weights.model},
                         {"step", fmt::format("{}", weights.step)},
                         {"seed", fmt::format("{}", weights.seed)}};
  std::string sizes;
  for (const auto& [name, size] : weights.sizes)
    sizes += fmt::format("{}{}={}", sizes.empty() ? "" : ",", name, size);
  checkpoint.metadata["sizes"] = sizes;
  for (const auto& [name, tensor] : weights.tensors)
    checkpoint.tensors.push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
  return checkpoint;
}

Result<Weights> from_checkpoint(const formats::Checkpoint& checkpoint, std::string_view model,
                                const std::string& path) {
  Weights weights;
  weights.model = model;
  const auto named = checkpoint.metadata.find("model");
  if (named != checkpoint.metadata.end() && named->second != model)
    return user_error(fmt::format("{} holds the model {}, expected {}", path, named->second, model),
                      fmt::format("LOAD {} FROM '{}'", named->second, path));
  weights.step = whole_at<std::int64_t>(checkpoint.metadata, "step");
  weights.seed = whole_at<std::uint64_t>(checkpoint.metadata, "seed");
  if (const auto sizes = checkpoint.metadata.find("sizes"); sizes != checkpoint.metadata.end()) {
    std::string_view rest = sizes->second;
    while (!rest.empty()) {
      const std::string_view part = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
      const std::size_t equals = part.find('=');
      if (equals == std::string_view::npos) continue;
      std::int64_t size = 0;
      std::from_chars(part.data() + equals + 1, part.data() + part.size(), size);
      weights.sizes.emplace_back(part.substr(0, equals), size);
    }
  }
  for (const formats::TensorEntry& entry : checkpoint.tensors)
    weights.tensors.emplace(entry.name,
                            Tensor{entry.dtype, entry.shape, {entry.data.begin(), entry.data.end()}});
  return weights;
}

}  // namespace weft::session
