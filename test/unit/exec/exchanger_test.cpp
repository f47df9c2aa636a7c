// Ranks that exchange: programs of small distributed plans run side by side, compared with the
// virtual mesh.
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "distant_device.h"
#include "mesh_case.h"
#include "weft/plan/spmd/localize.h"
#include "weft/runtime/exec/comm_exchanger.h"
#include "weft/runtime/exec/rank.h"

namespace weft::exec {
namespace {

using namespace std::chrono_literals;
using comm::TransportKind;

plan::Mesh mesh_of(std::string_view text) { return plan::read_mesh(text).value(); }

// Calls part(exchanger, rank) on one thread per rank of the mesh. `explained` receives what ran and
// why.
void on_ranks(const plan::Mesh& mesh, TransportKind transport,
              const std::function<void(CommExchanger&, std::int32_t)>& part,
              const std::function<void(std::string_view)>& explained = {},
              Agreement agreement = Agreement::of_all) {
  auto jobs = transport::make_thread_jobs(mesh.ranks(), 10s);
  std::vector<std::jthread> threads;
  for (auto& job : jobs)
    threads.emplace_back([&, job = std::shared_ptr<transport::Job>(std::move(job))] {
      comm::Options options = training_options(transport);
      options.explain = explained != nullptr;
      options.on_explain = explained;
      auto world = comm::Communicator::create(job, options);
      ASSERT_TRUE(world.ok()) << world.error().message;
      auto exchanger = CommExchanger::open(**world, mesh, agreement);
      ASSERT_TRUE(exchanger.ok()) << exchanger.error().message;
      part(**exchanger, job->rank());
    });
}

// Runs one exchange of integers that identify each element: rank * 1000 + position.
struct Moved {
  program::Exchange exchange;
  std::vector<float> operand, result;
};

Moved moved(program::Exchange::Kind kind, std::string axis, std::vector<std::int64_t> counts,
            std::vector<std::int64_t> takes, std::int64_t gives, std::int64_t gets, std::int32_t rank) {
  Moved made;
  made.exchange.kind = kind;
  made.exchange.axis = std::move(axis);
  made.exchange.counts = std::move(counts);
  made.exchange.takes = std::move(takes);
  for (std::int64_t i = 0; i < gives; ++i) made.operand.push_back(static_cast<float>(rank * 1000 + i));
  made.result.resize(static_cast<std::size_t>(gets), -1);
  return made;
}

void run(CommExchanger& exchanger, Moved& moved) {
  const program::Exchange* const one = &moved.exchange;
  ASSERT_TRUE(exchanger.prepare({&one, 1}).ok());
  for (int again = 0; again < 2; ++again) {
    const Status status =
        exchanger.run(moved.exchange, reinterpret_cast<const std::byte*>(moved.operand.data()),
                      reinterpret_cast<std::byte*>(moved.result.data()));
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
}

class ExchangerOver : public testing::TestWithParam<TransportKind> {};
INSTANTIATE_TEST_SUITE_P(Transports, ExchangerOver,
                         testing::Values(TransportKind::inproc, TransportKind::tcp),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST_P(ExchangerOver, SupportsEveryKindInGroupsAlongAnAxis) {
  using Kind = program::Exchange::Kind;
  const plan::Mesh mesh = mesh_of("node=2, gpu=3");
  on_ranks(mesh, GetParam(), [&](CommExchanger& exchanger, std::int32_t rank) {
    const auto node = rank / 3, gpu = rank % 3;
    const std::array<std::int64_t, 3> blocks = {2, 2, 1};
    const std::array<std::int64_t, 3> before = {0, 2, 4};
    const std::int64_t mine = blocks[static_cast<std::size_t>(gpu)];

    Moved gathered = moved(Kind::all_gather, "gpu", {2, 2, 1}, {}, mine, 5, rank);
    run(exchanger, gathered);
    for (std::int32_t from = 0; from < 3; ++from)
      EXPECT_EQ(gathered.result[static_cast<std::size_t>(before[static_cast<std::size_t>(from)])],
                static_cast<float>((node * 3 + from) * 1000));

    Moved scattered = moved(Kind::reduce_scatter, "gpu", {2, 2, 1}, {}, 5, mine, rank);
    run(exchanger, scattered);
    EXPECT_EQ(scattered.result[0],
              static_cast<float>((9 * node + 3) * 1000 + 3 * before[static_cast<std::size_t>(gpu)]));

    Moved reduced = moved(Kind::all_reduce, "node", {7}, {}, 7, 7, rank);
    reduced.exchange.monoid = plan::Monoid::max;
    run(exchanger, reduced);
    EXPECT_EQ(reduced.result[6], static_cast<float>((3 + gpu) * 1000 + 6));

    // From rows of 2, 2 and 1 to columns of 3, 1 and 0: the last rank receives nothing.
    const std::array<std::int64_t, 3> columns = {3, 1, 0};
    const std::int64_t taken = columns[static_cast<std::size_t>(gpu)];
    Moved turned = moved(Kind::all_to_all, "gpu", {mine * 3, mine * 1, 0}, {2 * taken, 2 * taken, taken},
                         mine * 4, 5 * taken, rank);
    run(exchanger, turned);
    for (std::int64_t from = 0, at = 0; from < 3; ++from) {
      const std::int64_t begin = gpu == 1 ? blocks[static_cast<std::size_t>(from)] * 3 : 0;
      if (taken > 0) {
        EXPECT_EQ(turned.result[static_cast<std::size_t>(at)],
                  static_cast<float>((node * 3 + from) * 1000 + begin));
      }
      at += blocks[static_cast<std::size_t>(from)] * taken;
    }

    Moved spread = moved(Kind::broadcast_from, "gpu", {4}, {}, 4, 4, rank);
    spread.exchange.shift = 2;
    run(exchanger, spread);
    EXPECT_EQ(spread.result[3], static_cast<float>((node * 3 + 2) * 1000 + 3));

    for (const std::int64_t shift : {1, -1, 2}) {
      Moved passed = moved(Kind::permute_ranks, "gpu", {3}, {}, 3, 3, rank);
      passed.exchange.shift = shift;
      run(exchanger, passed);
      EXPECT_EQ(passed.result[1], static_cast<float>((node * 3 + (gpu - shift + 6) % 3) * 1000 + 1));
    }
  });
}

// The algorithm named in the program runs: every rank reports it on first use.
TEST_P(ExchangerOver, RunsANamedAlgorithm) {
  using Kind = plan::ExchangeKind;
  std::mutex mutex;
  std::vector<std::string> said;
  const auto explained = [&](std::string_view text) {
    const std::lock_guard lock(mutex);
    said.emplace_back(text);
  };
  on_ranks(
      mesh_of("gpu=3"), GetParam(),
      [&](CommExchanger& exchanger, std::int32_t rank) {
        for (const std::string_view name :
             {"all_reduce_ring", "all_reduce_ring(channels=2)", "all_reduce_chain"})
          for (const auto priority : {collective::Priority::normal, collective::Priority::high}) {
            Moved reduced = moved(Kind::all_reduce, "gpu", {70}, {}, 70, 70, rank);
            reduced.exchange.algorithm = {.name = std::string(name), .priority = priority};
            run(exchanger, reduced);
            EXPECT_EQ(reduced.result[69], 3000.0f + 3 * 69) << name;
          }
        Moved gathered = moved(Kind::all_gather, "gpu", {2, 2, 1}, {}, rank == 2 ? 1 : 2, 5, rank);
        gathered.exchange.algorithm.name = "all_gather_bruck";
        run(exchanger, gathered);
        EXPECT_EQ(gathered.result[4], 2000.0f);
      },
      explained);
  const auto times = [&](std::string_view ending) {
    return std::ranges::count_if(said, [&](const std::string& text) { return text.ends_with(ending); });
  };
  EXPECT_EQ(times(": all_reduce_ring (requested by the call)"), 3 * 2);  // each rank, per priority
  EXPECT_EQ(times(": all_reduce_ring(channels=2) (requested by the call)"), 3 * 2);
  EXPECT_EQ(times(": all_reduce_chain (requested by the call)"), 3 * 2);
  EXPECT_EQ(times(": all_gather_bruck (requested by the call)"), 3);
}

TEST(Exchanger, DirectCanBeNamed) {
  std::atomic<int> named = 0;
  on_ranks(
      mesh_of("gpu=2"), TransportKind::inproc,
      [&](CommExchanger& exchanger, std::int32_t rank) {
        for (const std::string_view name : {"direct", "direct one-shot"}) {
          Moved reduced = moved(plan::ExchangeKind::all_reduce, "gpu", {7}, {}, 7, 7, rank);
          reduced.exchange.algorithm.name = name;
          run(exchanger, reduced);
          EXPECT_EQ(reduced.result[6], 1000.0f + 12) << name;
        }
      },
      [&](std::string_view text) {
        if (text.ends_with(": direct (requested by the call)") ||
            text.ends_with(": direct one-shot (requested by the call)"))
          ++named;
      });
  EXPECT_EQ(named, 4);
}

// Before anything runs, and on all ranks.
TEST(Exchanger, RejectsAlgorithmsThatCannotRun) {
  struct Wrong {
    std::string name, expected;
    std::optional<collective::Protocol> protocol = {};
  };
  const Wrong wrongs[] = {
      {"all_reduce_rnig", "all-reduce over gpu cannot run: unknown algorithm: all_reduce_rnig"},
      {"all_gather_ring",
       "all-reduce over gpu cannot run: all_gather_ring is not an algorithm for all_reduce"},
      {"all_reduce_ring(ranks=4)",
       "all-reduce over gpu cannot run: all_reduce_ring(ranks=4) is not for 3 ranks"},
      {"direct sideways", "all-reduce over gpu cannot run: no such algorithm: direct sideways"},
      {"all_reduce_ring",
       "all-reduce over gpu is planned with protocol LL128, ranks of processors have Simple",
       collective::Protocol::ll128}};
  on_ranks(mesh_of("gpu=3"), TransportKind::inproc, [&](CommExchanger& exchanger, std::int32_t rank) {
    for (const Wrong& wrong : wrongs) {
      Moved reduced = moved(plan::ExchangeKind::all_reduce, "gpu", {7}, {}, 7, 7, rank);
      reduced.exchange.algorithm = {.name = wrong.name, .protocol = wrong.protocol};
      const program::Exchange* const one = &reduced.exchange;
      const Status status = exchanger.prepare({&one, 1});
      ASSERT_FALSE(status.ok()) << wrong.name;
      EXPECT_EQ(status.error().message, wrong.expected);
    }
    // An algorithm for even numbers of ranks only.
    Moved gathered = moved(plan::ExchangeKind::all_gather, "gpu", {1, 1, 1}, {}, 1, 3, rank);
    gathered.exchange.algorithm.name = "all_gather_neighbor_exchange";
    const program::Exchange* const one = &gathered.exchange;
    EXPECT_FALSE(exchanger.prepare({&one, 1}).ok());
  });
}

TEST(Exchanger, RejectsDirectAcrossSockets) {
  on_ranks(mesh_of("gpu=2"), TransportKind::tcp, [&](CommExchanger& exchanger, std::int32_t rank) {
    Moved reduced = moved(plan::ExchangeKind::all_reduce, "gpu", {7}, {}, 7, 7, rank);
    reduced.exchange.algorithm.name = "direct";
    const program::Exchange* const one = &reduced.exchange;
    EXPECT_EQ(exchanger.prepare({&one, 1}).error().message,
              "all-reduce over gpu cannot run: direct needs ranks that share memory");
  });
}

// Otherwise each would wait for the other forever.
TEST(Exchanger, DetectsRanksThatNameDifferentAlgorithms) {
  on_ranks(mesh_of("gpu=3"), TransportKind::inproc, [&](CommExchanger& exchanger, std::int32_t rank) {
    Moved reduced = moved(plan::ExchangeKind::all_reduce, "gpu", {7}, {}, 7, 7, rank);
    reduced.exchange.algorithm.name = rank == 2 ? "all_reduce_chain" : "all_reduce_ring";
    const program::Exchange* const one = &reduced.exchange;
    EXPECT_EQ(exchanger.prepare({&one, 1}).error().message,
              "ranks 0 and 2 run different plans: their collectives or algorithms differ");
  });
}

// Replicas with unequal numbers of micro-batches: ranks along gpu have the same exchanges, those
// along data do not.
TEST(Exchanger, GroupsMayHaveDifferentNumbersOfExchanges) {
  const auto prepared = [](Agreement agreement, std::vector<int> numbers) {
    std::vector<std::string> said(numbers.size());
    on_ranks(
        mesh_of("data=2,gpu=2"), TransportKind::inproc,
        [&](CommExchanger& exchanger, std::int32_t rank) {
          std::vector<Moved> all;
          for (int i = 0; i < numbers[static_cast<std::size_t>(rank)]; ++i)
            all.push_back(moved(plan::ExchangeKind::all_reduce, "gpu", {7}, {}, 7, 7, rank));
          std::vector<const program::Exchange*> exchanges;
          for (const Moved& one : all) exchanges.push_back(&one.exchange);
          const Status status = exchanger.prepare(exchanges);
          said[static_cast<std::size_t>(rank)] = status.ok() ? "" : status.error().message;
        },
        {}, agreement);
    return said;
  };
  const auto of = [](std::int32_t rank) {
    return fmt::format("ranks 0 and {} run different plans: their collectives or algorithms differ", rank);
  };
  using All = std::vector<std::string>;
  EXPECT_EQ(prepared(Agreement::of_all, {1, 1, 3, 3}), (All{of(2), of(2), of(2), of(2)}));
  EXPECT_EQ(prepared(Agreement::of_groups, {1, 1, 3, 3}), (All{"", "", "", ""}));
  EXPECT_EQ(prepared(Agreement::of_groups, {1, 1, 3, 2}), (All{"", "", of(1), of(1)}));
}

std::vector<float> floats(const Rank& rank, const program::Port& port) {
  const auto held = rank.read(port);
  if (!held.ok()) throw std::runtime_error(held.error().message);
  std::vector<float> numbers(held->bytes().size() / sizeof(float));
  std::memcpy(numbers.data(), held->data(), held->bytes().size());
  return numbers;
}

// Runs the plan on threads and compares what every rank holds of every output with the virtual
// mesh.
void expect_as_on_the_mesh(std::string_view text, std::string_view mesh_text, const RankOptions& options) {
  const plan::Graph graph = ops::read_plan(text);
  const plan::Mesh mesh = mesh_of(mesh_text);
  const auto layouts = spmd::infer_layouts(graph, mesh);
  ASSERT_TRUE(layouts.ok()) << layouts.error().message;
  Random random(3);
  const auto inputs = ops::spread<float>(graph, mesh, {}, *layouts, {}, random);
  const auto expected = spmd::interpret_on_mesh<float>(
      graph, mesh, [&](std::string_view name) { return &inputs.held.find(name)->second; });
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  on_ranks(mesh, TransportKind::inproc, [&](CommExchanger& exchanger, std::int32_t number) {
    auto local = spmd::localize(graph, mesh, *layouts, number, spmd::Exchanges::stay);
    ASSERT_TRUE(local.ok()) << local.error().message;
    auto program = program::compile(std::make_shared<plan::Graph>(std::move(local->graph)),
                                    {.workers = options.workers});
    ASSERT_TRUE(program.ok()) << program.error().message;
    RankOptions mine = options;
    mine.exchanger = &exchanger;
    auto started = Rank::start(std::move(*program), mine);
    ASSERT_TRUE(started.ok()) << started.error().message;
    Rank& rank = **started;
    const auto fill = [&](const std::vector<program::Port>& ports) {
      for (const program::Port& port : ports) {
        const auto& held = inputs.held.at(port.name).ranks[static_cast<std::size_t>(number)].data;
        ASSERT_TRUE(rank.write(port, std::as_bytes(std::span(held))).ok());
      }
    };
    for (int step = 0; step < 2; ++step) {
      fill(rank.program().inputs);
      fill(rank.program().parameters);
      const Status status = rank.step();
      ASSERT_TRUE(status.ok()) << status.error().message;
    }
    for (std::size_t o = 0; o < expected->size(); ++o) {
      const std::string_view name = graph.text(graph.outputs()[o].name);
      const auto& held = (*expected)[o].ranks[static_cast<std::size_t>(number)].data;
      const auto port = std::ranges::find(rank.program().outputs, name, &program::Port::name);
      if (held.empty() || port == rank.program().outputs.end()) continue;
      const std::vector<float> found = floats(rank, *port);
      ASSERT_EQ(found.size(), held.size()) << name;
      for (std::size_t i = 0; i < held.size(); ++i)
        ASSERT_NEAR(found[i], held[i], 1e-4 * (1 + std::abs(held[i])))
            << name << " " << i << " of rank " << number;
    }
  });
}

constexpr std::string_view kPlans[] = {
    // Data parallel: a gradient is reduced while the next is computed.
    "plan p\n%0 = input {name=x, type=f32[b=7,d=6], layout=\"sliced(b) on gpu\"}\n"
    "%1 = parameter {name=w, type=f32[d=6,f=5]}\n%2 = contract %0, %1 {to=[b,f]}\n%3 = relu %2\n"
    "%4 = contract %0, %3 {to=[d,f]}\n%5 = all-reduce %4 {axis=gpu}\n%6 = neg %3\n%7 = contract %0, %6 "
    "{to=[d,f]}\n"
    "%8 = all-reduce %7 {axis=gpu}\n%9 = add %5, %8\nreturn y=%3, g=%9, h=%8\n",
    // First columns, then rows.
    "plan p\n%0 = input {name=x, type=f32[b=4,d=6]}\n"
    "%1 = parameter {name=w, type=f32[d=6,f=5], layout=\"sliced(f) on gpu\"}\n%2 = contract %0, %1 "
    "{to=[b,f]}\n"
    "%3 = relu %2\n%4 = contract %3, %1 {to=[b,d]}\n%5 = all-reduce %4 {axis=gpu}\nreturn y=%5\n",
    // Sharded, transposed and gathered again.
    "plan p\n%0 = input {name=x, type=f32[b=7,d=6], layout=\"sliced(b) on gpu\"}\n"
    "%1 = parameter {name=w, type=f32[d=6,f=5], layout=\"sliced(d) on gpu\"}\n"
    "%2 = all-gather %1 {axis=gpu, along=d}\n%3 = contract %0, %2 {to=[b,f]}\n"
    "%4 = all-to-all %3 {axis=gpu, from=b, to=f}\n%5 = relu %4\n%6 = all-to-all %5 {axis=gpu, from=f, to=b}\n"
    "%7 = contract %0, %6 {to=[d,f]}\n%8 = reduce-scatter %7 {axis=gpu, along=d}\nreturn y=%6, g=%8\n"};

TEST(Exchanger, RanksMatchTheVirtualMesh) {
  for (const std::string_view plan : kPlans)
    for (const std::string_view mesh : {"gpu=1", "gpu=2", "gpu=3", "gpu=4", "node=2, gpu=2"})
      for (const bool overlap : {true, false}) {
        expect_as_on_the_mesh(plan, mesh, {.workers = 1, .overlap = overlap, .oversubscribed = true});
        if (HasFailure()) FAIL() << mesh << "\n" << plan;
      }
}

// Memory that the host cannot access is exchanged through memory that it can.
TEST(Exchanger, RanksOnADeviceWithItsOwnMemoryComputeTheSame) {
  const auto device = std::make_shared<device::DistantDevice>();
  for (const std::string_view plan : kPlans)
    for (const bool overlap : {true, false})
      expect_as_on_the_mesh(plan, "gpu=3", {.device = device, .overlap = overlap, .shared_memory = true});
}

TEST(Exchanger, WorkersAndSharedMemoryDoNotChangeResults) {
  for (const std::string_view plan : kPlans) {
    expect_as_on_the_mesh(plan, "gpu=3", {.workers = 2, .oversubscribed = true});
    expect_as_on_the_mesh(plan, "gpu=3", {.workers = 2, .overlap = false, .oversubscribed = true});
    expect_as_on_the_mesh(plan, "gpu=2", {.workers = 1, .shared_memory = true});
  }
}

// A single rank whose exchanges end as the test says.
class ScriptedExchanger final : public Exchanger {
 public:
  Status prepare(std::span<const program::Exchange* const> exchanges) override {
    prepared = exchanges.size();
    return {};
  }
  Result<Handle> start(const program::Exchange& exchange, const std::byte* operand,
                       std::byte* result) override {
    if (++runs > good_runs) return environment_error("rank 1 died");
    std::memmove(result, operand, static_cast<std::size_t>(exchange.counts.at(0)) * sizeof(float));
    return Handle{};
  }
  bool test(Handle) override { return true; }
  Status wait(Handle) override { return {}; }
  void stop(const Error&) override {}
  std::byte* allocate(std::size_t) override { return nullptr; }
  void free(std::byte*) override {}

  std::size_t prepared = 0;
  std::atomic<int> runs{0};
  int good_runs = 0;
};

// A single rank whose device runs exchanges slowly: a read that does not wait on the device finds
// old data.
class SlowOnDevice final : public Exchanger {
 public:
  explicit SlowOnDevice(device::Device& device) : room_(device.allocate(2 * kBytes).value()) {}
  bool is_on_device(const program::Exchange&) const override { return true; }
  Status prepare(std::span<const program::Exchange* const>) override { return {}; }
  Status enqueue(const program::Exchange& exchange, const std::byte* operand, std::byte* result,
                 device::Stream& stream) override {
    for (int turn = 0; turn < 3; ++turn) stream.copy(room_->address(), room_->address() + kBytes, kBytes);
    stream.copy(device::Address(result), device::Address(const_cast<std::byte*>(operand)),
                exchange.counts.at(0) * static_cast<std::int64_t>(sizeof(float)));
    return {};
  }
  Result<Handle> start(const program::Exchange&, const std::byte*, std::byte*) override {
    return environment_error("the host was asked");
  }
  bool test(Handle) override { return true; }
  Status wait(Handle) override { return {}; }
  void stop(const Error&) override {}
  std::byte* allocate(std::size_t) override { return nullptr; }
  void free(std::byte*) override {}

 private:
  static constexpr std::int64_t kBytes = 8 << 20;
  const std::unique_ptr<device::Memory> room_;
};

TEST(Exchanger, WaitsOnTheDeviceForItsExchanges) {
  const plan::Mesh mesh = mesh_of("gpu=2");
  const plan::Graph graph = ops::read_plan(kPlans[0]);
  const auto layouts = spmd::infer_layouts(graph, mesh).value();
  const auto device = std::make_shared<device::DistantDevice>();
  const auto results = [&](RankOptions options) {
    auto local = spmd::localize(graph, mesh, layouts, 0, spmd::Exchanges::stay).value();
    auto program = program::compile(std::make_shared<plan::Graph>(std::move(local.graph))).value();
    auto rank = Rank::start(std::move(program), options).value();
    std::vector<std::vector<std::byte>> found;
    for (int step = 0; step < 3; ++step) {
      float next = static_cast<float>(step);
      const auto fill = [&](std::span<std::byte> bytes) {
        for (std::size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
          next = next * -0.75f + 1;
          std::memcpy(bytes.data() + i, &next, sizeof next);
        }
      };
      for (const program::Port& port : rank->program().inputs) fill(rank->input(port));
      for (const program::Port& port : rank->program().parameters) EXPECT_TRUE(rank->write(port, fill).ok());
      program::Timeline timeline;
      EXPECT_TRUE((step == 1 ? rank->step(timeline) : rank->step()).ok());
      for (const program::Port& port : rank->program().outputs) {
        const auto held = rank->read(port);
        found.emplace_back(held->bytes().begin(), held->bytes().end());
      }
    }
    return found;
  };
  ScriptedExchanger as_one;
  as_one.good_runs = 100;
  const auto expected = results({.exchanger = &as_one});
  EXPECT_NE(expected.front(), expected.back());
  for (const bool overlap : {true, false}) {
    SlowOnDevice slow(*device);
    EXPECT_EQ(results({.device = device, .exchanger = &slow, .overlap = overlap}), expected);
  }
}

TEST(Exchanger, AFailureEndsThisAndAllLaterSteps) {
  const plan::Graph graph = ops::read_plan(kPlans[0]);
  const plan::Mesh mesh = mesh_of("gpu=2");
  const auto layouts = spmd::infer_layouts(graph, mesh).value();
  for (const bool overlap : {true, false})
    for (const int workers : {1, 2}) {
      auto local = spmd::localize(graph, mesh, layouts, 0, spmd::Exchanges::stay).value();
      auto program = program::compile(std::make_shared<plan::Graph>(std::move(local.graph))).value();
      ScriptedExchanger exchanger;
      exchanger.good_runs = 5;
      auto rank =
          Rank::start(std::move(program), {.workers = workers, .exchanger = &exchanger, .overlap = overlap});
      ASSERT_TRUE(rank.ok()) << rank.error().message;
      EXPECT_EQ(exchanger.prepared, 2u);
      EXPECT_TRUE((*rank)->step().ok());
      EXPECT_TRUE((*rank)->step().ok());
      program::Timeline timeline;
      const Status third = (*rank)->step(timeline);
      ASSERT_FALSE(third.ok());
      EXPECT_EQ(third.error().message, "rank 1 died");
      EXPECT_FALSE((*rank)->step().ok());
      EXPECT_EQ(exchanger.runs, 6);
    }
}

// Two independent all-reduces along two axes of the mesh.
constexpr std::string_view kTwoAxes =
    "plan p\n%0 = input {name=x, type=f32[b=8,d=4], layout=\"sliced(b) on gpu\"}\n"
    "%1 = input {name=y, type=f32[c=6,d=4], layout=\"sliced(c) on node\"}\n"
    "%2 = reduce %0 {kind=sum, to=[d]}\n%3 = all-reduce %2 {axis=gpu}\n"
    "%4 = reduce %1 {kind=sum, to=[d]}\n%5 = all-reduce %4 {axis=node}\n"
    "%6 = add %3, %5\nreturn p=%3, q=%5, r=%6\n";

// A single rank whose first exchange ends only when another has started, or when the step stops.
class MeetingExchanger final : public Exchanger {
 public:
  Status prepare(std::span<const program::Exchange* const>) override { return {}; }
  Result<Handle> start(const program::Exchange& exchange, const std::byte* operand,
                       std::byte* result) override {
    const std::lock_guard lock(mutex);
    const Handle handle{started++};
    changed.notify_all();
    if (handle.number == fails) return environment_error("rank 3 died");
    std::memmove(result, operand, static_cast<std::size_t>(exchange.counts.at(0)) * sizeof(float));
    return handle;
  }
  bool test(Handle handle) override { return handle.number != 0 || started > 1; }
  Status wait(Handle handle) override {
    if (handle.number != 0) return {};
    std::unique_lock lock(mutex);
    const bool met = changed.wait_for(lock, 20s, [&] { return stopped > 0 || (started > 1 && fails != 1); });
    if (stopped > 0) return environment_error("stopped");
    return met ? Status()
               : Status(environment_error("the second was not started while the first was under way"));
  }
  void stop(const Error& why) override {
    const std::lock_guard lock(mutex);
    ++stopped;
    stopped_by = why.message;
    changed.notify_all();
  }
  std::byte* allocate(std::size_t) override { return nullptr; }
  void free(std::byte*) override {}

  std::mutex mutex;
  std::condition_variable changed;
  std::uint32_t started = 0, stopped = 0, fails = 100;
  std::string stopped_by;
};

program::Program program_of(std::string_view text, std::string_view mesh_text) {
  const plan::Graph graph = ops::read_plan(text);
  const plan::Mesh mesh = mesh_of(mesh_text);
  const auto layouts = spmd::infer_layouts(graph, mesh).value();
  auto local = spmd::localize(graph, mesh, layouts, 0, spmd::Exchanges::stay).value();
  return program::compile(std::make_shared<plan::Graph>(std::move(local.graph))).value();
}

// The executor overlaps what the simulator overlaps: one communication thread per stream.
TEST(Exchanger, ExchangesAlongTwoAxesOverlap) {
  for (const int workers : {1, 2}) {
    MeetingExchanger exchanger;
    auto rank =
        Rank::start(program_of(kTwoAxes, "node=2, gpu=2"), {.workers = workers, .exchanger = &exchanger});
    ASSERT_TRUE(rank.ok()) << rank.error().message;
    const Status status = (*rank)->step();
    EXPECT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(exchanger.started, 2u);
    EXPECT_EQ(exchanger.stopped, 0u);
  }
}

TEST(Exchanger, AFailureOfOneStreamStopsTheOthers) {
  MeetingExchanger exchanger;
  exchanger.fails = 1;
  auto rank = Rank::start(program_of(kTwoAxes, "node=2, gpu=2"), {.exchanger = &exchanger});
  ASSERT_TRUE(rank.ok()) << rank.error().message;
  const Status status = (*rank)->step();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "rank 3 died");
  EXPECT_EQ(exchanger.stopped, 1u);
  EXPECT_EQ(exchanger.stopped_by, "rank 3 died");
  EXPECT_FALSE((*rank)->step().ok());
  EXPECT_EQ(exchanger.started, 2u);
}

TEST(Exchanger, StreamsDoNotChangeResults) {
  for (const bool overlap : {true, false})
    for (const std::string_view mesh : {"node=2, gpu=2", "node=3, gpu=2", "node=1, gpu=2"})
      for (const int workers : {1, 2}) {
        expect_as_on_the_mesh(kTwoAxes, mesh,
                              {.workers = workers, .overlap = overlap, .oversubscribed = true});
        if (HasFailure()) FAIL() << mesh << ", overlap " << overlap;
      }
}

// Over weft::comm: one rank gives up while others wait for it along another axis.
TEST(Exchanger, StoppingARankEndsTheWaitsOfOthers) {
  std::latch all_are_done(4);  // a rank that left early would end the others too
  on_ranks(mesh_of("node=2, gpu=2"), TransportKind::inproc, [&](CommExchanger& exchanger, std::int32_t rank) {
    Moved along_gpu = moved(plan::ExchangeKind::all_reduce, "gpu", {4}, {}, 4, 4, rank);
    Moved along_node = moved(plan::ExchangeKind::all_reduce, "node", {4}, {}, 4, 4, rank);
    const std::array<const program::Exchange*, 2> both = {&along_gpu.exchange, &along_node.exchange};
    ASSERT_TRUE(exchanger.prepare(both).ok());
    // Along gpu 1 waits for 0; along node 2 waits for 0 and 3 for 1, which is in the other
    // exchange.
    Moved& mine = rank == 1 ? along_gpu : along_node;
    Status status;
    if (rank != 0) {
      auto handle = exchanger.start(mine.exchange, reinterpret_cast<const std::byte*>(mine.operand.data()),
                                    reinterpret_cast<std::byte*>(mine.result.data()));
      if (rank == 3) exchanger.stop(environment_error("rank 3 cannot go on"));
      status = handle.ok() ? exchanger.wait(*handle) : Status(handle.error());
    } else {
      exchanger.stop(environment_error("rank 0 cannot go on"));
      status = exchanger.run(mine.exchange, reinterpret_cast<const std::byte*>(mine.operand.data()),
                             reinterpret_cast<std::byte*>(mine.result.data()));
    }
    EXPECT_FALSE(status.ok()) << rank;
    if (!status.ok()) EXPECT_TRUE(status.error().message.ends_with("cannot go on")) << status.error().message;
    all_are_done.arrive_and_wait();
  });
}

}  // namespace
}  // namespace weft::exec
