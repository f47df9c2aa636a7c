// weft/runtime/run/trial_buffers.h -- the memory of one rank in a trial of a collective.
//
// Included by the files of run/ only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/runtime/run/collective_trial.h"
#include "weft/runtime/run/collective_values.h"

namespace weft::run {

// The call without its buffers.
comm::Call call_of(const CollectiveTrial& trial);

// This rank's buffers; in place, one is part of the other.
class TrialBuffers {
 public:
  TrialBuffers(const CollectiveTrial& trial, std::int32_t rank);

  const comm::Call& call() const { return call_; }
  const ElementCollective& what() const { return what_; }
  std::int32_t rank() const { return rank_; }
  // The memory that contains input and output.
  std::span<std::byte> memory() { return memory_; }
  std::span<const std::byte> output() const {
    return {static_cast<const std::byte*>(call_.output), static_cast<std::size_t>(output_bytes_)};
  }
  std::span<const std::byte> input() const {
    return {static_cast<const std::byte*>(call_.input), static_cast<std::size_t>(input_bytes_)};
  }
  void fill(Values values) {
    fill_input(what_, rank_, values, static_cast<std::byte*>(const_cast<void*>(call_.input)));
  }

 private:
  ElementCollective what_;
  comm::Call call_;
  const std::int32_t rank_;
  std::int64_t input_bytes_ = 0, output_bytes_ = 0;
  std::vector<std::byte> memory_;
};

// Counts wrong elements and describes the first.
void compare(const TrialBuffers& buffers, const Expected& expected, TrialOutcome& outcome);

std::uint64_t checksum_of(std::span<const std::byte> bytes);

}  // namespace weft::run
