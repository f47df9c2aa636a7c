// weft/runtime/run/feed_inputs.h -- the value ranges of a plan's inputs, and conversion of numbers to them.
//
//   INPUT tokens[b, s] OF int32      starts with the batch index; values must be below the rows of its table
//   INPUT x[b, f]                    any numbers
//
// Included by the files of run/ only.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "weft/base/result.h"
#include "weft/device/cpu/narrow.h"
#include "weft/device/element_access.h"
#include "weft/runtime/run/feed.h"

namespace weft::run {

struct FeedInput {
  std::string name;
  plan::Type type;
  plan::ValueId value;
  // Integer values must be below this: they index a table or name classes. 0: no known limit.
  std::int64_t limit = 0;
  bool may_be_negative = false;  // negative labels mean "ignore this row"
};

std::vector<FeedInput> inputs_of(const plan::Graph& graph);

// Whether all inputs start with the same index, the batch index. Those of a graph do not: nodes and
// edges have separate indices.
bool has_batch(std::span<const FeedInput> inputs);

// Fails if there are no inputs.
Status check_inputs(const plan::Graph& graph, std::span<const FeedInput> inputs);

// The batch size: the size of the first index of every input.
Result<std::int64_t> batch_of(const plan::Graph& graph, std::span<const FeedInput> inputs);

std::vector<InputMemory> memory_of(exec::Rank& rank, std::span<const std::string> names);

// See open_recipe().
std::string file_recipe(std::span<const DataFile> files, const FeedOptions& options);

// The random stream that selects held-out data; distinct from those of epochs and steps.
inline constexpr std::uint64_t kHoldoutStream = ~std::uint64_t{0};

// Converts numbers to elements of an input, starting at element `first`.
template <class T>
void write_numbers(const InputMemory& input, std::int64_t first, std::span<const T> numbers) {
  const plan::DType dtype = input.dtype;
  std::byte* memory = input.bytes.data();
  const bool same = (std::is_same_v<T, float> && dtype == plan::DType::f32) ||
                    (std::is_same_v<T, double> && dtype == plan::DType::f64) ||
                    (std::is_same_v<T, std::int32_t> && dtype == plan::DType::i32) ||
                    (std::is_same_v<T, std::int64_t> && dtype == plan::DType::i64);
  if (same) {
    std::memcpy(memory + first * static_cast<std::int64_t>(sizeof(T)), numbers.data(), numbers.size_bytes());
    return;
  }
  if (std::is_same_v<T, float> && device::cpu::is_narrow(dtype)) {
    device::cpu::narrow(dtype, reinterpret_cast<const float*>(numbers.data()),
                        memory + first * plan::size_in_bytes(dtype),
                        static_cast<std::int64_t>(numbers.size()));
    return;
  }
  for (std::size_t i = 0; i < numbers.size(); ++i)
    device::store_element(dtype, memory, first + static_cast<std::int64_t>(i),
                          static_cast<double>(numbers[i]));
}

}  // namespace weft::run
