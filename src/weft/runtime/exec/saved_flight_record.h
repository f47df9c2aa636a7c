// weft/runtime/exec/saved_flight_record.h -- keeps a rank's flight record after a device failure, for `weft doctor`.
//
// A single text in ~/.cache/weft/flights: the user's most recent failure, because a job that has
// ended cannot be queried.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace weft::exec {

struct SavedFlightRecord {
  pid_t process = 0;  // that wrote the record
  std::string time;   // "2026-01-31 14:05:00 UTC"
  std::string text;   // from DeviceFlightRecorder::print()
};

// Does nothing if the text cannot be stored.
void save_flight_record(std::string_view text);
std::optional<SavedFlightRecord> find_saved_flight_record();

}  // namespace weft::exec
