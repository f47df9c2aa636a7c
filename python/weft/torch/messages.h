// weft/torch/messages.h -- send and receive of tensors, and the monitored barrier.
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
  Mailbox::Header header;
  header.tag = tag;
  header.type = static_cast<int32_t>(tensor.scalar_type());
  header.count = tensor.numel();
  header.bytes = static_cast<int64_t>(dense.bytes());
  const int status = group.mailbox().send(dense.data(), header, to, timeout);
  if (status != WEFT_OK)
    group.check(status, ("send to rank " + std::to_string(to) + " with tag " + std::to_string(tag)).c_str());
}

// Returns the sender; `from` may be WEFT_ANY.
inline int receive(Group& group, const at::Tensor& tensor, int from, int tag, Milliseconds timeout) {
  const Dense dense(tensor);
  const auto fail = [&](const std::string& why) {
    const std::string sender = from == WEFT_ANY ? "any rank" : "rank " + std::to_string(from);
    throw std::runtime_error("weft recv from " + sender + " with tag " + std::to_string(tag) +
                             " failed on rank " + std::to_string(group.rank()) + " of " +
                             std::to_string(group.size()) + ": " + why);
  };
  Mailbox::Received received;
  try {
    if (!group.mailbox().receive(dense.data(), static_cast<int64_t>(dense.bytes()), from, tag, timeout,
                                 received))
      fail("timeout: no message arrived within " + std::to_string(timeout.count()) + " ms");
  } catch (const Mailbox::Failure& failure) {
    fail(failure.what());
  }
  const Mailbox::Header& sent = received.header;
  const auto type = static_cast<at::ScalarType>(sent.type);
  if (sent.count != tensor.numel() || type != tensor.scalar_type())
    fail("rank " + std::to_string(received.from) + " sent " + std::to_string(sent.count) + " elements of " +
         at::toString(type) + ", and the tensor has " + std::to_string(tensor.numel()) + " of " +
         at::toString(tensor.scalar_type()));
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
      status =
          library().receive_tagged(group.comm(), &token, 1, WEFT_U8, 0, kBarrierTag, patience(), nullptr);
    require(status == WEFT_OK, "Rank ", group.rank(),
            " successfully reached monitoredBarrier, but received errors while waiting for send/recv from "
            "rank 0: ",
            library().last_error(), ". The error of rank 0 names the missing rank");
    return;
  }
  std::vector<int> missing;
  for (int rank = 1; rank < group.size(); ++rank) {
    require(left() > 0 || wait_for_all, "Rank 0 timed out in monitoredBarrier after ", timeout.count(),
            " ms, before rank ", rank);
    if (library().receive_tagged(group.comm(), &token, 1, WEFT_U8, rank, kBarrierTag, patience(), nullptr) ==
        WEFT_OK)
      continue;
    missing.push_back(rank);
    require(wait_for_all, "[Rank 0]: Rank ", rank, " failed to pass monitoredBarrier in ", timeout.count(),
            " ms: ", library().last_error());
  }
  std::string names;
  for (const int rank : missing) names += (names.empty() ? "" : ", ") + std::to_string(rank);
  require(missing.empty(), "[Rank 0]: Ranks ", names, " failed to pass monitoredBarrier in ", timeout.count(),
          " ms");
  for (int rank = 1; rank < group.size(); ++rank)
    group.check(library().send_tagged(group.comm(), &token, 1, WEFT_U8, rank, kBarrierTag, patience()),
                "monitored_barrier");
}

}  // namespace message
}  // namespace weft_torch
