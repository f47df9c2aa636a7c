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
inline void monitored_barrier(Group& group, bool wait_for_all, Milliseconds timeout) {
  char token = 0;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto left = [&] {
    const auto rest = std::chrono::duration_cast<Milliseconds>(deadline - std::chrono::steady_clock::now());
    return std::max(rest, Milliseconds(1)).count();
  };
  if (group.rank() != 0) {
    int status = library().send_tagged(group.comm(), &token, 1, WEFT_U8, 0, kBarrierTag, left());
    if (status == WEFT_OK)
      status = library().receive_tagged(group.comm(), &token, 1, WEFT_U8, 0, kBarrierTag, left(), nullptr);
    return group.check(status, "monitored_barrier: rank 0 did not answer; a rank may be missing");
  }
  std::string missing;
  std::string why;
  for (int rank = 1; rank < group.size(); ++rank) {
    if (library().receive_tagged(group.comm(), &token, 1, WEFT_U8, rank, kBarrierTag, left(), nullptr) == WEFT_OK)
      continue;
    why = library().last_error();
    missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    if (!wait_for_all) break;
  }
  TORCH_CHECK(missing.empty(), "[Rank 0]: Ranks ", missing, " failed to pass monitoredBarrier in ", timeout.count(),
              " ms: ", why);
  for (int rank = 1; rank < group.size(); ++rank)
    group.check(library().send_tagged(group.comm(), &token, 1, WEFT_U8, rank, kBarrierTag, left()),
                "monitored_barrier");
}

}  // namespace message
}  // namespace weft_torch
