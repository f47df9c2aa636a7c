// The C functions among several ranks, which are threads that connect like separate processes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "weft/communication/comm/weft_comm.h"

namespace {

constexpr int32_t kRanks = 3;

// Prints the library's message when a rank fails.
#define EXPECT_DONE(expression) EXPECT_EQ(expression, WEFT_OK) << weft_last_error()

void on_c_ranks(const char* transport, const std::function<void(weft_comm*, int32_t)>& body) {
  static int meetings = 0;
  const std::string where = fmt::format("c-test-{}-{}", ::getpid(), meetings++);
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      const weft_options options = {transport, 0, 0};
      weft_comm* comm = nullptr;
      ASSERT_EQ(weft_join(where.c_str(), "a secret of this test", 10'000, rank, kRanks, &options, &comm),
                WEFT_OK)
          << weft_last_error();
      body(comm, rank);
      EXPECT_DONE(weft_barrier(comm));
      weft_close(comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void add_up(const void* right, void* left, int64_t items, void* data) {
  for (int64_t i = 0; i < items; ++i) static_cast<int32_t*>(left)[i] += static_cast<const int32_t*>(right)[i];
  ++*static_cast<int*>(data);
}

class CRanks : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transports, CRanks, testing::Values("shm", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(CRanks, RunsEveryCollective) {
  on_c_ranks(GetParam(), [](weft_comm* comm, int32_t rank) {
    const uint16_t bits = static_cast<uint16_t>(1 << rank);
    uint16_t mask = 0, parity = 0;
    EXPECT_DONE(weft_all_reduce(comm, &bits, &mask, 1, WEFT_U16, WEFT_OR));
    EXPECT_EQ(mask, 7);
    EXPECT_DONE(weft_scan(comm, &bits, &parity, 1, WEFT_U16, WEFT_XOR));
    EXPECT_EQ(parity, (1 << (rank + 1)) - 1);
    uint16_t before = 99;
    EXPECT_DONE(weft_exclusive_scan(comm, &bits, &before, 1, WEFT_U16, WEFT_SUM));
    EXPECT_EQ(before, rank == 0 ? 99 : (1 << rank) - 1);

    int32_t mine = rank + 1, sum = 0, all[kRanks] = {}, part = 0;
    EXPECT_DONE(weft_reduce(comm, &mine, &sum, 1, WEFT_I32, WEFT_PRODUCT, 1));
    EXPECT_EQ(sum, rank == 1 ? 6 : 0);
    EXPECT_DONE(weft_gather(comm, &mine, all, 1, WEFT_I32, 2));
    EXPECT_EQ(all[1], rank == 2 ? 2 : 0);
    EXPECT_DONE(weft_scatter(comm, all, &part, 1, WEFT_I32, 2));
    EXPECT_EQ(part, rank + 1);

    int times = 0;
    const weft_operation operation = {add_up, &times, 1};
    int32_t six[6] = {1, 2, 3, 4, 5, 6}, total[6] = {};
    EXPECT_DONE(weft_all_reduce_by(comm, six, total, 6, WEFT_I32, &operation));
    EXPECT_EQ(total[5], 18);
    EXPECT_EQ(times, kRanks - 1) << "once per block of another rank";
    EXPECT_DONE(weft_reduce_by(comm, six, total, 6, WEFT_I32, &operation, 0));
    EXPECT_DONE(weft_scan_by(comm, six, total, 6, WEFT_I32, &operation));
    EXPECT_EQ(total[0], rank + 1);
    EXPECT_DONE(weft_exclusive_scan_by(comm, six, total, 6, WEFT_I32, &operation));
    EXPECT_EQ(total[1], rank == 0 ? 2 : 2 * rank);
    EXPECT_DONE(weft_reduce_scatter_by(comm, six, total, 2, WEFT_I32, &operation));
    EXPECT_EQ(total[0], 3 * (2 * rank + 1));
  });
}

TEST_P(CRanks, SupportsUnequalCounts) {
  on_c_ranks(GetParam(), [](weft_comm* comm, int32_t rank) {
    const int64_t counts[kRanks] = {1, 0, 2};
    const uint8_t mine[3] = {static_cast<uint8_t>(10 + rank), static_cast<uint8_t>(20 + rank), 9};
    uint8_t all[3] = {};
    EXPECT_DONE(weft_all_gatherv(comm, mine, all, counts, WEFT_U8));
    EXPECT_EQ(std::vector<int>(all, all + 3), (std::vector<int>{10, 12, 22}));
    uint8_t gathered[3] = {}, scattered[2] = {}, reduced[2] = {};
    EXPECT_DONE(weft_gatherv(comm, mine, gathered, counts, WEFT_U8, 1));
    EXPECT_EQ(gathered[2], rank == 1 ? 22 : 0);
    EXPECT_DONE(weft_scatterv(comm, all, scattered, counts, WEFT_U8, 0));
    EXPECT_EQ(scattered[0], rank == 0 ? 10 : rank == 2 ? 12 : 0);
    EXPECT_DONE(weft_reduce_scatterv(comm, mine, reduced, counts, WEFT_U8, WEFT_MAX));
    EXPECT_EQ(reduced[0], rank == 0 ? 12 : rank == 2 ? 22 : 0);

    // Rank r sends s elements to rank s, and receives r from each.
    const int64_t give[kRanks] = {0, 1, 2}, take[kRanks] = {rank, rank, rank};
    int16_t taken[6] = {};
    const int16_t given[3] = {static_cast<int16_t>(rank), static_cast<int16_t>(rank),
                              static_cast<int16_t>(rank)};
    EXPECT_DONE(weft_all_to_allv(comm, given, give, taken, take, WEFT_I16));
    for (int32_t i = 0; i < 3 * rank; ++i) EXPECT_EQ(taken[i], i / rank);
  });
}

TEST_P(CRanks, SendsTaggedAndUntaggedMessages) {
  on_c_ranks(GetParam(), [](weft_comm* comm, int32_t rank) {
    const double value = 1.5 * rank;
    if (rank == 0) {
      double got[2] = {};
      weft_received what = {};
      for (int i = 0; i < 2; ++i) {
        EXPECT_DONE(weft_receive_tagged(comm, got, 2, WEFT_F64, WEFT_ANY, 5, 0, &what));
        EXPECT_EQ(got[0], 1.5 * what.from);
        EXPECT_EQ(what.tag, 5);
        EXPECT_EQ(what.count, 1);
        EXPECT_EQ(what.type, WEFT_F64);
      }
      EXPECT_EQ(weft_receive_tagged(comm, got, 2, WEFT_F64, WEFT_ANY, WEFT_ANY, 20, nullptr), WEFT_LATE);
      EXPECT_STREQ(weft_last_error(), "no message arrived within 20 ms");
      int found = 1;
      EXPECT_DONE(weft_probe(comm, WEFT_ANY, WEFT_ANY, &found, &what));
      EXPECT_EQ(found, 0);
      EXPECT_DONE(weft_receive(comm, got, 2, WEFT_F64, 1));
      EXPECT_EQ(got[1], 1.5);
    } else {
      EXPECT_DONE(weft_send_tagged(comm, &value, 1, WEFT_F64, 0, 5, 0));
      const double both[2] = {value, value};
      if (rank == 1) EXPECT_DONE(weft_send(comm, both, 2, WEFT_F64, 0));
    }
  });
}

TEST(CGroup, ReportsTimeoutsAndAbortCodes) {
  on_c_ranks("shm", [](weft_comm* comm, int32_t rank) {
    weft_comm* part = nullptr;
    EXPECT_DONE(weft_split(comm, 0, 0, &part));
    EXPECT_EQ(weft_comm_cause(part), WEFT_GOES_ON);
    EXPECT_DONE(weft_set_timeout(part, 40));
    if (rank != 0) {
      EXPECT_EQ(weft_barrier(part), WEFT_LATE) << weft_last_error();
    } else {
      while (weft_comm_cause(part) == WEFT_GOES_ON) std::this_thread::yield();
    }
    EXPECT_EQ(weft_comm_cause(part), WEFT_TIMEOUT);
    int32_t dead[2] = {}, count = -1;
    EXPECT_DONE(weft_comm_dead_ranks(part, dead, 2, &count));
    EXPECT_EQ(count, 0);
    weft_comm* next = nullptr;
    EXPECT_DONE(weft_shrink(part, &next));
    if (rank == 2) EXPECT_DONE(weft_abort(next, 3, "no more"));
    EXPECT_EQ(weft_barrier(next), WEFT_WORLD);
    EXPECT_STREQ(weft_last_error(), "rank 2 aborted: no more (code 3)");
    EXPECT_EQ(weft_comm_cause(next), WEFT_ABORT);
    weft_close(next);
    weft_close(part);
  });
}

TEST(CGroup, StaysUsableAfterWrongArguments) {
  on_c_ranks("shm", [](weft_comm* comm, int32_t) {
    int32_t data[8] = {}, count = 0;
    int found = 0;
    weft_comm* grown = nullptr;
    const int64_t negative[kRanks] = {1, -1, 1}, ones[kRanks] = {1, 1, 1};
    const weft_operation none = {nullptr, nullptr, 1}, odd = {add_up, &found, 0};
    const auto refused = [](int status, const std::string& says) {
      EXPECT_EQ(status, WEFT_USER) << says;
      EXPECT_NE(std::string(weft_last_error()).find(says), std::string::npos) << weft_last_error();
    };
    refused(weft_all_reduce(comm, data, data, 1, WEFT_U64 + 1, WEFT_SUM), "no such type: 12");
    refused(weft_all_reduce(comm, data, data, 1, WEFT_I32, WEFT_XOR + 1), "no such operation: 8");
    refused(weft_all_reduce(comm, data, data, 1, WEFT_F32, WEFT_AND), "and needs an integer type, not f32");
    refused(weft_all_reduce(comm, data, data + 1, 4, WEFT_I32, WEFT_SUM), "overlap");
    refused(weft_all_reduce(comm, data, data, -1, WEFT_I32, WEFT_SUM), "count is negative: -1");
    refused(weft_broadcast(comm, data, data, 1, WEFT_I32, kRanks), "root is not in the group: 3 of 3 ranks");
    refused(weft_reduce(comm, data, data, 1, WEFT_I32, WEFT_SUM, -1), "root is not in the group");
    refused(weft_gather(comm, nullptr, data, 1, WEFT_I32, 0), "is null");
    refused(weft_send(comm, data, 1, WEFT_I32, 9), "receiver is not in the group");
    refused(weft_receive(comm, data, 1, WEFT_I32, -3), "sender is not in the group");
    refused(weft_scan(comm, data, data, 1, WEFT_I32, WEFT_AVG), "avg is not defined for scan");
    refused(weft_scan(comm, data, data, 1, -1, WEFT_SUM), "no such type: -1");
    refused(weft_scan(comm, data, data, 1, WEFT_I32, 77), "no such operation: 77");
    refused(weft_scan(nullptr, data, data, 1, WEFT_I32, WEFT_SUM), "comm is NULL");
    refused(weft_all_gatherv(comm, data, data, nullptr, WEFT_I32), "counts is NULL");
    refused(weft_all_gatherv(comm, data, data + 1, negative, WEFT_I32), "count is negative: -1");
    refused(weft_all_to_allv(comm, data, nullptr, data + 4, ones, WEFT_I32), "give is NULL");
    refused(weft_all_to_allv(comm, data, ones, data + 4, nullptr, WEFT_I32), "take is NULL");
    refused(weft_all_reduce_by(comm, data, data, 1, WEFT_I32, nullptr), "op is NULL");
    refused(weft_all_reduce_by(comm, data, data, 1, WEFT_I32, &none), "combine is NULL");
    refused(weft_all_reduce_by(comm, data, data, 1, WEFT_I32, &odd), "an item has at least one element: 0");
    refused(weft_send_tagged(comm, data, 1, WEFT_I32, 1, -1, 0), "a tag is 0 or more: -1");
    refused(weft_send_tagged(comm, data, 1, WEFT_I32, kRanks, 0, 0), "receiver is not in the group");
    refused(weft_receive_tagged(comm, nullptr, 1, WEFT_I32, 0, 0, 0, nullptr), "null");
    refused(weft_receive_tagged(comm, data, 1, 44, 0, 0, 0, nullptr), "no such type: 44");
    refused(weft_receive_tagged(comm, data, 1, WEFT_I32, 0, 0, -5, nullptr), "timeout is negative: -5 ms");
    refused(weft_probe(comm, 0, 0, nullptr, nullptr), "found is NULL");
    refused(weft_comm_dead_ranks(comm, nullptr, 1, &count), "ranks is NULL");
    refused(weft_comm_dead_ranks(comm, data, -1, &count), "room is negative: -1");
    refused(weft_set_timeout(comm, -1), "timeout is negative");
    refused(weft_abort(nullptr, 0, nullptr), "comm is NULL");
    refused(weft_grow(comm, 0, "somewhere", "a secret of this test", 0, &grown), "found 0");
    refused(weft_grow(comm, 1, nullptr, nullptr, 0, &grown), "where is NULL");
    refused(weft_join("", "a secret of this test", 0, 0, 1, nullptr, &grown),
            "the rendezvous address is empty");
    refused(weft_join("x", "a secret of this test", 0, 4, 4, nullptr, &grown), "there is no rank 4 of 4");
    refused(weft_wait_for(nullptr, 1, &found), "work is NULL");
    weft_call call = {};
    call.input = call.output = data;
    call.count = 1;
    call.type = WEFT_I32;
    call.timeout_ms = -1;
    refused(weft_run(comm, &call), "timeout is negative: -1 ms");
    EXPECT_EQ(weft_comm_cause(nullptr), WEFT_GOES_ON);
  });
}

}  // namespace
