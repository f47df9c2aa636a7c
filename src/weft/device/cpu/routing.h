// weft/device/cpu/routing.h -- expert routing: each token's experts, and its slot in their queues.
//
//   scores 0.1 0.7 0.2 0.7     top two: values 0.7 0.7, positions 1 3      ties: lower position first
//   experts 2 0 2 2            slots of capacity 2: 4 0 5 -1               expert * capacity + queue place
//
// Rows are contiguous. A call works on rows [begin, end).
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::device::cpu {

struct TopKRows {
  std::int64_t length = 1, count = 1;  // elements per row, and how many are selected

  std::int64_t scratch_bytes() const { return length * static_cast<std::int64_t>(sizeof(std::int32_t)); }
};

// Largest first. NaN ranks above all numbers, so that it is not lost.
void top_k(const TopKRows& rows, std::int64_t begin, std::int64_t end, const float* x, float* values,
           std::int32_t* positions, std::byte* scratch);

struct Slots {
  std::int64_t length = 1, experts = 1, capacity = 1;

  std::int64_t scratch_bytes() const { return experts * static_cast<std::int64_t>(sizeof(std::int64_t)); }
};

// -1 if the queue is full or the expert does not exist.
void slots(const Slots& slots, std::int64_t begin, std::int64_t end, const std::int32_t* experts,
           std::int32_t* y, std::byte* scratch);
void slots(const Slots& slots, std::int64_t begin, std::int64_t end, const std::int64_t* experts,
           std::int32_t* y, std::byte* scratch);

}  // namespace weft::device::cpu
