// weft/plan/graph/work.h -- how much a node computes and moves, on any device.
#pragma once

namespace weft::plan {

// Doubles: exact up to 2^53, and no overflow at the 10^20 of a cluster-sized step.
struct Work {
  double multiply_adds = 0;  // MACs of contractions and convolutions
  double flops = 0;          // all arithmetic, a multiply-add counted as two
  double bytes_read = 0;
  double bytes_written = 0;

  double bytes() const { return bytes_read + bytes_written; }
  Work& operator+=(const Work& other) {
    multiply_adds += other.multiply_adds;
    flops += other.flops;
    bytes_read += other.bytes_read;
    bytes_written += other.bytes_written;
    return *this;
  }
};

}  // namespace weft::plan
