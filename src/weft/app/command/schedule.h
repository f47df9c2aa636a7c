// weft/app/command/schedule.h -- `weft schedule`: pipeline schedules, listed, drawn, checked, priced and made.
//
//   list        the schedules that ship
//   show        a schedule for some stages and micro-batches, drawn as text or as SVG
//   check       is a file's schedule one? see pipeline/verify.h
//   price       what it takes and holds under given times
//   synthesize  the best schedule found for these times and this memory
//
// A schedule is a shipped one's name ("1F1B", "zb_h1") or a file. Nothing here prints.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct ScheduleList {
  session::Format format = session::Format::text;
};
session::Reply run(const ScheduleList& request);

// Numbers, or comma lists of one a stage.
struct PassTimes {
  std::string forward = "1", backward = "1", weight = "1", transfer = "0";
  double overlap = 0;  // the part of the shorter of a pair that runs beside the other
};

struct WhichSchedule {
  std::string name;                                        // of a shipped one or of a file
  std::int32_t stages = 0, micro_batches = 0, chunks = 0;  // 0: as the text says
  std::vector<std::string> set;                            // parameter=value, of the schedule's own
};

struct ScheduleShow {
  WhichSchedule which;
  PassTimes times;
  std::string to;  // .svg; else text is the answer
  session::Format format = session::Format::text;
};
session::Reply run(const ScheduleShow& request);

struct ScheduleCheck {
  WhichSchedule which;
  std::string memory;
  session::Format format = session::Format::text;
};
session::Reply run(const ScheduleCheck& request);

struct SchedulePrice {
  WhichSchedule which;
  PassTimes times;
  session::Format format = session::Format::text;
};
session::Reply run(const SchedulePrice& request);

struct ScheduleSynthesize {
  std::int32_t stages = 0, micro_batches = 0, chunks = 1;
  PassTimes times;
  std::string memory;        // empty: no limit
  double weight_share = -1;  // -1: that of a transformer layer
  double effort = 1;
  std::string clock = "span";  // or end
  session::Format format = session::Format::text;
};
session::Reply run(const ScheduleSynthesize& request);

}  // namespace weft::command
