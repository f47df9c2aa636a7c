// weft/app/command/simulate.h -- `weft simulate`: runs Chakra traces on an ASTRA-sim network.
#pragma once
#include <string>

#include "weft/app/session/session.h"

namespace weft::command {

struct Simulate {
  std::string traces;                 // a folder, or the prefix of PREFIX.RANK.et
  std::string network;                // a .yml file
  std::string system;                 // a .json file; empty: rings with one chunk
  std::string wires = "cut-through";  // or store-and-forward, uncontended
  std::string timeline = {};          // Perfetto trace file to write; empty: none
  bool exact = false;
  session::Format format = session::Format::text;
};
session::Reply run(const Simulate& request);

}  // namespace weft::command
