// weft/plan/graph/work.h -- how much a node computes and moves, whatever runs it.
#pragma once

namespace weft::plan {

// Doubles: exact up to 2^53, and no overflow where a cluster-sized step counts 10^20.
struct Work {
  double multiply_adds = 0;  // of contractions and convolutions: what the field calls MACs
  double flops = 0;          // all arithmetic, a multiply-add as two
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
