// weft/predict/cost/machine_identity.h -- which machine a measurement was made on.
//
//   "aarch64, ARM 0x41 part 0xd40, 2 processors, 23 GiB"
//
// What decides how fast a machine is, and nothing that names it or its owner: a home directory that is copied
// or shared keeps the figures of different machines apart, and machines of one kind share theirs. Processors
// are those that this process may use: with fewer of them, the same machine is another one.
#pragma once
#include <string>
#include <string_view>

namespace weft::cost {

std::string machine_identity();

// The processor's name in the text of /proc/cpuinfo; "unknown processor" where it says none.
std::string processor_name(std::string_view cpuinfo);

}  // namespace weft::cost
