// weft/communication/comm/direct/direct_blocks.h -- which bytes of which input go to which bytes of
// which output.
//
//   all_to_all, 3 ranks      input of rank 1   | for 0 | for 1 | for 2 |     sent_at(1, 2) ─┐
//                            output of rank 2  | of 0  | of 1  | of 2  |     landed_at(1, 2) ┘ bytes(1, 2)
//
// Every kind has this form: the data from one rank to another is one block. For a reduction, the
// blocks that arrive at the same offset are combined.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "weft/communication/comm/call.h"

namespace weft::comm {

class Blocks {
 public:
  // Initializes in place: copying a freshly written object stalls, which matters for small calls.
  void set(const Call& call, std::int32_t ranks) {
    counts_ = call.counts;
    ranks_ = ranks;
    kind_ = call.kind;
    root_ = call.root;
    element_ = device::size_of(call.type);
    equal_ = call.kind == Kind::barrier ? 0 : static_cast<std::size_t>(call.count) * element_;
  }

  bool gives(std::int32_t rank) const {
    switch (kind_) {
      case Kind::broadcast:
      case Kind::scatter: return rank == root_;
      case Kind::gather:
      case Kind::reduce: return rank != root_ || ranks_ == 1;
      default: return true;
    }
  }
  bool takes(std::int32_t rank) const {
    switch (kind_) {
      case Kind::broadcast:
      case Kind::scatter: return rank != root_;
      case Kind::gather:
      case Kind::reduce: return rank == root_;
      default: return true;
    }
  }
  // Whether a rank's input has a separate block per target.
  bool differ_by_target() const {
    return kind_ == Kind::all_to_all || kind_ == Kind::reduce_scatter || kind_ == Kind::scatter;
  }

  std::size_t bytes(std::int32_t from, std::int32_t to) const {
    if (counts_.empty()) return equal_;
    switch (kind_) {
      case Kind::all_gather:
      case Kind::gather: return at(from);
      case Kind::all_to_all: return at(from * ranks_ + to);
      default: return at(to);
    }
  }
  std::size_t sent_at(std::int32_t from, std::int32_t to) const {
    if (!differ_by_target()) return 0;
    return before(to, [&](std::int32_t other) { return bytes(from, other); });
  }
  std::size_t landed_at(std::int32_t from, std::int32_t to) const {
    if (kind_ != Kind::all_gather && kind_ != Kind::gather && kind_ != Kind::all_to_all) return 0;
    return before(from, [&](std::int32_t other) { return bytes(other, to); });
  }
  // Total bytes that `rank` contributes.
  std::size_t given(std::int32_t rank) const {
    return differ_by_target() ? before(ranks_, [&](std::int32_t other) { return bytes(rank, other); })
                              : bytes(rank, rank);
  }

  // The largest block, and the most that any rank contributes: the same on every rank.
  std::size_t largest() const {
    if (counts_.empty()) return equal_;
    return static_cast<std::size_t>(*std::max_element(counts_.begin(), counts_.end())) * element_;
  }
  std::size_t most_given() const {
    if (counts_.empty()) return differ_by_target() ? equal_ * static_cast<std::size_t>(ranks_) : equal_;
    std::size_t most = 0;
    for (std::int32_t rank = 0; rank < ranks_; ++rank) most = std::max(most, given(rank));
    return most;
  }

 private:
  std::size_t at(std::int32_t index) const {
    return static_cast<std::size_t>(counts_[static_cast<std::size_t>(index)]) * element_;
  }
  template <class BytesOf>
  std::size_t before(std::int32_t rank, BytesOf bytes_of) const {
    if (counts_.empty()) return equal_ * static_cast<std::size_t>(rank);
    std::size_t total = 0;
    for (std::int32_t other = 0; other < rank; ++other) total += bytes_of(other);
    return total;
  }

  std::span<const std::int64_t> counts_;
  std::int32_t ranks_ = 1;
  Kind kind_ = Kind::barrier;
  std::int32_t root_ = 0;
  std::size_t element_ = 1;
  std::size_t equal_ = 0;  // bytes per block if all are equal
};

}  // namespace weft::comm
