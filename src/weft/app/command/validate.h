// weft/app/command/validate.h -- `weft validate`: predictions beside what others measured.
//
//   weft validate runs.csv ...    every row estimated as its authors ran it; errors by file and overall
//
// Rows fall into two halves by a hash of their ids: constants are fitted on one, and errors are those of the other.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

enum class Half : std::uint8_t { fitted, unseen, both };

struct Validate {
  std::vector<std::string> files;
  std::string stack;  // of all rows; empty: as the rows and files say
  Half half = Half::unseen;
  std::string only;            // part of the ids to estimate; empty: all
  bool rows = false;           // a line per row
  bool anchor = false;         // also with the smallest run of each series as a measured step
  std::int64_t most_rows = 0;  // of each file; 0: all
  session::Format format = session::Format::text;
  std::size_t width = explain::kUsualWidth;
  std::function<bool()> interrupted = {};
};
session::Reply run(const Validate& request);

}  // namespace weft::command
