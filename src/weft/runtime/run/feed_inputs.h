// weft/runtime/run/feed_inputs.h -- what the inputs of a plan take, and how numbers get into them.
//
//   INPUT tokens[b, s] OF int32      begins with the batch's index; must be below the rows of the table it picks from
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
  // Whole numbers must be below it: they pick rows of a table or name classes. 0: no limit known.
  std::int64_t limit = 0;
  bool may_be_negative = false;  // a label that says "ignore this row"
};

std::vector<FeedInput> inputs_of(const plan::Graph& graph);

// Whether the inputs begin with one index, that of the examples in a batch. A graph's do not: its nodes and its
// edges are counted apart.
bool has_batch(std::span<const FeedInput> inputs);

// Fails where there is no input at all.
Status check_inputs(const plan::Graph& graph, std::span<const FeedInput> inputs);

// How many examples a batch takes: the first index of every input.
Result<std::int64_t> batch_of(const plan::Graph& graph, std::span<const FeedInput> inputs);

std::vector<InputMemory> memory_of(exec::Rank& rank);

// See open_recipe().
std::string file_recipe(std::span<const DataFile> files, const FeedOptions& options);

// The random numbers that say what is held out: no epoch's, no step's.
inline constexpr std::uint64_t kHoldoutStream = ~std::uint64_t{0};

// Numbers become the elements of an input, from element `first` on.
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
