// weft/app/command/simulate.h -- `weft simulate`: Chakra traces on a network of ASTRA-sim's description.
#pragma once
#include <string>

#include "weft/app/session/session.h"

namespace weft::command {

struct Simulate {
  std::string traces;                 // a folder or a prefix: PREFIX.RANK.et
  std::string network;                // a .yml file
  std::string system;                 // a .json file; none: rings, in one chunk
  std::string wires = "cut-through";  // or store-and-forward, uncontended
  std::string timeline = {};          // a file to write a Perfetto trace to; none: none
  bool exact = false;
  session::Format format = session::Format::text;
};
session::Reply run(const Simulate& request);

}  // namespace weft::command
