// weft/parallel/pipeline/network.h -- the passes of a pipeline as numbers, for those who time many orders of them.
//
// Pass k of micro-batch i at position q has the number (k * micro_batches + i) * positions + q, k being 0 for F,
// 1 for B, 2 for W. A whole backward goes by the number of its B.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/parallel/pipeline/price.h"
#include "weft/parallel/pipeline/schedule.h"

namespace weft::pipeline {

class Network {
 public:
  // `shape`: stages, micro-batches, chunks and route; its orders are not looked at.
  Network(const Schedule& shape, const Times& times, bool whole_backward);

  std::int32_t count() const { return 3 * m_ * positions_; }
  std::int32_t number(std::int32_t kind, std::int32_t micro_batch, std::int32_t position) const {
    return (kind * m_ + micro_batch) * positions_ + position;
  }
  std::int32_t kind(std::int32_t pass) const { return pass / (m_ * positions_); }
  std::int32_t micro_batch(std::int32_t pass) const { return pass / positions_ % m_; }
  std::int32_t position(std::int32_t pass) const { return pass % positions_; }

  std::int32_t stage(std::int32_t pass) const { return stage_[at(pass)]; }
  double seconds(std::int32_t pass) const { return seconds_[at(pass)]; }
  std::int32_t needs(std::int32_t pass) const { return needs_[at(pass)]; }  // -1: nothing
  double wire(std::int32_t pass) const { return wire_[at(pass)]; }          // from where that lies
  std::int32_t feeds(std::int32_t pass) const {
    return feeds_[at(pass)];
  }  // what waits for it elsewhere; -1: none

  // Begin of every pass under these orders; false when they wait in a circle. `begin` is of count() numbers.
  bool time(const std::vector<std::vector<std::int32_t>>& orders, std::vector<double>& begin) const;

 private:
  static std::size_t at(std::int32_t pass) { return static_cast<std::size_t>(pass); }

  std::int32_t m_, positions_, stages_;
  std::vector<std::int32_t> stage_, needs_, feeds_;
  std::vector<double> seconds_, wire_;
};

}  // namespace weft::pipeline
