// weft/torch/messages.h -- send, receive, and the monitored barrier, by tagged messages.
#pragma once
#include <string>
#include <vector>

#include "group.h"
#include "tensors.h"

namespace weft_torch {
namespace message {

// Tag of the monitored barrier. torch's tags are small.
constexpr int32_t kBarrierTag = 0x7fffffff;

inline void send(Group& group, const at::Tensor& tensor, int to, int tag, Milliseconds timeout) {
  const Dense dense(tensor);
  const Element element = element_of(tensor);
  const std::string call = "send to rank " + std::to_string(to) + " with tag " + std::to_string(tag);
  group.check(library().send_tagged(group.comm(), dense.data(), tensor.numel() * element.per_item, element.type, to,
                                    tag, timeout.count()),
              call.c_str());
}

// Returns the sender; `from` may be WEFT_ANY.
inline int receive(Group& group, const at::Tensor& tensor, int from, int tag, Milliseconds timeout) {
  const Dense dense(tensor);
  const Element element = element_of(tensor);
  const int64_t count = tensor.numel() * element.per_item;
  weft_received received{};
  const std::string call = "recv from " + (from == WEFT_ANY ? "any rank" : "rank " + std::to_string(from)) +
                           " with tag " + std::to_string(tag);
  group.check(library().receive_tagged(group.comm(), dense.data(), count, element.type, from, tag, timeout.count(),
                                       &received),
              call.c_str());
  TORCH_CHECK(received.count == count, "weft ", call, " failed on rank ", group.rank(), ": rank ", received.from,
              " sent ", received.count / element.per_item, " elements, and the tensor has ", tensor.numel());
  dense.write_back();
  return received.from;
}

// Rank 0 receives a message from every rank and answers it. It names the first missing rank, or all.
// The texts are those of gloo, which programs may search for.
inline void monitored_barrier(Group& group, bool wait_for_all, Milliseconds timeout) {
  char token = 0;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto left = [&] {
    return std::chrono::duration_cast<Milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  };
  const auto patience = [&] { return std::max<int64_t>(left(), 1); };  // 0 is no limit
  if (group.rank() != 0) {
    int status = library().send_tagged(group.comm(), &token, 1, WEFT_U8, 0, kBarrierTag, patience());
    if (status == WEFT_OK)
      status = library().receive_tagged(group.comm(), &token, 1, WEFT_U8, 0, kBarrierTag, patience(), nullptr);
    TORCH_CHECK(status == WEFT_OK, "Rank ", group.rank(),
                " successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0: ",
                library().last_error(), ". The error of rank 0 names the missing rank");
    return;
  }
  std::vector<int> missing;
  for (int rank = 1; rank < group.size(); ++rank) {
    TORCH_CHECK(left() > 0 || wait_for_all, "Rank 0 timed out in monitoredBarrier after ", timeout.count(),
                " ms, before rank ", rank);
    if (library().receive_tagged(group.comm(), &token, 1, WEFT_U8, rank, kBarrierTag, patience(), nullptr) == WEFT_OK)
      continue;
    missing.push_back(rank);
    TORCH_CHECK(wait_for_all, "[Rank 0]: Rank ", rank, " failed to pass monitoredBarrier in ", timeout.count(),
                " ms: ", library().last_error());
  }
  std::string names;
  for (const int rank : missing) names += (names.empty() ? "" : ", ") + std::to_string(rank);
  TORCH_CHECK(missing.empty(), "[Rank 0]: Ranks ", names, " failed to pass monitoredBarrier in ", timeout.count(),
              " ms");
  for (int rank = 1; rank < group.size(); ++rank)
    group.check(library().send_tagged(group.comm(), &token, 1, WEFT_U8, rank, kBarrierTag, patience()),
                "monitored_barrier");
}

}  // namespace message
}  // namespace weft_torch
