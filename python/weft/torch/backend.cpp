// weft/torch/backend.cpp -- the only source of the extension, compiled by python -m weft.torch.build.
#include "backend.h"

#include <pybind11/pybind11.h>

#include <memory>
#include <set>

#include "calls.h"
#include "coalesced.h"
#include "messages.h"
#include "rendezvous.h"

namespace weft_torch {
namespace {

std::mutex all_mutex;
std::set<WeftBackend*> all_backends;

}  // namespace

WeftBackend::WeftBackend(std::shared_ptr<Group> group, Milliseconds timeout)
    : Base(group->rank(), group->size()), group_(std::move(group)), timeout_(timeout) {
  const std::lock_guard<std::mutex> lock(all_mutex);
  all_backends.insert(this);
}

WeftBackend::~WeftBackend() {
  {
    const std::lock_guard<std::mutex> lock(all_mutex);
    all_backends.erase(this);
  }
  // Callbacks of operations may need the interpreter, which holds its lock while it frees this.
  std::unique_ptr<pybind11::gil_scoped_release> unlocked;
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0)
    unlocked = std::make_unique<pybind11::gil_scoped_release>();
  finish(std::chrono::steady_clock::time_point::max());
}

int WeftBackend::check_rank(const char* call, int64_t rank) const {
  require(rank >= 0 && rank < size_, "weft ", call, ": there is no rank ", rank, " in a group of ", size_);
  return static_cast<int>(rank);
}

WeftBackend::WorkResult WeftBackend::add(Queue& queue, const WorkPointer& work, bool at_once) {
  const bool is_part = coalescing_ == std::this_thread::get_id();
  queue.add(work, at_once && !is_part);
  if (is_part) coalesced_.push_back(work);
  return work;
}

WeftBackend::WorkResult WeftBackend::start(c10d::OpType type, const char* title, const Tensors& inputs,
                                           Tensors outputs, bool at_once, Body body) {
  ++calls_;
  auto work = c10::make_intrusive<WeftWork>(rank_, type, title, inputs, std::move(outputs));
  work->body = [group = group_, body = std::move(body)](WeftWork& self) {
    body(*group, self);
    group->trim_scratch();
  };
  return add(*collectives_, work, at_once);
}

void WeftBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_for_all) {
  message::monitored_barrier(*group_, wait_for_all, limit(options.timeout));
}

void WeftBackend::check_message(const char* call, Tensors& tensors, int tag) const {
  check_one(call, tensors);
  require(tag >= 0 && tag != message::kBarrierTag, "weft ", call, ": a tag is 0 to ",
          message::kBarrierTag - 1, ", found ", tag);
}

WeftBackend::WorkResult WeftBackend::start_message(c10d::OpType type, const char* title,
                                                   const at::Tensor& tensor, bool sends, int peer, int tag,
                                                   Body body) {
  auto work = c10::make_intrusive<WeftWork>(rank_, type, title, Tensors{tensor}, Tensors{tensor});
  work->body = [group = group_, body = std::move(body)](WeftWork& self) { body(*group, self); };
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto each = messages_.begin(); each != messages_.end();)
    each = each->second->is_idle() ? messages_.erase(each) : std::next(each);
  std::shared_ptr<Queue>& queue = messages_[std::make_tuple(sends, peer, tag)];
  if (!queue) queue = std::make_shared<Queue>();
  return add(*queue, work, false);
}

WeftBackend::WorkResult WeftBackend::send(Tensors& tensors, int to, int tag) {
  check_message("send", tensors, tag);
  const at::Tensor tensor = tensors.front();
  check_rank("send", to);
  return start_message(c10d::OpType::SEND, "weft:send", tensor, true, to, tag,
                       [tensor, to, tag, timeout = timeout_](Group& group, WeftWork&) {
                         message::send(group, tensor, to, tag, timeout);
                       });
}

WeftBackend::WorkResult WeftBackend::recv(Tensors& tensors, int from, int tag) {
  check_message("recv", tensors, tag);
  const at::Tensor tensor = tensors.front();
  check_rank("recv", from);
  return start_message(c10d::OpType::RECV, "weft:recv", tensor, false, from, tag,
                       [tensor, from, tag, timeout = timeout_](Group& group, WeftWork& work) {
                         work.source = message::receive(group, tensor, from, tag, timeout);
                       });
}

WeftBackend::WorkResult WeftBackend::recvAnysource(Tensors& tensors, int tag) {
  check_message("recv", tensors, tag);
  const at::Tensor tensor = tensors.front();
  return start_message(c10d::OpType::RECVANYSOURCE, "weft:recvAnySource", tensor, false, WEFT_ANY, tag,
                       [tensor, tag, timeout = timeout_](Group& group, WeftWork& work) {
                         work.source = message::receive(group, tensor, WEFT_ANY, tag, timeout);
                       });
}

#if WEFT_TORCH_COALESCES
void WeftBackend::startCoalescing() {
  std::thread::id none;
  require(coalescing_.compare_exchange_strong(none, std::this_thread::get_id()),
          "weft: startCoalescing() was called twice without endCoalescing()");
}

WeftBackend::WorkResult WeftBackend::endCoalescing() {
  require(coalescing_ == std::this_thread::get_id(), "weft: endCoalescing() without startCoalescing()");
  CoalescedWork::Parts parts = std::exchange(coalesced_, {});
  coalescing_ = std::thread::id();
  return make_coalesced(rank_, std::move(parts));
}
#endif

void WeftBackend::abort() { library().abort(group_->comm(), 1, "the process group was aborted"); }

bool WeftBackend::finish(std::chrono::steady_clock::time_point deadline) {
  return collectives_->drain(deadline);
}

void WeftBackend::leave() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& each : messages_)
    if (!each.second->is_idle()) return;
  group_->close();
}

void WeftBackend::shutdown() {
  finish(std::chrono::steady_clock::time_point::max());
  leave();
}

void finish_all() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const std::lock_guard<std::mutex> lock(all_mutex);
  for (WeftBackend* const each : all_backends) {
    if (each->finish(deadline)) {
      each->leave();
    } else {
      each->abort();
    }
  }
}

c10::intrusive_ptr<Base> create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                Milliseconds timeout) {
  return c10::make_intrusive<WeftBackend>(join(*store, rank, size, timeout), timeout);
}

}  // namespace weft_torch

#include "module.h"
