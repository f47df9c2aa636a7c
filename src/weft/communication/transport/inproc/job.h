// weft/communication/transport/inproc/job.h -- a job whose ranks are threads of this process: for
// tests, and to run without a launcher. make_thread_jobs() of job.h creates them.
//
// handle(), forget() and leave() return only when the removed handler or listener no longer runs,
// unless it makes the call itself.
#pragma once
#include "weft/communication/transport/job.h"

namespace weft::transport::inproc {

// Simulates a killed rank: all others are notified, and all further calls of this job fail.
// REQUIRES: the job came from make_thread_jobs.
void kill_thread_rank(Job& job);

}  // namespace weft::transport::inproc
