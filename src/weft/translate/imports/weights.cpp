#include "weft/translate/imports/weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/formats/value.h"

namespace weft::imports {
namespace {

using formats::TensorEntry;
using Tensors = std::map<std::string_view, const TensorEntry*>;

std::int64_t product(std::span<const std::int64_t> sizes) {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) result *= size;
  return result;
}

// Classes with and without a head save the same tensors with and without a prefix.
const TensorEntry* find_tensor(const Tensors& tensors, const std::string& name) {
  constexpr std::string_view kWords[] = {"bert.", "vit.", "transformer.", "model.", "gpt_neox."};
  if (const auto found = tensors.find(name); found != tensors.end()) return found->second;
  if (name == "embed_out.weight") return find_tensor(tensors, "lm_head.weight");  // since transformers 5
  for (const std::string_view word : kWords) {
    if (name.starts_with(word))
      if (const auto found = tensors.find(std::string_view(name).substr(word.size())); found != tensors.end())
        return found->second;
    if (const auto found = tensors.find(std::string(word) + name); found != tensors.end())
      return found->second;
  }
  return nullptr;
}

// Copies one tensor into the parameter's memory, or into its slice of it.
void move_elements(const WeightSource& source, std::span<const std::byte> from, std::size_t width,
                   std::byte* to) {
  const std::size_t rank = source.view.size();
  std::vector<std::int64_t> strides(rank, 1), sizes(rank), steps(rank);
  for (std::size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * source.view[i];
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t dim = source.order[i];
    sizes[i] = dim == source.axis ? source.count : source.view[dim];
    steps[i] = strides[dim];
  }
  const std::int64_t begin = source.begin * strides[source.axis], last = sizes[rank - 1];
  const std::int64_t rows = product(sizes) / last;
  std::vector<std::int64_t> at(rank, 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t offset = begin;
    for (std::size_t i = 0; i + 1 < rank; ++i) offset += at[i] * steps[i];
    for (std::int64_t i = 0; i < last; ++i) {
      // Interleaved pairs 0 1 2 3 4 5 become halves 0 2 4 and 1 3 5.
      const std::int64_t half = last / 2, place = source.pairs ? (i < half ? 2 * i : 2 * (i - half) + 1) : i;
      std::memcpy(to, from.data() + static_cast<std::size_t>(offset + place * steps[rank - 1]) * width,
                  width);
      to += width;
    }
    for (std::size_t i = rank - 1; i-- > 0;) {
      if (++at[i] < sizes[i]) break;
      at[i] = 0;
    }
  }
}

Status check_source(const WeightSource& source, const TensorEntry& tensor, std::string_view name) {
  std::int64_t elements = 1;
  for (const std::int64_t size : tensor.shape)
    if (__builtin_mul_overflow(elements, size, &elements)) elements = -1;
  const std::int64_t expected = product(source.view);
  const bool fits =
      elements == expected && (source.order.size() < 2 || source.view.size() != 2 ||
                               tensor.shape.size() != 2 || std::ranges::equal(tensor.shape, source.view));
  if (fits) return {};
  return user_error(
      fmt::format("tensor {}: expected [{}] for parameter {}, found [{}]", name, fmt::join(source.view, ", "),
                  source.parameter, fmt::join(tensor.shape, ", ")),
      "the weights do not match the config.json");
}

Result<const TensorEntry*> tensor_of(const Tensors& tensors, const WeightSource& source,
                                     const std::string& name) {
  const TensorEntry* tensor = find_tensor(tensors, name);
  if (tensor == nullptr)
    return user_error(fmt::format("no tensor {} for parameter {}", name, source.parameter),
                      "give all files of the checkpoint");
  WEFT_TRY_STATUS(check_source(source, *tensor, name));
  return tensor;
}

std::vector<std::string> names_of(const WeightSource& source) {
  if (source.stacked == 0) return {source.tensor};
  std::vector<std::string> names;
  const std::size_t hole = source.tensor.find("{}");
  for (std::int64_t i = 0; i < source.stacked; ++i)
    names.push_back(std::string(source.tensor).replace(hole, 2, std::to_string(i)));
  return names;
}

}  // namespace

Result<ConvertedWeights> convert_weights(const Imported& model, std::span<const formats::Checkpoint> files) {
  Tensors tensors;
  for (const formats::Checkpoint& file : files) {
    for (const TensorEntry& tensor : file.tensors)
      if (!tensors.emplace(tensor.name, &tensor).second)
        return user_error(fmt::format("tensor {} is in two files", formats::shown(tensor.name)));
    for (const auto& [name, dtype] : file.foreign)
      return user_error(
          fmt::format("tensor {}: expected floating point, found {}", formats::shown(name), dtype));
  }
  // Find all tensors before copying any.
  std::set<std::string_view> read;
  std::size_t bytes = 0;
  for (const WeightSource& source : model.weights)
    for (const std::string& name : names_of(source)) {
      WEFT_TRY(tensor, tensor_of(tensors, source, name));
      read.insert(tensor->name);
      bytes += static_cast<std::size_t>(product(source.shape) / std::max<std::int64_t>(source.stacked, 1)) *
               static_cast<std::size_t>(plan::size_in_bytes(tensor->dtype));
    }
  const auto storage = std::make_shared<std::string>(bytes, '\0');
  auto* memory = reinterpret_cast<std::byte*>(storage->data());
  ConvertedWeights converted;
  for (const WeightSource& source : model.weights) {
    std::byte* const begin = memory;
    plan::DType dtype = plan::DType::f32;
    bool first = true;
    for (const std::string& name : names_of(source)) {
      WEFT_TRY(tensor, tensor_of(tensors, source, name));
      if (!first && tensor->dtype != dtype)
        return user_error(fmt::format("tensor {}: expected the type of the other experts", name));
      first = false;
      dtype = tensor->dtype;
      const auto width = static_cast<std::size_t>(plan::size_in_bytes(dtype));
      move_elements(source, tensor->data, width, memory);
      memory +=
          static_cast<std::size_t>(product(source.shape) / std::max<std::int64_t>(source.stacked, 1)) * width;
    }
    converted.checkpoint.tensors.push_back(
        {source.parameter, dtype, source.shape, {begin, static_cast<std::size_t>(memory - begin)}});
  }
  converted.checkpoint.storage = storage;
  converted.checkpoint.metadata["model"] = model.name;
  for (const auto& [name, tensor] : tensors)
    if (!read.contains(name)) converted.unread.emplace_back(name);
  return converted;
}

}  // namespace weft::imports
