// Any bytes are a checkpoint or an error. Tensors lie within the file, match the size of their
// shapes, and are sorted by name.

#include <algorithm>

#include "promise.h"
#include "weft/formats/safetensors.h"

using weft::formats::TensorEntry;
using weft::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto checkpoint = weft::formats::parse_safetensors(bytes, "a.safetensors");
  if (!checkpoint.ok()) {
    promise(!checkpoint.error().message.empty(), "an error has a message");
    return 0;
  }
  const auto* const begin = reinterpret_cast<const std::byte*>(data);
  promise(std::ranges::is_sorted(checkpoint->tensors, {}, &TensorEntry::name), "tensors are sorted by name");
  for (const TensorEntry& tensor : checkpoint->tensors) {
    promise(tensor.data.data() >= begin && tensor.data.data() + tensor.data.size() <= begin + size,
            "a tensor lies within the file", tensor.name);
    auto expected = static_cast<std::uint64_t>(weft::plan::size_in_bytes(tensor.dtype));
    for (const std::int64_t extent : tensor.shape) expected *= static_cast<std::uint64_t>(extent);
    promise(expected == tensor.data.size(), "a tensor's size matches its shape", tensor.name);
    promise(checkpoint->find(tensor.name) == &tensor, "a tensor is found by its name", tensor.name);
  }
  return 0;
}
