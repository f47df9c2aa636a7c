// weft/communication/transport/process_job.h -- a job whose ranks are processes: a thread watches a
// link to every other rank.
//
//   application threads ── send, exchange ──▶ links ──▶ other ranks
//   watcher thread      ◀── frames, closed links, `weft doctor`
//
// Failure detection: a link that closes without a goodbye means a failed rank, at once. Between
// hosts each side sends eight heartbeats per timeout, and the kernel reports links with
// unacknowledged bytes. So a lost machine is detected within the timeout. A stopped process is not
// a failure, since its kernel still answers (unless it is sent more than its kernel can buffer). A
// rank that learns of a failure notifies all others once; a failure is permanent. A rank that was
// dropped by mistake is notified and drops the others.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/communication/transport/control_link.h"
#include "weft/communication/transport/handshake.h"
#include "weft/communication/transport/job.h"

namespace weft::transport {

// The result of bootstrap: see bootstrap.h.
struct Circle {
  std::int32_t rank = 0;
  std::vector<Member> members;
  std::vector<ControlLink> lines;  // by rank; empty for this one
  std::string secret;              // for this run of the job
  std::chrono::milliseconds timeout{30'000};
  Traffic traffic = Traffic::plain;
};

Result<std::unique_ptr<Job>> make_process_job(Circle circle);

}  // namespace weft::transport
