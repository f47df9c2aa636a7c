// weft/app/explain/diagnosis.h -- what ranks said they are doing, a summary first.
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

// A rank is said to wait where it has waited for a second; of its calls and steps the last `rows` are printed.
std::string print_text(std::span<const transport::Patient> patients, std::size_t rows = SIZE_MAX);
std::string print_json(std::span<const transport::Patient> patients);  // one line

}  // namespace weft::explain
