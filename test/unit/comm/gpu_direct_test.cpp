// What collectives among ranks on one GPU read and write, tested in host memory.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "weft/communication/comm/gpu/chunk_source.h"
#include "weft/communication/comm/gpu/gpu_direct.h"

namespace weft::comm::gpu {
namespace {

using Numbers = std::vector<float>;

// As the kernels do: element by element, through an intermediate buffer where the plan has one.
void apply(const DirectPlan& plan) {
  std::vector<Numbers> between;
  const auto sum = [](const DirectPiece& piece) {
    Numbers all(static_cast<std::size_t>(piece.elements));
    for (const std::byte* const source : piece.sources)
      for (std::size_t i = 0; i < all.size(); ++i) {
        float value = 0;
        std::memcpy(&value, source + i * sizeof value, sizeof value);
        all[i] += value;
      }
    return all;
  };
  const auto put = [](const DirectPiece& piece, const Numbers& numbers) {
    for (std::byte* const target : piece.targets)
      std::memcpy(target, numbers.data(), numbers.size() * sizeof(float));
  };
  for (const DirectPiece& piece : plan.pieces) {
    between.push_back(sum(piece));
    if (!plan.through) put(piece, between.back());
  }
  if (plan.through)
    for (std::size_t i = 0; i < plan.pieces.size(); ++i) put(plan.pieces[i], between[i]);
}

Numbers filled(std::size_t count, float first) {
  Numbers numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

std::vector<Call> calls_of(Kind kind, std::vector<Numbers>& inputs, std::vector<Numbers>& outputs,
                           std::int64_t count) {
  std::vector<Call> calls;
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    Call call;
    call.kind = kind;
    call.count = count;
    call.input = inputs[rank].data();
    call.output = outputs[rank].data();
    calls.push_back(call);
  }
  return calls;
}

TEST(GpuDirect, AllReducesOutOfPlaceAndInPlace) {
  std::vector<Numbers> inputs = {filled(5, 0), filled(5, 10), filled(5, 100)}, outputs(3, Numbers(5));
  const auto plan = direct_plan(calls_of(Kind::all_reduce, inputs, outputs, 5));
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->through);
  apply(*plan);
  const Numbers expected = {110, 113, 116, 119, 122};
  for (const Numbers& output : outputs) EXPECT_EQ(output, expected);

  // Each element is read by the rank that writes it, so no intermediate buffer is needed.
  const auto in_place = direct_plan(calls_of(Kind::all_reduce, inputs, inputs, 5));
  EXPECT_FALSE(in_place->through);
  apply(*in_place);
  for (const Numbers& input : inputs) EXPECT_EQ(input, expected);
}

TEST(GpuDirect, ScattersAndGathersBlocksOfDifferentLengths) {
  const std::array<std::int64_t, 3> counts = {2, 0, 3};
  std::vector<Numbers> inputs = {filled(5, 0), filled(5, 10), filled(5, 100)};
  std::vector<Numbers> outputs = {Numbers(2), Numbers(1), Numbers(3)};
  std::vector<Call> calls = calls_of(Kind::reduce_scatter, inputs, outputs, 0);
  for (Call& call : calls) call.counts = counts;
  apply(*direct_plan(calls));
  EXPECT_EQ(outputs[0], (Numbers{110, 113}));
  EXPECT_EQ(outputs[1], (Numbers{0}));
  EXPECT_EQ(outputs[2], (Numbers{116, 119, 122}));

  std::vector<Numbers> whole(3, Numbers(5));
  calls = calls_of(Kind::all_gather, outputs, whole, 0);
  for (Call& call : calls) call.counts = counts;
  apply(*direct_plan(calls));
  for (const Numbers& one : whole) EXPECT_EQ(one, (Numbers{110, 113, 116, 119, 122}));
}

TEST(GpuDirect, InPlaceAllGatherReadsItsOwnBlock) {
  std::vector<Numbers> memory = {{1, 2, 0, 0}, {0, 0, 3, 4}};
  std::vector<Call> calls = calls_of(Kind::all_gather, memory, memory, 2);
  calls[1].input = memory[1].data() + 2;
  const auto plan = direct_plan(calls);
  EXPECT_FALSE(plan->through);
  apply(*plan);
  EXPECT_EQ(memory[0], (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(memory[1], (Numbers{1, 2, 3, 4}));
}

TEST(GpuDirect, InPlaceAllToAllUsesAnIntermediateBuffer) {
  std::vector<Numbers> inputs = {{1, 2, 3, 4}, {5, 6, 7, 8}}, outputs(2, Numbers(4));
  const auto apart = direct_plan(calls_of(Kind::all_to_all, inputs, outputs, 2));
  EXPECT_FALSE(apart->through);
  apply(*apart);
  const auto in_place = direct_plan(calls_of(Kind::all_to_all, inputs, inputs, 2));
  EXPECT_TRUE(in_place->through);
  apply(*in_place);
  for (const auto& result : {outputs, inputs}) {
    EXPECT_EQ(result[0], (Numbers{1, 2, 5, 6}));
    EXPECT_EQ(result[1], (Numbers{3, 4, 7, 8}));
  }
}

TEST(GpuDirect, AStepOfARingIsASparseAllToAll) {
  // Each rank sends 3 numbers to the next.
  const std::array<std::int64_t, 9> counts = {0, 3, 0, 0, 0, 3, 3, 0, 0};
  std::vector<Numbers> inputs = {filled(3, 0), filled(3, 10), filled(3, 20)}, outputs(3, Numbers(3));
  std::vector<Call> calls = calls_of(Kind::all_to_all, inputs, outputs, 3);
  for (Call& call : calls) call.counts = counts;
  const auto plan = direct_plan(calls);
  EXPECT_EQ(plan->pieces.size(), 3u);
  apply(*plan);
  EXPECT_EQ(outputs[0], inputs[2]);
  EXPECT_EQ(outputs[1], inputs[0]);
  EXPECT_EQ(outputs[2], inputs[1]);
}

TEST(GpuDirect, BroadcastsAndReduces) {
  std::vector<Numbers> inputs = {filled(2, 0), filled(2, 10)}, outputs(2, Numbers(2));
  std::vector<Call> calls = calls_of(Kind::broadcast, inputs, outputs, 2);
  for (Call& call : calls) call.root = 1;
  apply(*direct_plan(calls));
  EXPECT_EQ(outputs[0], inputs[1]);
  EXPECT_EQ(outputs[1], inputs[1]);
  calls = calls_of(Kind::reduce, inputs, outputs, 2);
  outputs[1] = {0, 0};
  apply(*direct_plan(calls));
  EXPECT_EQ(outputs[0], (Numbers{10, 12}));
  EXPECT_EQ(outputs[1], (Numbers{0, 0}));
}

TEST(GpuDirect, HasNoPlanForBarriersAndCustomCollectives) {
  std::vector<Numbers> memory = {{1}, {2}};
  EXPECT_FALSE(direct_plan(calls_of(Kind::barrier, memory, memory, 0)));
  EXPECT_FALSE(direct_plan(calls_of(Kind::custom, memory, memory, 1)));
}

// The kernel declares the tables itself.
TEST(GpuDirect, TablesHaveTheLayoutOfTheKernel) {
  EXPECT_EQ(sizeof(ChunkStep), 32u);
  EXPECT_EQ(sizeof(ChunkPlaces), 32u);
  EXPECT_EQ(sizeof(ChunkBlock), 16u);
  EXPECT_EQ(offsetof(ChunkStep, first), 24u);
  const std::string text = chunk_source(ElementType::bf16, ReduceOp::max, 256, 4);
  EXPECT_NE(text.find("__launch_bounds__(256, 4)"), std::string::npos);
  EXPECT_NE(text.find("typedef weft_bf16 weft_element;"), std::string::npos);
  EXPECT_EQ(text.find("{{"), std::string::npos);
}

}  // namespace
}  // namespace weft::comm::gpu
