// weft/predict/cost/machine_identity.h -- identifies the kind of machine of a measurement.
//
//   "aarch64, ARM 0x41 part 0xd40, 2 processors, 23 GiB"
//
// It contains what determines a machine's speed, and nothing that names the machine or its owner.
// So a copied or shared home directory keeps the measurements of different machines apart, and
// machines of one kind share theirs. Only processors available to this process are counted: with
// fewer of them, the same machine has another identity.
#pragma once
#include <string>
#include <string_view>

namespace weft::cost {

std::string machine_identity();

// The processor's name in the contents of /proc/cpuinfo; "unknown processor" if it has none.
std::string processor_name(std::string_view cpuinfo);

}  // namespace weft::cost
