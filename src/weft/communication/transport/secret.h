// weft/communication/transport/secret.h -- where a job's secret comes from.
//
//   WEFT_JOB_SECRET         from weft launch, or the user's own launcher
//   WEFT_JOB_SECRET_FILE    a file that only its owner can read
//   ~/.config/weft/job_key  made at first use, one for each user: enough where home directories are shared
//
// A secret is never on a command line, where every user of the machine could read it.
#pragma once
#include <cstddef>
#include <string>

#include "weft/base/result.h"

namespace weft::transport {

// From the kernel; fit for keys.
std::string random_bytes(std::size_t count);

// The first of the above that there is. Refuses a file that others can read or that is not the user's, and
// a secret of fewer than 16 bytes.
Result<std::string> find_secret();

}  // namespace weft::transport
