// Properties of a call, and which calls are rejected.
#include "weft/communication/comm/call.h"

#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace weft::comm {
namespace {

char memory[64];

Call call_of(Kind kind, std::int64_t count = 8) {
  return {.kind = kind, .input = memory, .output = memory + 32, .count = count};
}

TEST(call, ComputesBufferSizes) {
  EXPECT_EQ(input_bytes(call_of(Kind::all_gather), 4, 1), 32);
  EXPECT_EQ(output_bytes(call_of(Kind::all_gather), 4, 1), 128);
  EXPECT_EQ(input_bytes(call_of(Kind::reduce_scatter), 4, 1), 128);
  EXPECT_EQ(message_bytes(call_of(Kind::reduce_scatter), 4), 128);
  EXPECT_EQ(message_bytes(call_of(Kind::all_reduce), 4), 32);
  EXPECT_EQ(input_bytes(call_of(Kind::broadcast), 4, 1), 0);
  EXPECT_EQ(input_bytes(call_of(Kind::broadcast), 4, 0), 32);
  EXPECT_EQ(output_bytes(call_of(Kind::gather), 4, 2), 0);

  Call uneven = call_of(Kind::all_gather, 0);
  const std::vector<std::int64_t> counts = {3, 0, 5};
  uneven.counts = counts;
  EXPECT_EQ(input_bytes(uneven, 3, 2), 20);
  EXPECT_EQ(output_bytes(uneven, 3, 1), 32);

  Call pairs = call_of(Kind::all_to_all, 0);
  const std::vector<std::int64_t> table = {1, 2, 3, 4};
  pairs.counts = table;
  EXPECT_EQ(input_bytes(pairs, 2, 1), 28);
  EXPECT_EQ(output_bytes(pairs, 2, 1), 24);
  EXPECT_EQ(message_bytes(pairs, 2), 28);
}

TEST(call, DetectsInPlaceBuffers) {
  Call call = call_of(Kind::all_gather, 2);
  EXPECT_FALSE(in_place(call, 1));
  call.output = memory;
  call.input = memory + 8;
  EXPECT_TRUE(in_place(call, 1));
  EXPECT_FALSE(in_place(call, 0));
  call.kind = Kind::reduce_scatter;
  call.input = memory;
  call.output = memory + 8;
  EXPECT_TRUE(in_place(call, 1));
  call.kind = Kind::all_reduce;
  EXPECT_FALSE(in_place(call, 1));
}

std::string refusal(const Call& call, std::int32_t ranks = 4) {
  const Status status = check(call, ranks, 0);
  return status.ok() ? "" : status.error().message;
}

TEST(call, RejectsInvalidCalls) {
  EXPECT_EQ(refusal(call_of(Kind::all_reduce)), "");
  EXPECT_EQ(refusal(call_of(Kind::all_reduce, -1)), "count is negative: -1");
  EXPECT_NE(refusal(call_of(Kind::all_gather, std::numeric_limits<std::int64_t>::max() / 2)), "");
  Call rooted = call_of(Kind::broadcast);
  rooted.root = 4;
  EXPECT_EQ(refusal(rooted), "root is not in the group: 4 of 4 ranks");
  Call empty = call_of(Kind::all_reduce);
  empty.input = nullptr;
  EXPECT_EQ(refusal(empty), "input of all_reduce sum f32 x 8 is null");
  empty.count = 0;
  EXPECT_EQ(refusal(empty), "");
  Call counted = call_of(Kind::all_gather);
  const std::vector<std::int64_t> counts = {1, 2, 3};
  counted.counts = counts;
  EXPECT_EQ(refusal(counted), "all_gather of 4 ranks needs 4 counts, found 3");
  const std::vector<std::int64_t> huge(4, std::numeric_limits<std::int64_t>::max() / 4);
  counted.counts = huge;
  EXPECT_NE(refusal(counted), "");
  Call sent = call_of(Kind::send);
  EXPECT_EQ(refusal(sent), "rank 0 sends to itself");
  sent.peer = 1;
  EXPECT_EQ(refusal(sent), "");
  Call late = call_of(Kind::barrier);
  late.timeout = std::chrono::milliseconds(-1);
  EXPECT_EQ(refusal(late), "timeout is negative: -1 ms");
}

TEST(call, BitwiseOperationsNeedIntegers) {
  Call call = call_of(Kind::all_reduce);
  call.op = ReduceOp::bit_or;
  EXPECT_EQ(refusal(call), "or needs an integer type, not f32");
  call.type = ElementType::u32;
  EXPECT_EQ(refusal(call), "");
  call = call_of(Kind::broadcast);
  call.op = ReduceOp::bit_or;  // ignored
  EXPECT_EQ(refusal(call), "");
}

TEST(call, RejectsPartialOverlap) {
  Call call = call_of(Kind::all_reduce);
  call.output = memory;
  EXPECT_EQ(refusal(call), "");
  call.output = memory + 4;
  EXPECT_EQ(refusal(call), "input and output of all_reduce sum f32 x 8 overlap");
  call.output = memory + 31;
  EXPECT_NE(refusal(call), "");
  call.output = memory + 32;
  EXPECT_EQ(refusal(call), "");
  Call gather = call_of(Kind::all_gather, 2);
  gather.input = memory + 8;
  gather.output = memory;
  EXPECT_EQ(refusal(gather), "input and output of all_gather f32 x 2 overlap") << "rank 0";
  EXPECT_TRUE(check(gather, 4, 1).ok()) << "rank 1";
  // Rank 3 writes nothing.
  gather.kind = Kind::gather;
  EXPECT_TRUE(check(gather, 4, 3).ok());
}

TEST(call, DescribesCalls) {
  EXPECT_EQ(describe(call_of(Kind::all_reduce, 1024)), "all_reduce sum f32 x 1024");
  Call call = call_of(Kind::broadcast);
  call.root = 2;
  EXPECT_EQ(describe(call), "broadcast f32 x 8 from rank 2");
  call.kind = Kind::send;
  call.peer = 3;
  call.priority = Priority::high;
  EXPECT_EQ(describe(call), "send f32 x 8 from rank 2 to rank 3, high priority");
  EXPECT_EQ(describe(call_of(Kind::barrier)), "barrier");
}

TEST(call, FingerprintsDifferWhereDescriptionsDo) {
  std::set<std::string> descriptions;
  std::set<std::uint64_t> fingerprints;
  for (int kind = 0; kind <= static_cast<int>(Kind::custom); ++kind)
    for (std::size_t type = 0; type < device::kElementTypes; ++type)
      for (std::size_t op = 0; op < device::kReduceOps; ++op)
        for (const std::int64_t count : {0, 1, 2, 1 << 20})
          for (const std::int32_t root : {0, 1}) {
            Call call = call_of(static_cast<Kind>(kind), count);
            call.type = static_cast<ElementType>(type);
            call.op = static_cast<ReduceOp>(op);
            call.root = root;
            descriptions.insert(describe(call));
            fingerprints.insert(fingerprint(call));
            if (call.kind != Kind::all_to_all) continue;
            for (const Purpose purpose : {Purpose::scan, Purpose::exclusive_scan, Purpose::user_operation}) {
              call.purpose = purpose;
              descriptions.insert(describe(call));
              fingerprints.insert(fingerprint(call));
            }
          }
  EXPECT_EQ(descriptions.size(), fingerprints.size());
  EXPECT_EQ(fingerprints.count(0), 0U);
}

}  // namespace
}  // namespace weft::comm
