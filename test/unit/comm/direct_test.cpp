// Direct collectives against a plain reference that combines the same sources in rank order. The
// results must be bitwise equal for any algorithm, timing and buffer placement.
#include "weft/communication/comm/direct/direct.h"
#include "weft/communication/comm/direct/direct_layout.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include "thorough.h"
#include "weft/communication/transport/peer_memory.h"
#include "weft/device/cpu/reduction.h"

namespace weft::comm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kDeadline{60};  // reached only if a test hangs
const int kCalls = thorough_or(80, 32);        // random calls per number of ranks and kind of memory

// Small, so that few bytes make many fragments and reuse every slot.
DirectTuning small_tuning() {
  return {.mailbox_bytes = 256,
          .fragment_bytes = 1024,
          .least_fragment_bytes = 256,
          .one_shot_bytes = 700,
          .fragments_ahead = 2,
          .in_place_bytes = 100};
}

enum class Memory : std::uint8_t { own, allocated, mixed, one_process };

constexpr std::size_t kHeapBytes = 1 << 20;

// Ranks as threads, or as processes that share a segment.
struct World {
  World(std::int32_t all, Memory kind, const DirectTuning& how = small_tuning())
      : ranks(all), memory(kind), tuning(how) {
    segment =
        transport::Segment::create(DirectGroup::segment_bytes(ranks, tuning), transport::Backing::sparse)
            .value();
    for (std::int32_t rank = 0; rank < ranks; ++rank)
      heaps.push_back(transport::Segment::create(kHeapBytes, transport::Backing::sparse).value());
  }

  std::unique_ptr<DirectGroup> attach(std::int32_t rank) const {
    auto mapped = transport::Segment::map(dup(segment.descriptor()), segment.size()).value();
    auto group = DirectGroup::attach(std::move(mapped), rank, ranks, tuning, memory == Memory::one_process);
    for (std::int32_t other = 0; other < ranks; ++other) {
      const auto& heap = heaps[static_cast<std::size_t>(other)];
      group->add_heap(other, 0, transport::Segment::map(dup(heap.descriptor()), heap.size()).value());
    }
    return group;
  }

  using Body = std::function<void(std::int32_t rank, DirectGroup& group)>;
  void run_threads(const Body& body) const {
    std::vector<std::thread> threads;
    for (std::int32_t rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        const auto group = attach(rank);
        body(rank, *group);
        // No rank waits for a rank that gave up.
        if (::testing::Test::HasFailure()) group->poison(rank, 99);
      });
    for (auto& thread : threads) thread.join();
  }
  // A process that finds an error has failed test assertions; its exit code reports it.
  void run_processes(const Body& body) const {
    std::vector<pid_t> children;
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(static_cast<unsigned>(kDeadline.count()));
        body(rank, *attach(rank));
        _exit(::testing::Test::HasFailure() ? 1 : 0);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
  }

  std::int32_t ranks;
  Memory memory;
  DirectTuning tuning;
  transport::Segment segment;
  std::vector<transport::Segment> heaps;
};

// Element `index` of `rank`'s input to call `number`: small integers that differ everywhere.
void put_element(ElementType type, std::byte* at, std::int64_t number, std::int32_t rank,
                 std::int64_t index) {
  const int value = static_cast<int>((number * 7 + rank * 5 + index * 3) % 7) + 1;
  constexpr std::uint16_t kHalves[8] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
  const auto put = [at](auto number_of_type) { std::memcpy(at, &number_of_type, sizeof number_of_type); };
  switch (type) {
    case ElementType::f64: return put(value + 0.1);
    case ElementType::f32: return put(static_cast<float>(value) + 0.1f);
    case ElementType::f16: return put(kHalves[value]);
    case ElementType::bf16: {
      const float wide = static_cast<float>(value);
      std::uint32_t bits;
      std::memcpy(&bits, &wide, sizeof bits);
      return put(static_cast<std::uint16_t>(bits >> 16));
    }
    case ElementType::i8: return put(static_cast<std::int8_t>(value));
    case ElementType::i32: return put(static_cast<std::int32_t>(value * 1000 + rank));
    case ElementType::i64: return put(static_cast<std::int64_t>(value) << 33);
    case ElementType::u8: return put(static_cast<std::uint8_t>(value));
    case ElementType::i16: return put(static_cast<std::int16_t>(-value));
    case ElementType::u16: return put(static_cast<std::uint16_t>(value << 12));
    case ElementType::u32: return put(static_cast<std::uint32_t>(value) << 29);
    case ElementType::u64: return put(static_cast<std::uint64_t>(value) << 61);
  }
}

using Bytes = std::vector<std::byte>;

Bytes input_of(const Call& call, std::int32_t ranks, std::int32_t rank, std::int64_t number) {
  Bytes bytes(static_cast<std::size_t>(input_bytes(call, ranks, rank)));
  const std::size_t element = device::size_of(call.type);
  for (std::size_t i = 0; i * element < bytes.size(); ++i)
    put_element(call.type, bytes.data() + i * element, number, rank, static_cast<std::int64_t>(i));
  return bytes;
}

std::int64_t block(const Call& call, std::int32_t from, std::int32_t to, std::int32_t ranks) {
  if (call.counts.empty()) return call.count;
  if (call.kind == Kind::all_to_all) return call.counts[static_cast<std::size_t>(from * ranks + to)];
  return call.counts[static_cast<std::size_t>(
      call.kind == Kind::all_gather || call.kind == Kind::gather ? from : to)];
}

Bytes combined(const Call& call, const std::vector<Bytes>& inputs, std::size_t first, std::size_t elements) {
  const std::size_t element = device::size_of(call.type);
  Bytes result(elements * element);
  std::vector<const void*> terms;
  for (const Bytes& input : inputs) terms.push_back(input.data() + first * element);
  if (elements == 0) return result;
  device::cpu::reduce(call.type, call.op, result.data(), terms, elements);
  if (call.op == ReduceOp::avg)
    device::cpu::finish_average(call.type, result.data(), elements, static_cast<std::int64_t>(inputs.size()));
  return result;
}

// The result that `rank` must get: the definition in collective.h, word for word.
Bytes expected_of(const Call& call, std::int32_t ranks, std::int32_t rank, std::int64_t number) {
  if (!has_output(call, rank)) return {};
  std::vector<Bytes> inputs;
  for (std::int32_t other = 0; other < ranks; ++other) inputs.push_back(input_of(call, ranks, other, number));
  const std::size_t element = device::size_of(call.type);
  const auto before = [&](std::int32_t from,
                          std::int32_t to) {  // elements before the block for `to` in from's input
    std::int64_t total = 0;
    for (std::int32_t other = 0; other < to; ++other) total += block(call, from, other, ranks);
    return static_cast<std::size_t>(total);
  };
  Bytes result;
  const auto append = [&](std::int32_t from, std::size_t first, std::int64_t elements) {
    const auto begin =
        inputs[static_cast<std::size_t>(from)].begin() + static_cast<std::ptrdiff_t>(first * element);
    result.insert(result.end(), begin, begin + elements * static_cast<std::int64_t>(element));
  };
  switch (call.kind) {
    case Kind::all_reduce:
    case Kind::reduce: return combined(call, inputs, 0, static_cast<std::size_t>(call.count));
    case Kind::reduce_scatter:
      return combined(call, inputs, before(0, rank), static_cast<std::size_t>(block(call, 0, rank, ranks)));
    case Kind::all_gather:
    case Kind::gather:
      for (std::int32_t from = 0; from < ranks; ++from) append(from, 0, block(call, from, rank, ranks));
      return result;
    case Kind::all_to_all:
      for (std::int32_t from = 0; from < ranks; ++from)
        append(from, before(from, rank), block(call, from, rank, ranks));
      return result;
    case Kind::broadcast:
    case Kind::send: append(call.root, 0, call.count); return result;
    case Kind::scatter:
      append(call.root, before(call.root, rank), block(call, call.root, rank, ranks));
      return result;
    default: return {};
  }
}

// One rank's buffers of one call.
struct Buffers {
  // `room`: where to allocate them; null: the rank's own memory.
  Buffers(Call& call, std::int32_t ranks, std::int32_t rank, std::int64_t number, bool in_place,
          std::byte* room)
      : expected(expected_of(call, ranks, rank, number)) {
    const Bytes data = input_of(call, ranks, rank, number);
    const std::size_t out = expected.size();
    own.assign(data.size() + out + 64, std::byte{0x55});
    std::byte* const begin = room != nullptr ? room : own.data();
    std::byte* input = begin;
    output = begin + data.size();
    if (in_place && has_input(call, rank) && has_output(call, rank)) {
      std::size_t skip = 0;
      for (std::int32_t other = 0; other < rank && collective::has_one_block(call.kind); ++other)
        skip += static_cast<std::size_t>(block(call, other, other, ranks)) * device::size_of(call.type);
      const bool output_larger = call.kind == Kind::all_gather || call.kind == Kind::gather;
      output = output_larger ? begin : begin + skip;
      input = output_larger ? begin + skip : begin;
    } else {
      std::memset(begin, 0x55, data.size() + out);
    }
    if (!data.empty()) std::memcpy(input, data.data(), data.size());
    call.input = input;
    call.output = output;
  }
  bool right() const {
    return expected.empty() || std::memcmp(output, expected.data(), expected.size()) == 0;
  }

  Bytes expected, own;
  std::byte* output = nullptr;
};

Status drive(DirectGroup& group, Operation& operation, std::minstd_rand& random) {
  const auto end = Clock::now() + kDeadline;
  for (;;) {
    const std::uint32_t seen = group.signal();
    switch (operation.step()) {
      case Progress::done: return {};
      case Progress::failed: return operation.error();
      case Progress::moved: break;
      case Progress::blocked:
        if (random() % 3 == 0) sched_yield();
        if (random() % 3 == 0) group.wait(seen, std::chrono::milliseconds(50));
    }
    if (random() % 16 == 0) sched_yield();
    if (Clock::now() > end) {
      group.poison(group.rank(), 99);
      return environment_error("past the deadline");
    }
  }
}

Status run(DirectGroup& group, const Call& call, std::uint64_t number, std::minstd_rand& random,
           std::optional<DirectAlgorithm> way = {}) {
  Operation* const operation = group.start(call, number, way);
  const Status status = drive(group, *operation, random);
  group.finish(operation);
  return status;
}

// The same sequence of calls on every rank, from one seed.
struct RandomCalls {
  RandomCalls(std::int32_t all, unsigned seed) : ranks(all), random(seed) {}

  struct Drawn {
    Call call;
    std::vector<std::int64_t> counts;
    bool in_place = false;
    std::optional<DirectAlgorithm> way;
  };
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  }

  Drawn draw() {
    constexpr Kind kKinds[] = {Kind::all_reduce, Kind::all_reduce, Kind::reduce_scatter,
                               Kind::all_gather, Kind::all_to_all, Kind::broadcast,
                               Kind::reduce,     Kind::gather,     Kind::scatter,
                               Kind::barrier,    Kind::send};
    Drawn drawn;
    Call& call = drawn.call;
    do call.kind = kKinds[below(std::size(kKinds))];
    while (call.kind == Kind::send && ranks == 1);
    call.type = static_cast<ElementType>(below(device::kElementTypes));
    do call.op = static_cast<ReduceOp>(below(device::kReduceOps));
    while (device::is_bitwise(call.op) && !device::is_whole(call.type));
    call.root = static_cast<std::int32_t>(below(ranks));
    call.peer = static_cast<std::int32_t>((call.root + 1 + below(std::max(ranks - 1, 1))) % ranks);
    constexpr std::int64_t kMost[] = {1, 3, 40, 300, 3000};
    const std::int64_t most = kMost[below(std::size(kMost))];
    call.count = below(most + 1);
    drawn.in_place = below(2) == 0;
    if (below(3) == 0) drawn.way = static_cast<DirectAlgorithm>(below(std::int64_t{kDirectAlgorithms}));
    if (below(3) == 0 &&
        (collective::has_one_block(call.kind) || (call.kind == Kind::all_to_all && !drawn.in_place))) {
      drawn.counts.resize(static_cast<std::size_t>(call.kind == Kind::all_to_all ? ranks * ranks : ranks));
      for (auto& count : drawn.counts) count = below(most + 1);
    }
    return drawn;
  }

  std::int32_t ranks;
  std::minstd_rand random;
};

bool lies_in_heap(const World& world, std::int32_t rank, std::int64_t number) {
  return world.memory == Memory::allocated || (world.memory == Memory::mixed && (number + rank) % 3 == 0);
}

void run_random_calls(const World& world, std::int32_t rank, DirectGroup& group, unsigned seed, int calls) {
  RandomCalls sequence(world.ranks, seed);
  std::minstd_rand pace(seed * 31 + static_cast<unsigned>(rank));
  for (int number = 0; number < calls; ++number) {
    auto drawn = sequence.draw();
    drawn.call.counts = drawn.counts;
    std::byte* const room =
        lies_in_heap(world, rank, number) ? world.heaps[static_cast<std::size_t>(rank)].data() : nullptr;
    const Buffers buffers(drawn.call, world.ranks, rank, number, drawn.in_place, room);
    const Status status = run(group, drawn.call, static_cast<std::uint64_t>(number), pace, drawn.way);
    ASSERT_TRUE(status.ok()) << status.error().message;
    ASSERT_TRUE(buffers.right()) << "call " << number << ", rank " << rank << " of " << world.ranks << ": "
                                 << describe(drawn.call) << (drawn.in_place ? " in place" : "");
  }
}

TEST(Direct, GivesTheReferencesBitsAmongThreads) {
  unsigned seed = 1;
  for (std::int32_t ranks = 1; ranks <= 5; ++ranks)
    for (const Memory memory : {Memory::own, Memory::allocated, Memory::mixed, Memory::one_process}) {
      const World world(ranks, memory);
      ++seed;
      world.run_threads(
          [&](std::int32_t rank, DirectGroup& group) { run_random_calls(world, rank, group, seed, kCalls); });
    }
}

TEST(Direct, GivesTheReferencesBitsAmongProcesses) {
  for (std::int32_t ranks = 2; ranks <= 4; ++ranks) {
    const World world(ranks, Memory::mixed);
    world.run_processes(
        [&](std::int32_t rank, DirectGroup& group) { run_random_calls(world, rank, group, 77, 2 * kCalls); });
  }
}

// If the kernel permits it; else through slots.
TEST(Direct, GivesTheReferencesBitsWhereMemoryIsReadThroughTheKernel) {
  DirectTuning tuning = small_tuning();
  tuning.single_copy_bytes = 1;
  for (std::int32_t ranks = 2; ranks <= 4; ++ranks) {
    const World world(ranks, Memory::own, tuning);
    world.run_processes(
        [&](std::int32_t rank, DirectGroup& group) { run_random_calls(world, rank, group, 78, 2 * kCalls); });
  }
  const World threads(3, Memory::own, tuning);
  threads.run_threads(
      [&](std::int32_t rank, DirectGroup& group) { run_random_calls(threads, rank, group, 79, kCalls); });
}

TEST(Direct, GivesTheReferencesBitsWithNonTemporalStores) {
  DirectTuning tuning = small_tuning();
  tuning.non_temporal_bytes = 1;
  for (std::int32_t ranks = 2; ranks <= 4; ++ranks)
    for (const Memory memory : {Memory::own, Memory::allocated, Memory::mixed}) {
      const World world(ranks, memory, tuning);
      world.run_threads([&](std::int32_t rank, DirectGroup& group) {
        run_random_calls(world, rank, group, 80 + static_cast<unsigned>(ranks), kCalls);
      });
    }
}

// Long enough for every algorithm to be tried. Ranks place their buffers differently, so that some
// are read in place while others are not. Results must not change.
TEST(Direct, LongTrialsWithMixedBuffersDoNotChangeResults) {
  const World world(3, Memory::own, DirectTuning{});
  std::vector<transport::Segment> heaps;
  for (int rank = 0; rank < 3; ++rank)
    heaps.push_back(transport::Segment::create(32 << 20, transport::Backing::sparse).value());
  world.run_processes([&](std::int32_t rank, DirectGroup& group) {
    for (std::int32_t other = 0; other < 3; ++other) {
      const auto& heap = heaps[static_cast<std::size_t>(other)];
      group.add_heap(other, 1, transport::Segment::map(dup(heap.descriptor()), heap.size()).value());
    }
    std::minstd_rand pace(static_cast<unsigned>(rank));
    for (std::int64_t number = 0; number < 36; ++number) {
      const auto kind = std::array{Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter,
                                   Kind::broadcast}[static_cast<std::size_t>(number % 4)];
      const std::int64_t count = kind == Kind::all_gather ? 90'001 : 262'145;
      Call call{.kind = kind, .count = count, .type = ElementType::f64};
      const bool is_reached = number % 3 != 0 && (rank == 1 || number % 5 == 0);
      std::byte* const room = is_reached ? heaps[static_cast<std::size_t>(rank)].data() : nullptr;
      const Buffers buffers(call, 3, rank, number, false, room);
      ASSERT_TRUE(run(group, call, static_cast<std::uint64_t>(number), pace).ok());
      ASSERT_TRUE(buffers.right()) << "call " << number;
    }
  });
}

// Blocks long enough for the algorithm to be chosen by measurement. The choice depends on the
// machine.
TEST(Direct, LongBlocksGiveEqualResultsByEitherAlgorithm) {
  for (const std::int64_t single_copy_bytes : {std::int64_t{0}, std::int64_t{-1}}) {
    DirectTuning tuning;
    tuning.single_copy_bytes = single_copy_bytes;
    const World world(3, Memory::own, tuning);
    world.run_processes([&](std::int32_t rank, DirectGroup& group) {
      std::minstd_rand pace(static_cast<unsigned>(rank));
      for (std::int64_t number = 0; number < 6; ++number) {
        Call call{.kind = number % 2 == 0 ? Kind::all_to_all : Kind::all_gather,
                  .count = 70'001,
                  .type = ElementType::u8};
        const Buffers buffers(call, 3, rank, number, false, nullptr);
        Operation* const operation = group.start(call, static_cast<std::uint64_t>(number));
        if (single_copy_bytes < 0) {
          EXPECT_EQ(operation->algorithm(), name(DirectAlgorithm::one_shot));
        }
        ASSERT_TRUE(drive(group, *operation, pace).ok());
        group.finish(operation);
        ASSERT_TRUE(buffers.right());
      }
    });
  }
}

// A reduce_scatter reads its operands through the kernel; an all_reduce uses slots.
TEST(Direct, ReduceScatterReadsThroughTheKernel) {
  transport::PeerMemory memory;
  memory.meet(memory.introduction());
  if (!memory.reaches(0)) GTEST_SKIP() << "this kernel lets no process read another's memory";
  DirectTuning tuning;
  tuning.single_copy_bytes = 1;
  for (const std::int32_t ranks : {2, 3}) {
    const World world(ranks, Memory::own, tuning);
    world.run_processes([&](std::int32_t rank, DirectGroup& group) {
      std::minstd_rand pace(static_cast<unsigned>(rank));
      for (std::int64_t number = 0; number < 10; ++number) {
        const bool scatters = number % 2 != 0;
        Call call{.kind = scatters ? Kind::reduce_scatter : Kind::all_reduce,
                  .count = number >= 8 ? 1'100'001 : 30'001,
                  .type = ElementType::f32};
        const Buffers buffers(call, ranks, rank, number, number % 4 < 2, nullptr);
        Operation* const operation = group.start(call, static_cast<std::uint64_t>(number));
        if (number > 2) {
          EXPECT_EQ(operation->algorithm(),
                    name(scatters ? DirectAlgorithm::single_copy : DirectAlgorithm::two_shot));
        }
        ASSERT_TRUE(drive(group, *operation, pace).ok());
        group.finish(operation);
        ASSERT_TRUE(buffers.right()) << "call " << number;
      }
    });
  }
}

// Both copy methods are tried on real calls; the faster one is kept and monitored. All ranks choose
// the same, and results do not change.
TEST(Direct, TrialsDoNotChangeResults) {
  const World world(3, Memory::own, DirectTuning{});
  world.run_processes([&](std::int32_t rank, DirectGroup& group) {
    std::minstd_rand pace(static_cast<unsigned>(rank));
    for (std::int64_t number = 0; number < 480; ++number) {
      Call call{.kind = static_cast<Kind>(number % 4), .count = 9'001, .type = ElementType::i32};
      const Buffers buffers(call, 3, rank, number, false, nullptr);
      ASSERT_TRUE(run(group, call, static_cast<std::uint64_t>(number), pace).ok());
      ASSERT_TRUE(buffers.right()) << "call " << number;
    }
  });
}

// Ranks that only receive also find out what they can read; otherwise a broadcast would never be
// read through the kernel.
TEST(Direct, BroadcastReadsThroughTheKernel) {
  transport::PeerMemory memory;
  memory.meet(memory.introduction());
  if (!memory.reaches(0)) GTEST_SKIP() << "this kernel lets no process read another's memory";
  const World world(3, Memory::own);
  world.run_threads([&](std::int32_t rank, DirectGroup& group) {
    std::minstd_rand pace(static_cast<unsigned>(rank));
    for (std::int64_t number = 0; number < 6; ++number) {
      Call call{.kind = Kind::broadcast, .count = 5000, .type = ElementType::u8, .root = 1};
      const Buffers buffers(call, 3, rank, number, false, nullptr);
      Operation* const operation =
          group.start(call, static_cast<std::uint64_t>(number), DirectOptions(DirectAlgorithm::single_copy));
      if (number == 5 && rank == 1) {
        EXPECT_EQ(operation->algorithm(), name(DirectAlgorithm::single_copy));
      }
      ASSERT_TRUE(drive(group, *operation, pace).ok());
      group.finish(operation);
      ASSERT_TRUE(buffers.right());
      ASSERT_TRUE(run(group, Call{.kind = Kind::barrier}, static_cast<std::uint64_t>(number), pace).ok());
    }
  });
}

// A rank that is killed while others read its memory is named after the first read that the kernel
// rejects.
TEST(Direct, NamesTheRankWhoseMemoryIsGone) {
  const World world(2, Memory::own);
  const Bytes mine(100'000, std::byte{1});
  Bytes gathered(2 * mine.size());
  const Call call{.kind = Kind::all_gather,
                  .input = mine.data(),
                  .output = gathered.data(),
                  .count = static_cast<std::int64_t>(mine.size()),
                  .type = ElementType::u8};
  const pid_t child = fork();
  if (child == 0) {
    alarm(static_cast<unsigned>(kDeadline.count()));
    const auto group = world.attach(1);
    std::minstd_rand pace(1);
    for (std::uint64_t number = 0; number < 4; ++number)
      if (!run(*group, call, number, pace, DirectAlgorithm::single_copy).ok()) _exit(1);
    Operation* const last = group->start(call, 4, DirectOptions(DirectAlgorithm::single_copy));
    last->step();  // announces the address of its memory
    kill(getpid(), SIGKILL);
  }
  const auto group = world.attach(0);
  std::minstd_rand pace(0);
  for (std::uint64_t number = 0; number < 4; ++number)
    ASSERT_TRUE(run(*group, call, number, pace, DirectAlgorithm::single_copy).ok());
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  Operation* const last = group->start(call, 4, DirectOptions(DirectAlgorithm::single_copy));
  if (last->algorithm() != name(DirectAlgorithm::single_copy))
    GTEST_SKIP() << "this kernel lets no process read another's memory";
  const Status read = drive(*group, *last, pace);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "the memory of rank 1 is no longer readable");
  group->finish(last);
}

// The default tuning: mailbox entries of 4 KiB, fragments of many sizes.
TEST(Direct, WorksWithItsOwnTuning) {
  for (const Memory memory : {Memory::own, Memory::allocated}) {
    const World world(3, memory, DirectTuning{});
    world.run_threads([&](std::int32_t rank, DirectGroup& group) {
      std::minstd_rand pace(static_cast<unsigned>(rank));
      std::int64_t number = 0;
      for (const Kind kind : {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::all_to_all,
                              Kind::broadcast, Kind::reduce})
        for (const std::int64_t count : {1, 5, 1023, 4097, 20001}) {
          Call call{.kind = kind, .count = count, .type = ElementType::f32, .root = 1};
          const Buffers buffers(
              call, 3, rank, number, false,
              memory == Memory::allocated ? world.heaps[static_cast<std::size_t>(rank)].data() : nullptr);
          ASSERT_TRUE(run(group, call, static_cast<std::uint64_t>(number++), pace).ok());
          ASSERT_TRUE(buffers.right()) << describe(call) << " at rank " << rank;
        }
    });
  }
}

// Several calls in flight at every priority, stepped in any order.
TEST(Direct, KeepsCallsUnderWayApart) {
  constexpr int kRounds = 12;
  const World world(3, Memory::own);
  world.run_threads([&](std::int32_t rank, DirectGroup& group) {
    RandomCalls sequence(3, 5);
    std::minstd_rand pace(static_cast<unsigned>(rank) + 100);
    std::int64_t number = 0;
    for (int round = 0; round < kRounds; ++round) {
      struct Flight {
        RandomCalls::Drawn drawn;
        std::unique_ptr<Buffers> buffers;
        Operation* operation;
      };
      std::vector<Flight> flights;
      for (int i = 0; i < 9; ++i) {
        Flight flight{sequence.draw(), nullptr, nullptr};
        flight.drawn.call.counts = flight.drawn.counts;
        flight.drawn.call.priority = static_cast<Priority>(sequence.below(3));
        flight.buffers =
            std::make_unique<Buffers>(flight.drawn.call, 3, rank, number, flight.drawn.in_place, nullptr);
        const Call& call = flight.drawn.call;
        if (call.kind == Kind::send) {
          if (rank != call.root && rank != call.peer) {
            ++number;
            continue;
          }
          // At most one send per direction is in flight; both of its ends see the same.
          if (!group.can_start(call)) {
            ++number;
            continue;
          }
        } else if (!group.can_start(call)) {
          ++number;
          break;  // all ranks have started the same number: none was finished in this round
        }
        flight.operation =
            group.start(flight.drawn.call, static_cast<std::uint64_t>(number++), flight.drawn.way);
        flights.push_back(std::move(flight));
      }
      const auto end = Clock::now() + kDeadline;
      std::vector<std::size_t> left(flights.size());
      std::iota(left.begin(), left.end(), 0);
      while (!left.empty()) {
        const std::size_t pick = pace() % left.size();
        const Progress progress = flights[left[pick]].operation->step();
        ASSERT_NE(progress, Progress::failed) << flights[left[pick]].operation->error().message;
        ASSERT_LT(Clock::now(), end);
        if (progress == Progress::blocked && pace() % 4 == 0) sched_yield();
        if (progress == Progress::done) left.erase(left.begin() + static_cast<std::ptrdiff_t>(pick));
      }
      for (const Flight& flight : flights) {
        EXPECT_TRUE(flight.buffers->right()) << describe(flight.drawn.call) << " at rank " << rank;
        group.finish(flight.operation);
      }
    }
  });
}

// Any bytes that other processes write to shared memory unpack to a valid call.
TEST(Direct, UnpacksOnlyValidEnumValues) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const Call call = unpack_call(random(), random());
    EXPECT_LE(call.kind, Kind::custom);
    EXPECT_LT(static_cast<std::size_t>(call.type), device::kElementTypes);
    EXPECT_LT(static_cast<std::size_t>(call.op), device::kReduceOps);
    EXPECT_LT(static_cast<std::size_t>(call.priority), kPriorities);
    EXPECT_FALSE(describe(call).empty());
  }
}

TEST(Direct, RunsAheadOfSlowReaders) {
  const World world(2, Memory::own);
  const auto root = world.attach(0), reader = world.attach(1);
  std::minstd_rand pace(1);
  std::int32_t value = 0;
  // As many as the mailbox has slots, before the reader's first call.
  for (value = 0; value < 32; ++value) {
    const Call call{
        .kind = Kind::broadcast, .input = &value, .output = &value, .count = 1, .type = ElementType::i32};
    Operation* const operation = root->start(call, static_cast<std::uint64_t>(value));
    ASSERT_EQ(operation->step(), Progress::done) << value;
    root->finish(operation);
  }
  Operation* const blocked = root->start(Call{.kind = Kind::barrier}, 32);
  EXPECT_EQ(blocked->step(), Progress::blocked);
  EXPECT_EQ(blocked->waiting_for(), 1);
  for (std::int32_t expected = 0; expected < 32; ++expected) {
    std::int32_t got = -1;
    const Call call{
        .kind = Kind::broadcast, .input = &got, .output = &got, .count = 1, .type = ElementType::i32};
    ASSERT_TRUE(run(*reader, call, static_cast<std::uint64_t>(expected), pace).ok());
    EXPECT_EQ(got, expected);
  }
}

// The message on each rank when ranks 0 and 1 call `first` and `second` after `before` matching
// calls.
std::vector<std::string> errors(const Call& first, const Call& second, int before, std::int32_t ranks = 3) {
  const World world(ranks, Memory::own);
  std::vector<std::string> messages(static_cast<std::size_t>(ranks));
  world.run_threads([&](std::int32_t rank, DirectGroup& group) {
    std::minstd_rand pace(static_cast<unsigned>(rank));
    Bytes memory(1 << 16);
    std::uint64_t number = 0;
    for (; number < static_cast<std::uint64_t>(before); ++number)
      ASSERT_TRUE(run(group, Call{.kind = Kind::barrier}, number, pace).ok());
    Call call = rank == 1 ? second : first;
    call.input = memory.data();
    call.output = memory.data() + memory.size() / 2;
    Status status = run(group, call, number++, pace);
    // A mismatch in a call that need not wait for others is detected by the next call that does.
    if (status.ok()) status = run(group, Call{.kind = Kind::barrier}, number, pace);
    messages[static_cast<std::size_t>(rank)] = status.ok() ? "" : status.error().message;
  });
  return messages;
}

TEST(Direct, ReportsBothCallsToEveryRank) {
  const Call sum{.kind = Kind::all_reduce, .count = 1024};
  const Call fewer{.kind = Kind::all_reduce, .count = 8};
  const Call larger_type{.kind = Kind::all_reduce, .count = 1024, .type = ElementType::f64};
  const Call spread{.kind = Kind::broadcast, .count = 8};
  const Call from_one{.kind = Kind::broadcast, .count = 8, .root = 1};
  struct Case {
    Call first, second;
    std::string expected, also_expected;
  };
  for (const Case& each :
       {Case{sum, fewer, "all_reduce sum f32 x 1024", "rank 1 called all_reduce sum f32 x 8"},
        Case{sum, larger_type, "all_reduce sum f32 x 1024", "rank 1 called all_reduce sum f64 x 1024"},
        Case{sum, spread, "all_reduce sum f32 x 1024", "rank 1 called broadcast f32 x 8 from rank 0"},
        Case{spread, sum, "broadcast f32 x 8 from rank 0", "rank 1 called all_reduce"},
        Case{spread, from_one, "broadcast f32 x 8 from rank 0",
             "rank 1 called broadcast f32 x 8 from rank 1"}})
    for (const std::string& message : errors(each.first, each.second, 17)) {
      EXPECT_NE(message.find(each.expected), std::string::npos) << message;
      EXPECT_NE(message.find(each.also_expected), std::string::npos) << message;
      EXPECT_NE(message.find("(call 17)"), std::string::npos) << message;
    }
}

TEST(Direct, ReportsAMismatchedCountToTheReceiver) {
  const World world(2, Memory::own);
  const auto sender = world.attach(0), receiver = world.attach(1);
  std::minstd_rand pace(1);
  float memory[16] = {};
  Call call{.kind = Kind::send, .input = memory, .output = memory, .count = 8, .root = 0, .peer = 1};
  ASSERT_TRUE(run(*sender, call, 0, pace).ok());
  call.count = 9;
  const Status status = run(*receiver, call, 0, pace);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("rank 0 called send f32 x 8"), std::string::npos)
      << status.error().message;
  EXPECT_NE(status.error().message.find("rank 1 called send f32 x 9"), std::string::npos)
      << status.error().message;
}

TEST(Direct, FailsEveryOperationWhenPoisoned) {
  const World world(3, Memory::own);
  world.run_threads([&](std::int32_t rank, DirectGroup& group) {
    std::minstd_rand pace(static_cast<unsigned>(rank));
    ASSERT_TRUE(run(group, Call{.kind = Kind::barrier}, 0, pace).ok());
    if (rank == 2) {  // never calls again; another rank notices
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      group.poison(2, kPoisonedByFailure);
      group.poison(1, kPoisonedByFailure);  // the first cause is kept
      return;
    }
    const Status status = run(group, Call{.kind = Kind::barrier}, 1, pace);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "rank 2 failed");
    EXPECT_EQ(group.poisoned()->rank, 2);
  });
}

TEST(Direct, WaitEndsWhenWoken) {
  const World world(2, Memory::own);
  const auto group = world.attach(0);
  Operation* const operation = group->start(Call{.kind = Kind::barrier}, 0);
  ASSERT_EQ(operation->step(), Progress::blocked);
  const std::uint32_t seen = group->signal();
  std::thread waker([&] { group->wake(); });
  const auto begin = Clock::now();
  group->wait(seen, kDeadline);
  EXPECT_LT(Clock::now() - begin, kDeadline / 2);
  waker.join();
}

TEST(Direct, FindsOnlyAddressesInItsHeap) {
  const World world(2, Memory::own);
  const auto group = world.attach(1);
  const std::byte* const begin = world.heaps[1].data();
  const std::size_t size = world.heaps[1].size();
  ASSERT_TRUE(group->find(begin + 100, size - 100).has_value());
  EXPECT_EQ(group->find(begin + 100, 1)->offset, 100u);
  EXPECT_FALSE(group->find(begin + 100, size - 99).has_value());
  EXPECT_FALSE(group->find(world.heaps[0].data(), 1).has_value());
  EXPECT_FALSE(group->find(nullptr, 0).has_value());
}

}  // namespace
}  // namespace weft::comm
