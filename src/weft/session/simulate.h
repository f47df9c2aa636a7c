// weft/session/simulate.h -- `weft simulate`: Chakra traces on a network of ASTRA-sim's description.
#pragma once
#include <string>

#include "weft/session/session.h"

namespace weft::session {

struct Simulate {
  std::string traces;                 // a folder or a prefix: PREFIX.RANK.et
  std::string network;                // a .yml file
  std::string system;                 // a .json file; none: rings, in one chunk
  std::string wires = "cut-through";  // or store-and-forward, uncontended
  std::string timeline = {};          // a file to write a Perfetto trace to; none: none
  bool exact = false;
  Format format = Format::text;
};
Reply run(const Simulate& request);

}  // namespace weft::session
