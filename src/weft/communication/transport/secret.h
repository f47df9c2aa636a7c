// weft/communication/transport/secret.h -- source of a job's secret.
//
//   WEFT_JOB_SECRET         from weft launch, or the user's own launcher
//   WEFT_JOB_SECRET_FILE    a file that only its owner can read
//   ~/.config/weft/job_key  created on first use, one per user: enough if home directories are shared
//
// A secret is never on a command line, where every user of the machine could read it.
#pragma once
#include <cstddef>
#include <string>

#include "weft/base/result.h"

namespace weft::transport {

// From the kernel; cryptographically secure.
std::string random_bytes(std::size_t count);

// The first of the above that exists. Refuses a file that others can read or that the user does not
// own, and a secret shorter than 16 bytes.
Result<std::string> find_secret();

}  // namespace weft::transport
