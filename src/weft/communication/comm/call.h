// weft/communication/comm/call.h -- what a rank asks a communicator to do: one collective on this rank's memory.
//
// Counts are elements, per block, as collective.h lays blocks out: an all_reduce of count n has n elements in
// and n out; an all_gather of count n has n in and ranks * n out; a reduce_scatter and an all_to_all of count
// n have ranks * n in. Where ranks differ, `counts` has one count a rank (all_gather, reduce_scatter,
// gather, scatter) or one a pair, counts[from * ranks + to] (all_to_all), the same on every rank.
//
// In place, as collective.h has it: input == output, or this rank's block of the larger buffer.
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

// An algorithm that calls of a communicator name, made by Communicator::find_algorithm(). None: the
// communicator chooses.
struct NamedAlgorithm {
  std::uint32_t number = 0;  // of the communicator's names, from 1 on

  friend bool operator==(const NamedAlgorithm&, const NamedAlgorithm&) = default;
};

// The collectives of a group are numbered from 0 on, the same on every rank. A send concerns two ranks and has
// no such number: the others could not say what theirs is.
inline constexpr std::uint64_t kUnnumbered = UINT64_MAX;

// A call may be a step of a larger one that all ranks make: two scans are not the same because both begin with
// an all_to_all of as many elements.
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
  // From when it begins; 0: as long as everyone lives. A call that is late ends the group's life, as a death
  // does: half of it may have been done. Measured to some 20 ms. The first collective of its kind and size over
  // sockets opens wires, before it begins: for that the job's timeout holds.
  std::chrono::milliseconds timeout{0};
  Purpose purpose = Purpose::itself;
};

// Whether the kind has a root. Whether this rank's input is read at all, and its output written: a broadcast
// reads the root's input only. A buffer that is not used may be null.
bool has_root(Kind kind);
bool has_input(const Call& call, std::int32_t rank);
bool has_output(const Call& call, std::int32_t rank);

// Bytes of this rank's buffers; 0 where it has none. Also 0 for a custom collective: only its program knows.
// REQUIRES: check(call, ranks, rank).
std::int64_t input_bytes(const Call& call, std::int32_t ranks, std::int32_t rank);
std::int64_t output_bytes(const Call& call, std::int32_t ranks, std::int32_t rank);
// The message size as nccl-tests counts it: the larger buffer.
std::int64_t message_bytes(const Call& call, std::int32_t ranks);

// Refuses null pointers, negative or overflowing counts, a root outside the group, a wrong number of counts, a
// bitwise operation on fractions, a negative timeout, and buffers as check_overlap() does.
Status check(const Call& call, std::int32_t ranks, std::int32_t rank);

// Refuses an input and an output that share memory in another way than in place. `input` and `output` are
// what input_bytes() and output_bytes() say.
Status check_overlap(const Call& call, std::int32_t rank, std::int64_t input, std::int64_t output);

// Whether input and output are the same memory in the way that the kind has it.
bool in_place(const Call& call, std::int32_t rank);

// "all_reduce sum f32 x 1024", "broadcast f32 x 8 from rank 2": what errors and the flight recorder show.
std::string describe(const Call& call);

// What all ranks must agree on, in 64 bits; differs when describe() differs (but for chance: 2^-64). Never 0.
std::uint64_t fingerprint(const Call& call);

}  // namespace weft::comm
