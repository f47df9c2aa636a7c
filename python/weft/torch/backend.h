// weft/torch/backend.h -- the c10d backend "weft".
//
//   torch 1.13       c10d::ProcessGroup    the process group itself
//   torch 2.0 on     c10d::Backend         one device's part of a process group
//
// Every method checks its tensors on the calling thread, adds an operation to a queue and returns it.
// Methods that a version of torch does not have are plain members there: so no `override` on those
// that came later.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include <torch/version.h>

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

#include "group.h"
#include "tensors.h"
#include "work.h"

// torch 2.0 coalesces as 1.13 does: calls between start and end are ordinary calls.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
#define WEFT_TORCH_COALESCES 1
#else
#define WEFT_TORCH_COALESCES 0
#endif

namespace weft_torch {

#if TORCH_VERSION_MAJOR >= 2
using Base = c10d::Backend;
#else
using Base = c10d::ProcessGroup;
#endif

class WeftBackend : public Base {
 public:
  using WorkResult = c10::intrusive_ptr<c10d::Work>;

  WeftBackend(std::shared_ptr<Group> group, Milliseconds timeout);
  ~WeftBackend() override;

  const std::string getBackendName() const override { return "weft"; }

  WorkResult broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkResult allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkResult allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options);
  WorkResult allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkResult reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkResult allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkResult _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkResult allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                 const c10d::AllgatherOptions& options) override;
  WorkResult allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options);
  WorkResult gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkResult scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) override;
  WorkResult reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                            const c10d::ReduceScatterOptions& options) override;
  WorkResult _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                  const c10d::ReduceScatterOptions& options) override;
  WorkResult reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                             const c10d::ReduceScatterOptions& options);
  WorkResult alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                           std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  WorkResult alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkResult barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_for_all) override;

  WorkResult send(Tensors& tensors, int to, int tag) override;
  WorkResult recv(Tensors& tensors, int from, int tag) override;
  WorkResult recvAnysource(Tensors& tensors, int tag) override;

  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return calls_; }

#if WEFT_TORCH_COALESCES
  bool supportsCoalescing() const { return true; }
  void startCoalescing() override;
  WorkResult endCoalescing() override;
  c10::intrusive_ptr<Base::Options> getBackendOptions() { return options_; }
#endif
  // The timeout of later calls.
  void setTimeout(Milliseconds timeout) { timeout_ = timeout; }
  // Fails all current and later calls on all ranks.
  void abort();
  // Waits for the collectives that were started; false at the deadline, with some not done.
  bool finish(std::chrono::steady_clock::time_point deadline);
  void leave();
  // The same, and leaves the group, unless messages are under way.
  void shutdown();

 private:
  using Body = std::function<void(Group&, WeftWork&)>;

  Milliseconds limit(Milliseconds given) const { return given == c10d::kUnsetTimeout ? timeout_ : given; }
  int check_rank(const char* call, int64_t rank) const;
  void check_message(const char* call, Tensors& tensors, int tag) const;
  WorkResult start(c10d::OpType type, const char* title, const Tensors& inputs, Tensors outputs, bool at_once,
                   Body body);
  WorkResult start_message(c10d::OpType type, const char* title, const at::Tensor& tensor, bool sends, int peer,
                           int tag, Body body);
  WorkResult add(Queue& queue, const WorkPointer& work, bool at_once);

  const std::shared_ptr<Group> group_;
  Milliseconds timeout_;
#if WEFT_TORCH_COALESCES
  const c10::intrusive_ptr<Base::Options> options_ = c10::make_intrusive<Base::Options>("weft", timeout_);
#endif
  uint64_t calls_ = 0;
  const std::shared_ptr<Queue> collectives_ = std::make_shared<Queue>();
  std::mutex mutex_;
  // Messages by direction, peer and tag: only those of one key are in order.
  std::map<std::tuple<bool, int, int>, std::shared_ptr<Queue>> messages_;
  // Between startCoalescing() and endCoalescing(): the calls of this thread.
  std::atomic<std::thread::id> coalescing_{};
  std::vector<WorkResult> coalesced_;
};

// Creates the backend of a process group. All its ranks call it.
c10::intrusive_ptr<Base> create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                Milliseconds timeout);

// At exit: gives the collectives of all groups a while to finish, then aborts the groups that did not,
// and leaves the others.
void finish_all();

}  // namespace weft_torch
