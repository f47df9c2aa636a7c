// gloo_peer.cpp -- Gloo as a rank of `weft bench`, with all of its algorithms and socket modes.
//
//   the functions that PyTorch calls        allreduce (ring, bcube), allgather, alltoall, broadcast
//   the older classes                       ring, ring-chunked, halving-doubling, bcube, one-to-all
//
// The functions need the thread that serves the sockets (async). The classes also run on blocking
// (sync) and polled (poll) sockets, each with a separate context. The best of all is compared.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allgather_ring.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoall.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>

#include "weft/runtime/measure/bench_rank.h"

namespace weft {
namespace {

using collective::Kind;
using device::ElementType;
using measure::BenchTurn;
using Context = std::shared_ptr<gloo::rendezvous::Context>;
using Buffers = measure::BenchLibrary::Buffers;

constexpr std::string_view kModes[] = {"async", "sync", "poll"};

// The operation that a turn repeats, and its result buffer.
struct Job {
  std::function<void()> run;
  const std::byte* result = nullptr;
};

template <class T>
struct OneType {
  Context context;
  Buffers buffers;
  std::size_t count, all;  // elements per block, and of all ranks' blocks

  T* input() const { return reinterpret_cast<T*>(buffers.input); }
  T* output() const { return reinterpret_cast<T*>(buffers.output); }

  // The classes work in place.
  template <class Algorithm, class... Arguments>
  Job in_place(Arguments... arguments) const {
    const auto made = std::make_shared<Algorithm>(context, std::vector<T*>{input()}, arguments...);
    return {[made] { made->run(); }, buffers.input};
  }

  Job all_reduce(std::string_view algorithm) const {
    const int elements = static_cast<int>(count);
    if (algorithm == "ring") return in_place<gloo::AllreduceRing<T>>(elements);
    if (algorithm == "ring-chunked") return in_place<gloo::AllreduceRingChunked<T>>(elements);
    if (algorithm == "halving-doubling") return in_place<gloo::AllreduceHalvingDoubling<T>>(elements);
    if (algorithm == "bcube") return in_place<gloo::AllreduceBcube<T>>(elements);
    using Options = gloo::AllreduceOptions;
    const auto options = std::make_shared<Options>(context);
    options->setAlgorithm(algorithm == "function-bcube" ? Options::Algorithm::BCUBE
                                                        : Options::Algorithm::RING);
    if (buffers.input != buffers.output) options->setInput(input(), count);
    options->setOutput(output(), count);
    options->setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<T>));
    return {[options] { gloo::allreduce(*options); }, buffers.output};
  }

  Job reduce_scatter() const {
    return in_place<gloo::ReduceScatterHalvingDoubling<T>>(
        static_cast<int>(all),
        std::vector<int>(static_cast<std::size_t>(context->size), static_cast<int>(count)));
  }

  Job all_gather(std::string_view algorithm) const {
    if (algorithm == "ring") {
      const auto made = std::make_shared<gloo::AllgatherRing<T>>(context, std::vector<const T*>{input()},
                                                                 output(), static_cast<int>(count));
      return {[made] { made->run(); }, buffers.output};
    }
    const auto options = std::make_shared<gloo::AllgatherOptions>(context);
    options->setInput(input(), count);
    options->setOutput(output(), all);
    return {[options] { gloo::allgather(*options); }, buffers.output};
  }

  Job all_to_all() const {
    const auto options = std::make_shared<gloo::AlltoallOptions>(context);
    options->setInput(input(), all);
    options->setOutput(output(), all);
    return {[options] { gloo::alltoall(*options); }, buffers.output};
  }

  Job broadcast(std::string_view algorithm) const {
    if (algorithm == "one-to-all") return in_place<gloo::BroadcastOneToAll<T>>(count);
    const auto options = std::make_shared<gloo::BroadcastOptions>(context);
    options->setOutput(output(), count);
    options->setRoot(0);
    return {[options] { gloo::broadcast(*options); }, buffers.output};
  }

  Job make(Kind kind, std::string_view algorithm) const {
    switch (kind) {
      case Kind::all_reduce: return all_reduce(algorithm);
      case Kind::reduce_scatter: return reduce_scatter();
      case Kind::all_gather: return all_gather(algorithm);
      case Kind::all_to_all: return all_to_all();
      case Kind::broadcast: return broadcast(algorithm);
      default: return {};
    }
  }
};

std::vector<std::string> algorithms(Kind kind) {
  std::vector<std::string> names, classes;
  switch (kind) {
    case Kind::all_reduce:
      names = {"function-ring:async", "function-bcube:async"};
      classes = {"ring", "ring-chunked", "halving-doubling", "bcube"};
      break;
    case Kind::reduce_scatter: classes = {"halving-doubling"}; break;
    case Kind::all_gather:
      names = {"function:async"};
      classes = {"ring"};
      break;
    case Kind::all_to_all: names = {"function:async"}; break;
    case Kind::broadcast:
      names = {"function:async"};
      classes = {"one-to-all"};
      break;
    default: break;
  }
  for (const std::string& algorithm : classes)
    for (const std::string_view mode : kModes) names.push_back(fmt::format("{}:{}", algorithm, mode));
  return names;
}

class GlooLibrary : public measure::BenchLibrary {
 public:
  explicit GlooLibrary(const measure::BenchHello& place) : rank_(place.rank), ranks_(place.ranks) {
    // Ranks rendezvous in a folder that is deleted afterwards.
    const char* name = std::getenv(measure::kBenchSocket);
    const std::string folder = fmt::format("{}/{}", std::filesystem::temp_directory_path().string(),
                                           name == nullptr ? "weft-bench-gloo" : name);
    mkdir(folder.c_str(), 0700);
    gloo::rendezvous::FileStore store(folder);
    gloo::transport::tcp::attr where;
    where.hostname = "127.0.0.1";
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(where);
    for (const std::string_view mode : kModes) {
      gloo::rendezvous::PrefixStore own{std::string(mode), store};
      auto context = std::make_shared<gloo::rendezvous::Context>(rank_, ranks_);
      context->connectFullMesh(own, device);
      barrier_of(context);
      if (mode != "async")
        for (int peer = 0; peer < ranks_; ++peer)
          if (peer != rank_) context->getPair(peer)->setSync(true, mode == "poll");
      contexts_[std::string(mode)] = context;
    }
    barrier_of(contexts_["async"]);
    std::error_code unused;
    if (rank_ == 0) std::filesystem::remove_all(folder, unused);
  }

  std::string version() const override { return "Gloo"; }
  std::int32_t rank() const override { return rank_; }
  std::int32_t ranks() const override { return ranks_; }
  std::vector<std::string> variants(Kind kind) const override { return algorithms(kind); }

  // Uses the active context, so that no thread of another one wakes up.
  Status barrier() override {
    barrier_->run();
    return {};
  }

  Status prepare(const BenchTurn& turn, const Buffers& buffers) override {
    const std::size_t colon = turn.variant.find(':');
    const auto context =
        colon == std::string::npos ? contexts_.end() : contexts_.find(turn.variant.substr(colon + 1));
    if (context == contexts_.end()) return user_error(fmt::format("Gloo has no {}", turn.variant));
    if (buffers.count * ranks_ > std::numeric_limits<int>::max())
      return user_error(fmt::format("Gloo counts with int, found {} elements", buffers.count * ranks_));
    if (turn.in_place && turn.kind == Kind::all_to_all) return user_error("Gloo has no all_to_all in place");
    job_ = make(context->second, turn, buffers, std::string_view(turn.variant).substr(0, colon));
    if (!job_.run)
      return user_error(
          fmt::format("Gloo has no {} of {}", collective::name(turn.kind), device::name(turn.type)));
    barrier_ = std::make_unique<gloo::BarrierAllToAll>(context->second);
    return {};
  }

  Status call() override {
    job_.run();
    return {};
  }

  const std::byte* result(const Buffers&) const override { return job_.result; }

  void finish() override {
    // Buffers must not be freed while another rank still sends into them.
    if (barrier_) barrier_->run();
    job_ = {};
    barrier_.reset();
  }

 private:
  static void barrier_of(const Context& context) { gloo::BarrierAllToAll(context).run(); }

  Job make(const Context& context, const BenchTurn& turn, const Buffers& buffers,
           std::string_view algorithm) {
    const auto count = static_cast<std::size_t>(buffers.count);
    const auto all = count * static_cast<std::size_t>(ranks_);
    const auto of = [&]<class T>(T) {
      return OneType<T>{context, buffers, count, all}.make(turn.kind, algorithm);
    };
    // For data that is only moved, any type of the same size will do.
    if (!collective::reduces(turn.kind) && turn.type == ElementType::bf16) return of(gloo::float16{});
    switch (turn.type) {
      case ElementType::f64: return of(double{});
      case ElementType::f32: return of(float{});
      case ElementType::f16: return of(gloo::float16{});
      case ElementType::i8: return of(std::int8_t{});
      case ElementType::i32: return of(std::int32_t{});
      case ElementType::i64: return of(std::int64_t{});
      case ElementType::u8: return of(std::uint8_t{});
      case ElementType::u64: return of(std::uint64_t{});
      default: return {};
    }
  }

  int rank_, ranks_;
  std::map<std::string, Context> contexts_;
  Job job_;
  std::unique_ptr<gloo::BarrierAllToAll> barrier_;
};

Status serve() {
  WEFT_TRY(place, measure::rank_from_bench_environment());
  GlooLibrary library(place);
  return measure::serve_bench(library);
}

}  // namespace
}  // namespace weft

int main() {
  try {
    const weft::Status served = weft::serve();
    if (served.ok()) return 0;
    std::fprintf(stderr, "%s\n", served.error().message.c_str());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
  }
  return 1;
}
