#include "weft/runtime/run/weights.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "weft/base/hash.h"
#include "weft/base/number.h"
#include "weft/base/parallel_for.h"
#include "weft/base/random.h"
#include "weft/device/element_access.h"
#include "weft/formats/value.h"
#include "weft/parallel/train/training_plan.h"

namespace weft::run {
namespace {

using program::Port;

Status write_initial(exec::Rank& rank, const Port& port, std::uint64_t seed) {
  const plan::Graph& graph = *rank.program().graph;
  const plan::NodeView source = graph.view(graph.value(port.value).producer);
  return rank.write(port, [&](std::span<std::byte> memory) { run::write_initial(source, seed, memory); });
}

Status read(const exec::Rank& rank, const Port& port, Weights& weights) {
  WEFT_TRY(held, rank.read(port));
  const std::span<const std::byte> bytes = held.bytes();
  weights.tensors.emplace(port.name,
                          Tensor{port.place.dtype, shape_of(port.place), {bytes.begin(), bytes.end()}});
  return {};
}

std::string print_shape(plan::DType dtype, std::span<const std::int64_t> shape) {
  return fmt::format("{}[{}]", plan::name(dtype), fmt::join(shape, ","));
}

// Limit of steps and sizes, so that sums and products stay far from 64-bit overflow.
constexpr std::int64_t kMostCounted = std::int64_t{1} << 53;

// Strict parsing of a file's metadata: numbers in another format come from other programs or from
// corruption.
class Metadata {
 public:
  Metadata(const std::map<std::string, std::string>& entries, const std::string& path)
      : entries_(entries), path_(path) {}

  std::string text(const std::string& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? std::string() : found->second;
  }

  // 0 if there is no such entry.
  template <class Whole>
  Result<Whole> whole(const std::string& key, Whole most) const {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return Whole{0};
    if (const auto number = read_number<Whole>(found->second, 0, most)) return *number;
    return wrong(key, fmt::format("a whole number from 0 to {}", most), found->second);
  }

  // Parses b=32,c=10.
  Result<std::vector<std::pair<std::string, std::int64_t>>> sizes(const std::string& key) const {
    std::vector<std::pair<std::string, std::int64_t>> sizes;
    const std::string all = text(key);
    for (std::string_view rest = all; !rest.empty();) {
      const std::size_t comma = rest.find(',');
      const std::string_view part = rest.substr(0, comma);
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
      const std::size_t equals = std::min(part.find('='), part.size());
      const auto size =
          read_number<std::int64_t>(part.substr(std::min(equals + 1, part.size())), 1, kMostCounted);
      const bool is_new = std::ranges::find(sizes, part.substr(0, equals), [](const auto& entry) {
                            return std::string_view(entry.first);
                          }) == sizes.end();
      if (equals == 0 || !size || !is_new || (comma != std::string_view::npos && rest.empty()))
        return wrong(key, fmt::format("a list such as b=32,c=10 of sizes from 1 to {}", kMostCounted), part);
      sizes.emplace_back(part.substr(0, equals), *size);
    }
    return sizes;
  }

 private:
  Error wrong(const std::string& key, std::string_view expected, std::string_view found) const {
    return user_error(fmt::format("{}: metadata '{}': expected {}, found '{}'", path_, key, expected,
                                  formats::shown(found)));
  }

  const std::map<std::string, std::string>& entries_;
  const std::string& path_;
};

// Checks a step count, which is used as an exponent in the bias correction of moments.
Status check_counter(const formats::TensorEntry& entry, const std::string& path) {
  if (!train::counts_steps(entry.name) ||
      (entry.dtype != plan::DType::i64 && entry.dtype != plan::DType::i32))
    return {};
  const auto elements = static_cast<std::int64_t>(entry.data.size()) / plan::size_in_bytes(entry.dtype);
  for (std::int64_t i = 0; i < elements; ++i)
    if (const double steps = device::load_element(entry.dtype, entry.data.data(), i);
        steps < 0 || steps > static_cast<double>(kMostCounted))
      return user_error(fmt::format("{}: tensor '{}': expected a count of steps from 0 to {}, found {:.0f}",
                                    path, entry.name, kMostCounted, steps));
  return {};
}

}  // namespace

Weights without_tensors(const Weights& weights) {
  return {.model = weights.model,
          .step = weights.step,
          .seed = weights.seed,
          .sizes = weights.sizes,
          .tensors = {},
          .plan = weights.plan,
          .launch = weights.launch};
}

std::vector<std::int64_t> shape_of(const program::Place& place) {
  std::vector<std::int64_t> shape;
  for (const program::Axis& axis : place.axes) shape.push_back(axis.size);
  return shape;
}

void write_initial(const plan::NodeView& source, std::uint64_t seed, std::span<std::byte> memory) {
  const std::string_view kind = source.word(2);
  const double a = source.real(3), b = source.real(4);
  // A master weight starts with its parameter's initial value before rounding.
  std::string_view name = source.word(0);
  if (name.ends_with(train::kMasterSuffix)) name.remove_suffix(train::kMasterSuffix.size());
  const std::uint64_t stream = Hasher().text(name).digest().low;
  const plan::Type type = source.result_type(0);
  const bool is_normal = kind == "normal", is_uniform = kind == "uniform";
  const double all = kind == "constant" ? a : kind == "ones" ? 1 : 0;
  // A number depends only on its position, so parts can be computed in any order. Small tensors use
  // one thread.
  constexpr std::int64_t kPart = 1 << 18;
  const std::int64_t elements = type.elements();
  parallel_for(static_cast<std::size_t>((elements + kPart - 1) / kPart), [&](std::size_t part) {
    const std::int64_t first = static_cast<std::int64_t>(part) * kPart,
                       end = std::min(first + kPart, elements);
    std::array<double, 256> some;
    constexpr auto kSome = static_cast<std::int64_t>(some.size());
    for (std::int64_t at = first; at < end; at += kSome) {
      const std::span<double> now =
          std::span(some).first(static_cast<std::size_t>(std::min(kSome, end - at)));
      const auto place = static_cast<std::uint64_t>(at);
      if (is_normal) normals_at(seed, stream, place, now);
      for (std::size_t i = 0; i < now.size(); ++i)
        now[i] = is_normal    ? a + b * now[i]
                 : is_uniform ? a + (b - a) * uniform_at(seed, stream, place + i)
                              : all;
      for (std::size_t i = 0; i < now.size(); ++i)
        device::store_element(type.dtype, memory.data(), at + static_cast<std::int64_t>(i), now[i]);
    }
  });
}

Status write_initial(exec::Rank& rank, std::uint64_t seed) {
  for (const auto* ports : {&rank.program().parameters, &rank.program().states})
    for (const Port& port : *ports) WEFT_TRY_STATUS(write_initial(rank, port, seed));
  return {};
}

Result<const Tensor*> find_tensor(const Weights& weights, const std::string& name, plan::DType dtype,
                                  const std::vector<std::int64_t>& shape, bool needed) {
  const auto found = weights.tensors.find(name);
  if (found == weights.tensors.end()) {
    if (!needed) return nullptr;
    return user_error(fmt::format("the weights of {} have no parameter {}", weights.model, name),
                      "TRAIN with from_scratch = true starts from new initial values");
  }
  const Tensor& tensor = found->second;
  if (tensor.dtype != dtype || tensor.shape != shape)
    return user_error(
        fmt::format("the weights of {} have {} as {}, this plan has it as {}", weights.model, name,
                    print_shape(tensor.dtype, tensor.shape), print_shape(dtype, shape)),
        "use the sizes and the precision it was trained with; TRAIN with from_scratch = true starts over");
  return &tensor;
}

std::optional<Tensor> make_master(const Weights& weights, std::string_view name, plan::DType dtype) {
  if (!name.ends_with(train::kMasterSuffix)) return std::nullopt;
  const auto found = weights.tensors.find(train::parameter_of_moment(name));
  if (found == weights.tensors.end()) return std::nullopt;
  const Tensor& rounded = found->second;
  const auto elements = static_cast<std::int64_t>(rounded.bytes.size()) / plan::size_in_bytes(rounded.dtype);
  Tensor master{dtype, rounded.shape, {}};
  master.bytes.resize(static_cast<std::size_t>(elements * plan::size_in_bytes(dtype)));
  for (std::int64_t i = 0; i < elements; ++i)
    device::store_element(dtype, master.bytes.data(), i,
                          device::load_element(rounded.dtype, rounded.bytes.data(), i));
  return master;
}

std::optional<Tensor> fold_feedback(const Weights& weights, std::string_view name, const plan::Graph& graph,
                                    const plan::Type& type) {
  const auto found = weights.tensors.find(name);
  if (found == weights.tensors.end()) return std::nullopt;
  const Tensor& before = found->second;
  if (before.dtype != type.dtype || type.dtype != plan::DType::f32 || before.shape.size() != type.rank())
    return std::nullopt;
  Tensor folded{type.dtype, {}, std::vector<std::byte>(static_cast<std::size_t>(type.bytes()))};
  for (std::size_t d = 0; d < type.rank(); ++d) {
    const bool is_rows = graph.text(type.dims[d].index).find("_addend") != std::string_view::npos;
    if (before.shape[d] != type.dims[d].size && !is_rows) return std::nullopt;
    folded.shape.push_back(type.dims[d].size);
  }
  const auto elements = static_cast<std::int64_t>(before.bytes.size() / sizeof(float));
  for (std::int64_t i = 0; i < elements; ++i) {
    std::int64_t rest = i, place = 0, stride = 1;
    for (std::size_t d = type.rank(); d-- > 0;) {
      place += rest % before.shape[d] % folded.shape[d] * stride;
      rest /= before.shape[d];
      stride *= folded.shape[d];
    }
    device::store_element(type.dtype, folded.bytes.data(), place,
                          device::load_element(type.dtype, folded.bytes.data(), place) +
                              device::load_element(type.dtype, before.bytes.data(), i));
  }
  return folded;
}

namespace {

// Calls `give(port, bytes)` for tensors that exist; computes and writes the others.
template <class Give>
Status give_weights(exec::Rank& rank, const Weights& weights,
                    const std::map<std::string, Tensor, std::less<>>& computed, const Give& give) {
  const auto write = [&](const Port& port, bool needed) -> Status {
    if (const auto made = computed.find(port.name); made != computed.end())
      return give(port, made->second.bytes);
    WEFT_TRY(tensor, find_tensor(weights, port.name, port.place.dtype, shape_of(port.place), needed));
    if (tensor != nullptr) return give(port, tensor->bytes);
    if (const auto master = make_master(weights, port.name, port.place.dtype))
      return rank.write(port, master->bytes);
    return write_initial(rank, port, weights.seed);
  };
  for (const Port& port : rank.program().parameters) WEFT_TRY_STATUS(write(port, true));
  for (const Port& port : rank.program().states) WEFT_TRY_STATUS(write(port, false));
  return {};
}

}  // namespace

Status write_weights(exec::Rank& rank, const Weights& weights,
                     const std::map<std::string, Tensor, std::less<>>& computed) {
  return give_weights(rank, weights, computed, [&](const Port& port, const std::vector<std::byte>& bytes) {
    return rank.write(port, bytes);
  });
}

Status load_weights(exec::Rank& rank, const Weights& weights,
                    const std::map<std::string, Tensor, std::less<>>& computed) {
  std::vector<exec::Loaded> loaded;
  WEFT_TRY_STATUS(give_weights(rank, weights, computed,
                               [&](const Port& port, const std::vector<std::byte>& bytes) -> Status {
                                 if (!bytes.empty()) loaded.push_back({&port, bytes});
                                 return {};
                               }));
  return rank.load(loaded, exec::groups_of_bytes(rank.program(), loaded, exec::kStagedBytes));
}

Status read_weights(const exec::Rank& rank, Weights& weights) {
  weights.tensors.clear();
  for (const auto* ports : {&rank.program().parameters, &rank.program().states})
    for (const Port& port : *ports) WEFT_TRY_STATUS(read(rank, port, weights));
  return {};
}

Status take_weights(exec::Rank& rank, Weights& weights) {
  weights.tensors.clear();
  rank.forget_step();
  for (const auto* ports : {&rank.program().parameters, &rank.program().states})
    for (const Port& port : *ports) {
      WEFT_TRY_STATUS(read(rank, port, weights));
      rank.forget(port);
    }
  return {};
}

void keep_moments(Weights& learned, Weights before) {
  for (auto& [name, tensor] : before.tensors)
    if (learned.tensors.contains(train::parameter_of_moment(name)) || train::counts_steps(name))
      learned.tensors.try_emplace(name, std::move(tensor));
}

void keep_moments(formats::Checkpoint& learned, const Weights& before) {
  for (const auto& [name, tensor] : before.tensors)
    if ((learned.find(train::parameter_of_moment(name)) != nullptr || train::counts_steps(name)) &&
        learned.find(name) == nullptr)
      learned.tensors.push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
}

std::int64_t bytes_of(const Weights& weights) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : weights.tensors) bytes += static_cast<std::int64_t>(tensor.bytes.size());
  return bytes;
}

Digest digest_of(const Weights& weights) {
  Hasher hasher;
  hasher.text(weights.model).number(static_cast<std::uint64_t>(weights.step)).number(weights.seed);
  hasher.text(weights.plan);
  for (const auto& [name, tensor] : weights.tensors) {
    hasher.text(name).text(plan::name(tensor.dtype));
    for (const std::int64_t size : tensor.shape) hasher.number(static_cast<std::uint64_t>(size));
    hasher.text({reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()});
  }
  return hasher.digest();
}

Result<RankCheckpoint> to_checkpoint(const exec::Rank& rank, const Weights& weights) {
  RankCheckpoint made{to_checkpoint(without_tensors(weights)), {}};
  for (const auto* ports : {&rank.program().parameters, &rank.program().states})
    for (const Port& port : *ports) {
      WEFT_TRY(held, rank.read(port));
      made.held.push_back(std::move(held));
      made.checkpoint.tensors.push_back(
          {port.name, port.place.dtype, shape_of(port.place), made.held.back().bytes()});
    }
  return made;
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
  if (!weights.plan.empty()) checkpoint.metadata["plan"] = weights.plan;
  if (!weights.launch.empty()) checkpoint.metadata["launch"] = weights.launch;
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
  const Metadata metadata(checkpoint.metadata, path);
  WEFT_TRY(step, metadata.whole("step", kMostCounted));
  WEFT_TRY(seed, metadata.whole("seed", std::numeric_limits<std::uint64_t>::max()));
  WEFT_TRY(sizes, metadata.sizes("sizes"));
  weights.step = step;
  weights.seed = seed;
  weights.sizes = std::move(sizes);
  weights.plan = metadata.text("plan");
  weights.launch = metadata.text("launch");
  for (const formats::TensorEntry& entry : checkpoint.tensors) {
    WEFT_TRY_STATUS(check_counter(entry, path));
    weights.tensors.emplace(entry.name,
                            Tensor{entry.dtype, entry.shape, {entry.data.begin(), entry.data.end()}});
  }
  return weights;
}

}  // namespace weft::run
