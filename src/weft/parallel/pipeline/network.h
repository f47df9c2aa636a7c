// weft/parallel/pipeline/network.h -- numbers passes, for timing many orders of them.
//
// Pass k of micro-batch i at position q has the number (k * micro_batches + i) * positions + q,
// with k = 0 for F, 1 for B, 2 for W. A whole backward pass uses the number of its B.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/parallel/pipeline/schedule.h"
#include "weft/parallel/pipeline/schedule_cost.h"

namespace weft::pipeline {

class Network {
 public:
  // `shape`: stages, micro-batches, chunks and route; its orders are ignored.
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
  double wire(std::int32_t pass) const { return wire_[at(pass)]; }          // transfer time of that input
  std::int32_t feeds(std::int32_t pass) const {
    return feeds_[at(pass)];
  }  // the pass that waits for it elsewhere; -1: none

  // Computes when every pass begins under these orders; false on a deadlock. `begin`: count()
  // entries.
  bool time(const std::vector<std::vector<std::int32_t>>& orders, std::vector<double>& begin) const;

 private:
  static std::size_t at(std::int32_t pass) { return static_cast<std::size_t>(pass); }

  std::int32_t m_, positions_, stages_;
  std::vector<std::int32_t> stage_, needs_, feeds_;
  std::vector<double> seconds_, wire_;
};

}  // namespace weft::pipeline
