// A rank of Weft itself in `weft bench`: the library with its default settings.
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "weft/communication/comm/communicator.h"
#include "weft/communication/transport/rendezvous.h"
#include "weft/runtime/measure/bench_rank.h"

namespace weft::measure {
namespace {

class WeftLibrary : public BenchLibrary {
 public:
  explicit WeftLibrary(std::unique_ptr<comm::Communicator> group) : group_(std::move(group)) {}

  std::string version() const override { return fmt::format("weft over {}", group_->transport()); }
  std::int32_t rank() const override { return group_->rank(); }
  std::int32_t ranks() const override { return group_->size(); }
  Status barrier() override { return group_->barrier(); }

  Status prepare(const BenchTurn& turn, const Buffers& buffers) override {
    call_.kind = turn.kind;
    call_.input = buffers.input;
    call_.output = buffers.output;
    call_.count = buffers.count;
    call_.type = turn.type;
    return {};
  }

  Status call() override { return group_->run(call_); }

  Result<std::byte*> allocate(std::size_t bytes) override {
    WEFT_TRY(memory, group_->allocate(bytes));
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory) override { group_->free(memory); }

 private:
  std::unique_ptr<comm::Communicator> group_;
  comm::Call call_;
};

}  // namespace

Status run_bench_rank(std::string_view transport) {
  WEFT_TRY(place, rank_from_bench_environment());
  const char* secret = std::getenv("WEFT_JOB_SECRET");
  const char* name = std::getenv(kBenchSocket);
  if (secret == nullptr || name == nullptr)
    return user_error("only weft bench starts ranks of the bench", "weft bench all-reduce");
  transport::Rendezvous rendezvous;
  rendezvous.rank = place.rank;
  rendezvous.ranks = place.ranks;
  rendezvous.name = name;
  rendezvous.secret = secret;
  WEFT_TRY(job, transport::join(rendezvous));
  comm::Options options;
  const auto kind = comm::find_transport(transport);
  if (!kind) return user_error(fmt::format("unknown transport: {}", transport));
  options.transport = *kind;
  WEFT_TRY(group, comm::Communicator::create(std::move(job), options));
  WeftLibrary library(std::move(group));
  return serve_bench(library);
}

}  // namespace weft::measure
