// Collectives through the C functions of weft_comm.h, in a group of one rank. test/install runs
// four ranks from C.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "weft/communication/comm/weft_comm.h"

namespace {

class CComm : public testing::Test {
 protected:
  void SetUp() override {
    setenv("RANK", "0", 1);
    setenv("WORLD_SIZE", "1", 1);
    ASSERT_EQ(weft_connect("shm", &comm_), WEFT_OK) << weft_last_error();
  }
  void TearDown() override {
    weft_close(comm_);
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
  }

  static weft_call sum_of(const float* input, float* output, std::int64_t count) {
    weft_call call = {};
    call.kind = WEFT_ALL_REDUCE;
    call.input = input;
    call.output = output;
    call.count = count;
    call.type = WEFT_F32;
    call.op = WEFT_SUM;
    call.priority = WEFT_NORMAL;
    return call;
  }

  weft_comm* comm_ = nullptr;
};

TEST_F(CComm, ReducesInAGroupOfOne) {
  EXPECT_EQ(weft_rank(comm_), 0);
  EXPECT_EQ(weft_size(comm_), 1);
  const float input[2] = {1, 2};
  float output[2] = {};
  ASSERT_EQ(weft_all_reduce(comm_, input, output, 2, WEFT_F32, WEFT_SUM), WEFT_OK) << weft_last_error();
  EXPECT_EQ(output[0], 1);
  EXPECT_EQ(output[1], 2);
  EXPECT_EQ(weft_barrier(comm_), WEFT_OK);
}

TEST_F(CComm, ReportsWhenAStartedCallIsDone) {
  const float input = 3;
  float output = 0;
  const weft_call call = sum_of(&input, &output, 1);
  int completion = -1;
  const weft_done done = [](int status, void* data) { *static_cast<int*>(data) = status; };
  weft_work* work = nullptr;
  ASSERT_EQ(weft_start(comm_, &call, done, &completion, &work), WEFT_OK) << weft_last_error();
  EXPECT_EQ(weft_wait(work), WEFT_OK);
  EXPECT_EQ(weft_is_done(work), 1);
  EXPECT_EQ(completion, WEFT_OK);
  EXPECT_EQ(output, 3);
  EXPECT_EQ(weft_cancel(work), 0) << "too late";
  weft_forget(work);
}

// 256 truncated to a byte would be WEFT_ALL_REDUCE.
TEST_F(CComm, RejectsUnknownEnumValues) {
  float number = 0;
  struct Case {
    int weft_call::*member;
    int value;
    const char* says;
  };
  for (const Case& it :
       {Case{&weft_call::kind, 256, "no such kind of call: 256"},
        Case{&weft_call::kind, WEFT_BARRIER + 1, "no such kind of call: 10"},
        Case{&weft_call::type, 256, "no such type: 256"}, Case{&weft_call::op, -1, "no such operation: -1"},
        Case{&weft_call::priority, 3, "no such priority: 3"}}) {
    weft_call call = sum_of(&number, &number, 1);
    call.*it.member = it.value;
    EXPECT_EQ(weft_run(comm_, &call), WEFT_USER);
    EXPECT_STREQ(weft_last_error(), it.says);
    weft_work* work = nullptr;
    EXPECT_EQ(weft_start(comm_, &call, nullptr, nullptr, &work), WEFT_USER);
    EXPECT_EQ(work, nullptr);
  }
  weft_call call = sum_of(&number, &number, 1);
  call.counts_length = 2;
  EXPECT_EQ(weft_run(comm_, &call), WEFT_USER);
  EXPECT_STREQ(weft_last_error(), "counts of 2 elements expected, none given");
}

TEST_F(CComm, RejectsNullHandles) {
  EXPECT_EQ(weft_barrier(nullptr), WEFT_USER);
  EXPECT_STREQ(weft_last_error(), "comm is NULL");
  EXPECT_EQ(weft_run(comm_, nullptr), WEFT_USER);
  EXPECT_STREQ(weft_last_error(), "call is NULL");
  EXPECT_EQ(weft_wait(nullptr), WEFT_USER);
  EXPECT_EQ(weft_allocate(comm_, 8, nullptr), WEFT_USER);
  EXPECT_EQ(weft_split(comm_, 0, 0, nullptr), WEFT_USER);
  EXPECT_EQ(weft_rank(nullptr), -1);
  weft_close(nullptr);
  weft_forget(nullptr);
}

TEST(CConnect, RejectsAnUnknownTransport) {
  weft_comm* comm = nullptr;
  EXPECT_EQ(weft_connect("carrier_pigeon", &comm), WEFT_USER);
  EXPECT_EQ(std::string(weft_last_error()).rfind("no such transport: carrier_pigeon", 0), 0U);
  EXPECT_EQ(comm, nullptr);
}

}  // namespace
