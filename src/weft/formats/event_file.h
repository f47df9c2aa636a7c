// weft/formats/event_file.h -- TensorBoard event files: scalars over steps.
//
//   length 8 | checksum 4 | event | checksum 4         a record (TFRecord): little-endian, crc32c masked
//
//   event    1: seconds since 1970, a double           protobuf
//            2: step
//            3: "brain.Event:2", in the first event of a file
//            5: { 1: { 1: tag, 2: value, a float } }
//
// TensorBoard shows files whose names contain "tfevents".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::formats {

std::string first_event(double wall_seconds);
std::string scalar_event(double wall_seconds, std::int64_t step, std::string_view tag, double value);

}  // namespace weft::formats
