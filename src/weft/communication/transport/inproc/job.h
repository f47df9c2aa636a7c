// weft/communication/transport/inproc/job.h -- a job whose ranks are threads of this process: for tests, and to run without
// a launcher. make_thread_jobs() of job.h makes them.
//
// handle(), forget() and leave() return only when the handler or listener they take away no longer runs,
// unless they are called by it.
#pragma once
#include "weft/communication/transport/job.h"

namespace weft::transport::inproc {

// As if the rank's process had been killed: all others are told, and all further calls of this job fail.
// REQUIRES: the job came from make_thread_jobs.
void kill_thread_rank(Job& job);

}  // namespace weft::transport::inproc
