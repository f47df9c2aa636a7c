// weft/communication/transport/process_job.h -- a job whose ranks are processes: a thread that watches a line to every
// other.
//
//   application threads ── send, exchange ──▶ lines ──▶ other ranks
//   watcher thread      ◀── frames, ends of lines, `weft doctor`
//
// Deaths: a line that ends without a goodbye is a death, at once. Between hosts every side says that it is
// alive eight times in a timeout, and the kernel reports a line whose bytes nobody acknowledges. So a machine
// that is gone is noticed within the timeout. A process that is stopped is not called dead, since its kernel
// still answers (unless so much is sent to it that its kernel can hold no more). A rank that learns of a
// death tells all others once; a death is for good. A rank that was given up wrongly is told so, and gives up
// the others.
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

// Ranks that have come together: see meeting.h.
struct Circle {
  std::int32_t rank = 0;
  std::vector<Member> members;
  std::vector<ControlLink> lines;  // by rank; none to this one
  std::string secret;              // of this run of the job
  std::chrono::milliseconds timeout{30'000};
  Traffic traffic = Traffic::plain;
};

Result<std::unique_ptr<Job>> make_process_job(Circle circle);

}  // namespace weft::transport
