// weft/communication/comm/call.h -- one collective call on this rank's memory, as passed to a
// communicator.
//
// Counts are elements per block, with blocks as in collective.h. An all_reduce of count n has n
// elements in and n out. An all_gather has n in and ranks * n out. A reduce_scatter and an
// all_to_all have ranks * n in. Where blocks differ, `counts` has one count per rank (all_gather,
// reduce_scatter, gather, scatter) or one per pair, counts[from * ranks + to] (all_to_all). It is
// the same on every rank.
//
// In place is as in collective.h: input == output, or this rank's block of the larger buffer.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"
#include "weft/collectives/chunks/priority.h"
#include "weft/device/element_type.h"

namespace weft::comm {

using collective::Kind;
using collective::kPriorities;
using collective::Priority;
using device::ElementType;
using device::ReduceOp;

// An algorithm that calls may name, made by Communicator::find_algorithm(). Empty: the communicator
// chooses.
struct NamedAlgorithm {
  std::uint32_t number = 0;  // index into the communicator's names, from 1

  friend bool operator==(const NamedAlgorithm&, const NamedAlgorithm&) = default;
};

// The collectives of a group are numbered from 0, identically on every rank. A send involves two
// ranks and has no number, since the other ranks do not take part in it.
inline constexpr std::uint64_t kUnnumbered = UINT64_MAX;

// A call may be one step of a larger operation that all ranks perform. This tells such calls apart:
// two different scans both begin with an all_to_all of the same size.
enum class Purpose : std::uint8_t { itself, scan, exclusive_scan, user_operation, own_counts };
std::string_view name(Purpose purpose);  // "exclusive_scan"

struct Call {
  Kind kind = Kind::all_reduce;
  const void* input = nullptr;
  void* output = nullptr;
  std::int64_t count = 0;
  ElementType type = ElementType::f32;
  ReduceOp op = ReduceOp::sum;
  std::int32_t root = 0;                      // send: the sender
  std::int32_t peer = 0;                      // send: the receiver
  std::span<const std::int64_t> counts = {};  // copied by the communicator
  Priority priority = Priority::normal;
  NamedAlgorithm algorithm = {};
  // Measured from the start of the call; 0: none. A call that times out ends the group, as a rank
  // failure does, since it may be half done. Accurate to about 20 ms. The first collective of a
  // kind and size over sockets opens connections before it starts; the job's timeout applies to
  // that.
  std::chrono::milliseconds timeout{0};
  Purpose purpose = Purpose::itself;
};

// has_root(): whether the kind has a root. The others: whether this rank's input is read and its
// output written. A broadcast reads only the root's input. An unused buffer may be null.
bool has_root(Kind kind);
bool has_input(const Call& call, std::int32_t rank);
bool has_output(const Call& call, std::int32_t rank);

// Bytes of this rank's buffers; 0 if unused. Also 0 for a custom collective, whose sizes only its
// program knows. REQUIRES: check(call, ranks, rank).
std::int64_t input_bytes(const Call& call, std::int32_t ranks, std::int32_t rank);
std::int64_t output_bytes(const Call& call, std::int32_t ranks, std::int32_t rank);
// The message size as in nccl-tests: the larger buffer.
std::int64_t message_bytes(const Call& call, std::int32_t ranks);

// Refuses null pointers, negative or overflowing counts, a root outside the group, a wrong number
// of counts, a bitwise operation on floating-point types, a negative timeout, and whatever
// check_overlap() refuses.
Status check(const Call& call, std::int32_t ranks, std::int32_t rank);

// Refuses an input and an output that overlap other than in place. `input` and `output` are the
// results of input_bytes() and output_bytes().
Status check_overlap(const Call& call, std::int32_t rank, std::int64_t input, std::int64_t output);

// Whether the call is in place, as its kind defines it.
bool in_place(const Call& call, std::int32_t rank);

// "all_reduce sum f32 x 1024", "broadcast f32 x 8 from rank 2": used in errors and by the flight
// recorder.
std::string describe(const Call& call);

// 64-bit hash of everything that all ranks must agree on. Calls that describe() differently have
// different fingerprints (collision probability 2^-64). Never 0.
std::uint64_t fingerprint(const Call& call);

}  // namespace weft::comm
