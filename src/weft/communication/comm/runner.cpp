#include "weft/communication/comm/runner.h"

#include "weft/base/check.h"

namespace weft::comm {
namespace {

template <class Sleeper>  // DirectGroup or Endpoint: same wait interface
class SleeperSource final : public Source {
 public:
  explicit SleeperSource(Sleeper& sleeper) : sleeper_(sleeper) {}
  std::uint32_t signal() override { return sleeper_.signal(); }
  void wait(std::uint32_t seen, std::chrono::nanoseconds patience) override { sleeper_.wait(seen, patience); }
  void wake() override { sleeper_.wake(); }

 private:
  Sleeper& sleeper_;
};

class DirectRunner final : public Runner {
 public:
  DirectRunner(DirectGroup& group, Source& source, const DirectOptions& wish)
      : group_(group), source_(source), wish_(wish) {}

  const void* resource(const Call& call) const override { return group_.lane(call); }
  bool can_start(const Call& call) const override { return group_.can_start(call); }
  Operation* start(const Call& call, std::uint64_t number) override {
    return group_.start(call, number, wish_);
  }
  void finish(Operation* operation) override { group_.finish(operation); }
  Source& source() override { return source_; }
  bool reports_both_sides() const override { return true; }

 private:
  DirectGroup& group_;
  Source& source_;
  DirectOptions wish_;
};

// One call at a time: messages of the next call use the same connections.
class ProgramRunner final : public Runner {
 public:
  ProgramRunner(ReadyProgram& program, Source& source) : program_(program), source_(source) {}

  const void* resource(const Call&) const override { return &program_; }
  bool can_start(const Call&) const override { return running_ == nullptr; }
  Operation* start(const Call& call, std::uint64_t) override {
    running_ = program_.start(call);
    return running_.get();
  }
  void finish(Operation* operation) override {
    WEFT_CHECK(operation == running_.get());
    running_.reset();
  }
  Source& source() override { return source_; }

 private:
  ReadyProgram& program_;
  Source& source_;
  std::unique_ptr<Operation> running_;
};

// One send and one receive per priority at a time.
class PairRunner final : public Runner {
 public:
  PairRunner(Pair& pair, Source& meanwhile, std::int32_t rank)
      : pair_(pair), meanwhile_(meanwhile), rank_(rank) {}

  const void* resource(const Call& call) const override { return &place_of(call); }
  bool can_start(const Call& call) const override {
    return pair_.is_open.load(std::memory_order_acquire) && place_of(call) == nullptr;
  }
  Operation* start(const Call& call, std::uint64_t) override {
    return start_pair(pair_, call, call.root == rank_);
  }
  void finish(Operation* operation) override {
    for (PairWires& wires : pair_.wires)
      for (std::unique_ptr<Operation>* place : {&wires.sending, &wires.receiving})
        if (place->get() == operation) place->reset();
  }
  Source& source() override {
    return pair_.is_open.load(std::memory_order_acquire) && pair_.source ? *pair_.source : meanwhile_;
  }

 private:
  const std::unique_ptr<Operation>& place_of(const Call& call) const {
    const PairWires& wires = pair_.wires[static_cast<std::size_t>(call.priority)];
    return call.root == rank_ ? wires.sending : wires.receiving;
  }

  Pair& pair_;
  Source& meanwhile_;
  std::int32_t rank_;
};

}  // namespace

std::unique_ptr<Source> source_of(DirectGroup& group) {
  return std::make_unique<SleeperSource<DirectGroup>>(group);
}
std::unique_ptr<Source> source_of(transport::Endpoint& endpoint) {
  return std::make_unique<SleeperSource<transport::Endpoint>>(endpoint);
}

std::unique_ptr<Runner> direct_runner(DirectGroup& group, Source& source, const DirectOptions& wish) {
  return std::make_unique<DirectRunner>(group, source, wish);
}
std::unique_ptr<Runner> program_runner(ReadyProgram& program, Source& source) {
  return std::make_unique<ProgramRunner>(program, source);
}
std::unique_ptr<Runner> pair_runner(Pair& pair, Source& meanwhile, std::int32_t rank) {
  return std::make_unique<PairRunner>(pair, meanwhile, rank);
}

}  // namespace weft::comm
