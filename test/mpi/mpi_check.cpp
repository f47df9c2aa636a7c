// mpi_check [--measure] -- checks the MPI transport on real MPI processes.
//
//   mpirun -n 4 mpi_check
//
// Exits with 0 if all checks pass; otherwise prints what was expected. Every wait has a deadline.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/communication/transport/mpi/endpoint.h"
#include "weft/communication/transport/mpi/job.h"

namespace {

using namespace weft;
using namespace weft::transport;
using Clock = std::chrono::steady_clock;

constexpr auto kLimit = std::chrono::seconds(300);  // far longer than a busy machine needs

Status expect(bool good, std::string_view what) {
  return good ? Status() : Status(environment_error(fmt::format("expected {}", what)));
}

// Calls `step` until it returns true.
Status await(Endpoint& endpoint, std::string_view what, const std::function<bool()>& step) {
  const auto deadline = Clock::now() + kLimit;
  for (;;) {
    const std::uint32_t seen = endpoint.signal();
    if (step()) return {};
    if (const auto fault = endpoint.fault()) return environment_error(fault->text);
    if (Clock::now() > deadline) return environment_error(fmt::format("waited too long for {}", what));
    endpoint.wait(seen, std::chrono::milliseconds(100));
  }
}

std::vector<std::int32_t> everyone(const Job& job) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(job.ranks()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Status check_exchange(Job& job) {
  const std::vector<std::int32_t> all = everyone(job);
  for (std::uint64_t number = 1; number <= 20; ++number) {
    const std::string mine(static_cast<std::size_t>(job.rank()) * 3000, static_cast<char>('a' + job.rank()));
    WEFT_TRY(parcels, job.exchange(all, {7, number}, {mine}));
    WEFT_TRY_STATUS(expect(parcels.size() == all.size(), "a parcel of each rank"));
    for (std::size_t r = 0; r < all.size(); ++r) {
      const std::string theirs(r * 3000, static_cast<char>('a' + static_cast<int>(r)));
      WEFT_TRY_STATUS(expect(parcels[r].bytes == theirs, "the parcel that the rank gave"));
    }
  }
  // Even and odd ranks exchange in two groups at the same time.
  std::vector<std::int32_t> half;
  for (std::int32_t r = job.rank() % 2; r < job.ranks(); r += 2) half.push_back(r);
  WEFT_TRY(parcels, job.exchange(half, {8, 1}, {std::to_string(job.rank())}));
  for (std::size_t i = 0; i < half.size(); ++i) {
    WEFT_TRY_STATUS(expect(parcels[i].bytes == std::to_string(half[i]), "the parcels of every other rank"));
  }
  return {};
}

// Messages arrive in order, including those that arrived before the handler was set.
Status check_messages(Job& job) {
  constexpr std::uint64_t kMessages = 200, kGroup = 9;
  const std::int32_t to = (job.rank() + 1) % job.ranks();
  for (std::uint64_t i = 0; i < kMessages / 2; ++i) job.send(to, {kGroup, i}, std::to_string(i));
  std::mutex mutex;
  std::vector<std::uint64_t> numbers;
  bool good = true;
  job.handle(kGroup, [&](std::int32_t from, std::uint64_t number, std::string_view bytes) {
    const std::scoped_lock lock(mutex);
    good = good && (from + 1) % job.ranks() == job.rank() && bytes == std::to_string(number);
    numbers.push_back(number);
  });
  for (std::uint64_t i = kMessages / 2; i < kMessages; ++i) job.send(to, {kGroup, i}, std::to_string(i));
  const auto deadline = Clock::now() + kLimit;
  for (;;) {
    WEFT_TRY_STATUS(expect(Clock::now() < deadline, "all messages"));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::scoped_lock lock(mutex);
    if (numbers.size() == kMessages) break;
  }
  job.handle(kGroup, nullptr);
  std::vector<std::uint64_t> in_order(kMessages);
  std::iota(in_order.begin(), in_order.end(), 0);
  return expect(good && numbers == in_order, "messages in order");
}

// The messages of a wire. Both ends generate the same sequence.
class Script {
 public:
  static constexpr int kMessages = 40;
  static constexpr std::uint64_t kLongest = 50'000;

  explicit Script(std::uint64_t wire) : random_(wire) { draw(); }

  bool done() const { return number_ == kMessages; }
  std::uint64_t label() const { return static_cast<std::uint64_t>(number_) + 1; }
  const std::vector<std::byte>& message() const { return message_; }
  void next() {
    ++number_;
    draw();
  }

 private:
  void draw() {
    message_.resize(random_.below(random_.below(4) == 0 ? kLongest + 1 : 100));
    for (std::byte& byte : message_) byte = static_cast<std::byte>(random_.next());
  }

  Random random_;
  int number_ = 0;
  std::vector<std::byte> message_;
};

// Every rank sends messages of random lengths to every other rank on two channels and checks what
// it receives.
Status check_wires(Endpoint& endpoint) {
  std::vector<Wire> wires;
  for (std::int32_t from = 0; from < endpoint.ranks(); ++from) {
    for (std::int32_t to = 0; to < endpoint.ranks(); ++to) {
      if (from != to) wires.insert(wires.end(), {{from, to, 0}, {from, to, 1}});
    }
  }
  WEFT_TRY(ends, endpoint.open(wires, {3, Script::kLongest}));
  std::vector<Script> scripts;
  for (std::size_t w = 0; w < wires.size(); ++w) scripts.emplace_back(w);

  bool right = true;
  std::vector<std::byte> target;
  const auto step = [&](std::size_t w) {  // whether the wire's next message was sent or received
    Script& script = scripts[w];
    if (Outgoing* out = ends.outgoing[w].get()) {
      out->set_label(script.label());
      if (!out->send_from(script.message())) return false;
    } else if (Incoming* in = ends.incoming[w].get()) {
      in->set_label(script.label());
      target.assign(script.message().size(), std::byte{0});
      if (!in->receive_into(target)) return false;
      right = right && target == script.message();
    }
    script.next();
    return true;
  };
  WEFT_TRY_STATUS(await(endpoint, "messages on all wires", [&] {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t w = 0; w < wires.size(); ++w) moved |= !scripts[w].done() && step(w);
    }
    return std::ranges::all_of(scripts, &Script::done);
  }));
  return expect(right, "the messages that were sent");
}

// A ring all-reduce written by hand, with the same calls as chunk programs.
Status check_ring(Endpoint& endpoint) {
  const std::int32_t ranks = endpoint.ranks(), self = endpoint.rank();
  if (ranks < 2) return {};
  std::vector<Wire> wires;
  for (std::int32_t r = 0; r < ranks; ++r) wires.push_back({r, (r + 1) % ranks, 0});
  const std::size_t chunk = 5000;
  WEFT_TRY(ends, endpoint.open(wires, {2, static_cast<std::int64_t>(chunk * sizeof(float))}));
  Outgoing& out = *ends.outgoing[static_cast<std::size_t>(self)];
  Incoming& in = *ends.incoming[static_cast<std::size_t>((self + ranks - 1) % ranks)];
  std::vector<float> data(chunk * static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(self + static_cast<int>(i % 97));
  const auto part = [&](std::int32_t index) {
    return std::span(data).subspan(static_cast<std::size_t>((index + 2 * ranks) % ranks) * chunk, chunk);
  };
  for (std::int32_t step = 0; step < 2 * (ranks - 1); ++step) {
    const auto going = part(self - step), coming = part(self - step - 1);
    WEFT_TRY_STATUS(await(endpoint, "a slot", [&] { return out.send_from(std::as_bytes(going)); }));
    WEFT_TRY_STATUS(await(endpoint, "a chunk", [&] {
      const std::byte* message = in.front(coming.size_bytes());
      if (message == nullptr) return false;
      const bool reduces = step < ranks - 1;
      for (std::size_t i = 0; i < coming.size(); ++i) {
        float value = 0;
        std::memcpy(&value, message + i * sizeof value, sizeof value);
        coming[i] = reduces ? coming[i] + value : value;
      }
      in.pop();
      return true;
    }));
  }
  const float ranks_sum = static_cast<float>(ranks * (ranks - 1) / 2);
  for (std::size_t i = 0; i < data.size(); ++i) {
    const float sum = ranks_sum + static_cast<float>(ranks) * static_cast<float>(i % 97);
    WEFT_TRY_STATUS(expect(data[i] == sum, "the sum over all ranks"));
  }
  return {};
}

// The receiver's error names both sides of a mismatch.
Status check_mismatch(Endpoint& endpoint, Job& job) {
  const Wire wire{0, endpoint.ranks() - 1, 0};
  if (wire.from == wire.to) return {};
  WEFT_TRY(ends, endpoint.open({&wire, 1}, {2, 64}));
  const std::vector<std::byte> bytes(16);
  if (ends.outgoing[0]) {
    ends.outgoing[0]->set_label(0xa);
    WEFT_TRY_STATUS(expect(ends.outgoing[0]->send_from(bytes), "a free slot"));
  }
  if (ends.incoming[0]) {
    ends.incoming[0]->set_label(0xb);
    const Status got = await(endpoint, "a message", [&] { return ends.incoming[0]->front(24) != nullptr; });
    WEFT_TRY_STATUS(
        expect(!got.ok() && got.error().message ==
                                "rank 0 sent 16 bytes of call 0xa, where 24 bytes of call 0xb were expected",
               "a fault that names both calls"));
  }
  WEFT_TRY(parcels,
           job.exchange(everyone(job), {7, 1000}, {}));  // no rank exits before the others have checked
  return {};
}

Status measure(Endpoint& endpoint) {
  const std::vector<Wire> wires = {{0, 1, 0}, {1, 0, 0}};
  for (const std::int64_t bytes : {8, 4 << 10, 64 << 10, 128 << 10, 512 << 10, 2 << 20}) {
    WEFT_TRY(ends, endpoint.open(wires, {4, bytes}));
    if (endpoint.rank() > 1) continue;
    const std::size_t me = static_cast<std::size_t>(endpoint.rank());
    Outgoing& out = *ends.outgoing[me];
    Incoming& in = *ends.incoming[1 - me];
    std::vector<std::byte> data(static_cast<std::size_t>(bytes));
    const auto send = [&] { return await(endpoint, "a slot", [&] { return out.send_from(data); }); };
    const auto receive = [&] { return await(endpoint, "a message", [&] { return in.receive_into(data); }); };
    constexpr int kRounds = 2000;
    const auto start = Clock::now();
    for (int i = 0; i < kRounds; ++i) {
      if (me == 0) WEFT_TRY_STATUS(send());
      WEFT_TRY_STATUS(receive());
      if (me == 1) WEFT_TRY_STATUS(send());
    }
    const auto middle = Clock::now();
    for (int i = 0; i < kRounds; ++i) WEFT_TRY_STATUS(me == 0 ? send() : receive());
    const std::chrono::duration<double> pings = middle - start, stream = Clock::now() - middle;
    if (me == 1) {
      fmt::print("{:>8} bytes: one way {:.2f} us, stream {:.2f} GB/s\n", bytes,
                 pings.count() / kRounds / 2 * 1e6,
                 static_cast<double>(bytes) * kRounds / stream.count() / 1e9);
    }
  }
  return {};
}

Status run(bool measuring) {
  WEFT_TRY(library, mpi::Library::load());
  WEFT_TRY(joined, mpi::join(library, std::chrono::duration_cast<std::chrono::milliseconds>(kLimit)));
  const std::shared_ptr<Job> job = std::move(joined);
  WEFT_TRY(endpoint, mpi::make_endpoint(job, everyone(*job), 1, library));
  if (measuring) {
    WEFT_TRY_STATUS(measure(*endpoint));
  } else {
    WEFT_TRY_STATUS(check_exchange(*job));
    WEFT_TRY_STATUS(check_messages(*job));
    WEFT_TRY_STATUS(check_wires(*endpoint));
    WEFT_TRY_STATUS(check_ring(*endpoint));
    WEFT_TRY_STATUS(check_mismatch(*endpoint, *job));
  }
  WEFT_TRY(parcels, job->exchange(everyone(*job), {7, 1001}, {}));
  if (job->rank() == 0) fmt::print("{}: {} ranks, all is well\n", library->name(), job->ranks());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc > 1 && std::string_view(argv[1]) == "--measure");
  if (status.ok()) return 0;
  fmt::print(stderr, "mpi_check: {}\n", status.error().message);
  if (!status.error().hint.empty()) fmt::print(stderr, "  hint: {}\n", status.error().hint);
  return 1;
}
