// weft/app/explain/diagnosis.h -- what each rank reports that it is doing, after a summary.
//
//   4 ranks here: 2 wait, 1 does not answer
//   rank 0 waits for rank 3 in an exchange for 4.2 s (group 0, number 7)
//
//   rank 0 of 4, process 4711
//     ...
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "weft/communication/transport/doctor.h"

namespace weft::explain {

// Counts a rank as waiting after one second. Prints the last `rows` of its calls and steps.
std::string print_text(std::span<const transport::RankReport> patients, std::size_t rows = SIZE_MAX);
std::string print_json(std::span<const transport::RankReport> patients);  // one line

}  // namespace weft::explain
