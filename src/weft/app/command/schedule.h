// weft/app/command/schedule.h -- `weft schedule`: commands for pipeline schedules.
//
//   list        the shipped pipeline schedules
//   show        a schedule for given stages and micro-batches, drawn as text or SVG
//   check       whether a file's schedule is valid; see pipeline/verify.h
//   price       its time and memory under given pass times
//   export      writes it for PyTorch; see pipeline/torch_csv.h
//   synthesize  the best schedule found for given times and memory
//
// A schedule is the name of a shipped one ("1F1B", "zb_h1") or a file: PyTorch's CSV if it ends with .csv.
// Nothing here prints.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct ScheduleList {
  session::Format format = session::Format::text;
  std::size_t width = explain::kUsualWidth;
};
session::Reply run(const ScheduleList& request);

// Numbers, or comma-separated lists with one number per stage.
struct PassTimes {
  std::string forward = "1", backward = "1", weight = "1", transfer = "0";
  double overlap = 0;  // fraction of the shorter of two passes that overlaps the other
};

struct ScheduleSelection {
  std::string name;                                        // a shipped schedule or a file
  std::int32_t stages = 0, micro_batches = 0, chunks = 0;  // 0: from the text
  std::vector<std::string> set;                            // parameter=value, for its own parameters
};

struct ScheduleShow {
  ScheduleSelection which;
  PassTimes times;
  std::string to;  // .svg; empty: print as text
  session::Format format = session::Format::text;
  std::size_t width = explain::kUsualWidth;
};
session::Reply run(const ScheduleShow& request);

struct ScheduleCheck {
  ScheduleSelection which;
  std::string memory;
  session::Format format = session::Format::text;
  std::size_t width = explain::kUsualWidth;
};
session::Reply run(const ScheduleCheck& request);

struct ScheduleEstimate {
  ScheduleSelection which;
  PassTimes times;
  session::Format format = session::Format::text;
  std::size_t width = explain::kUsualWidth;
};
session::Reply run(const ScheduleEstimate& request);

struct ScheduleExport {
  ScheduleSelection which;
  std::string torch = "compute_only";  // or "compute_comms"
  std::string to;                      // a file; empty: print
  session::Format format = session::Format::text;
  std::size_t width = explain::kUsualWidth;
};
session::Reply run(const ScheduleExport& request);

struct ScheduleSynthesize {
  std::int32_t stages = 0, micro_batches = 0, chunks = 1;
  PassTimes times;
  std::string memory;        // empty: no limit
  double weight_share = -1;  // -1: as in a transformer layer
  double effort = 1;
  std::string clock = "span";  // or "end"
  session::Format format = session::Format::text;
  std::size_t width = explain::kUsualWidth;
};
session::Reply run(const ScheduleSynthesize& request);

}  // namespace weft::command
