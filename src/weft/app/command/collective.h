// weft/app/command/collective.h -- `weft collective`: commands for collective algorithms.
//
//   check    proves programs correct, or reports the error and its location
//   convert  reads one format, checks the program, writes another format
//   compile  compiles an algorithm with parameters to a program; can stop after any pass
//   cost     time and bandwidth by message size, on a cluster
//   choose   the best algorithm for each range of sizes, and why
//   fit      latency and bandwidth from a measured table
//   synthesize  generates an algorithm for a topology, with the bound it attains
//   run      runs a program on real ranks, and compares the results
//   show     a program as a table or a diagram
//   list     the shipped algorithms
//
// A program is named by a file (MSCCL XML, MSCCL++ JSON, or Weft's program or algorithm text) or as
// a shipped algorithm with parameters: "all_reduce_ring(ranks=8, chunks=4)". Nothing here prints.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct CollectiveCheck {
  std::vector<std::string> programs;
  std::string target;       // msccl, rccl, azure or mscclpp: also check its limits and slots
  std::int32_t slots = 0;   // per connection; 0: as many as needed
  std::string as;           // the collective to check against, if the file does not name it
  std::int64_t effort = 1;  // budget of a check: 1 is about a second and 200 MB
  session::Format format = session::Format::text;
  std::size_t width = SIZE_MAX;  // of lines that programs read as well
};
session::Reply run(const CollectiveCheck& request);

struct CollectiveConvert {
  std::string from, to;
  std::string dialect;   // XML dialect to write: msccl or azure; empty: as in the input
  std::string operands;  // runtime, sender or automatic: whose slot the source of an rrc names in XML input
  std::string as;
  std::int64_t effort = 0;  // as for check; 0: only an algorithm's own limit applies
  session::Format format = session::Format::text;
};
session::Reply run(const CollectiveConvert& request);

struct CollectiveCompile {
  std::string algorithm;
  std::string to;        // output file; empty: print the text
  std::string protocol;  // Simple, LL, LL128
  std::int32_t instances = 1;
  std::int32_t max_channels = 32;
  std::int32_t slots = 0;
  bool fuse = true;
  bool out_of_place = false;
  std::string passes;  // stop after the last of these and show its result
  std::string dialect;
  session::Format format = session::Format::text;
};
session::Reply run(const CollectiveCompile& request);

struct CollectiveCost {
  std::string algorithm;
  std::string cluster;
  std::string sizes;  // "1KiB..1GiB"
  std::string protocol;
  std::int32_t instances = 1;
  std::string fit;  // a measured table to fit latency and bandwidth from
  session::Format format = session::Format::text;
  std::size_t width = SIZE_MAX;  // of lines that programs read as well
};
session::Reply run(const CollectiveCost& request);

struct CollectiveChoose {
  std::string collective;
  std::string cluster;
  std::string sizes;
  std::vector<std::string> candidates;  // empty: every shipped algorithm of the collective
  std::string to;                       // .svg, .csv (NCCL tuner) or .json; empty: text
  bool synthesize = false;              // also consider algorithms synthesized for the cluster
  session::Format format = session::Format::text;
  std::size_t width = explain::kUsualWidth;
};
session::Reply run(const CollectiveChoose& request);

struct CollectiveFit {
  std::vector<std::string> tables;
  bool every_other = false;  // fit on every other size and report the prediction error on the rest
  session::Format format = session::Format::text;
};
session::Reply run(const CollectiveFit& request);

struct CollectiveRun {
  std::string program;
  std::int32_t ranks = 0;            // 0: the program's own number; sets an algorithm's `ranks`
  std::string transport = "inproc";  // inproc: threads; shm, tcp: processes
  std::string bytes = "1MiB";        // message size, as nccl-tests counts it
  std::string type = "f32";
  std::string op = "sum";
  bool in_place = false;
  bool verify = false;
  std::int32_t repeat = 5;
  std::string timeout = "30 s";  // time without progress
  std::string as;
  std::int64_t effort = 0;  // as for check; 0: only an algorithm's own limit applies
  session::Format format = session::Format::text;
  // The command that starts a rank's process, which then calls run() with the same request. Empty:
  // this program's own command line.
  std::vector<std::string> rank_command = {};
};
// Set in the environment of each rank process.
inline constexpr const char* kCollectiveRankVariable = "WEFT_COLLECTIVE_RANK";
session::Reply run(const CollectiveRun& request);

struct CollectiveShow {
  std::string program;
  std::string to;           // .svg: a space-time diagram
  std::string cluster;      // if set, place the steps by time simulated on it
  std::string size;         // message size, with `cluster`
  std::int64_t effort = 0;  // as for check; 0: only an algorithm's own limit applies
  session::Format format = session::Format::text;
  std::size_t width = explain::kUsualWidth;
};
session::Reply run(const CollectiveShow& request);

struct CollectiveSynthesize {
  std::string collective;
  std::string cluster;
  std::string optimal = "bandwidth";
  std::int32_t root = 0;             // for broadcast and reduce
  std::vector<std::string> without;  // failed links and devices: "link:3-5", "gpu:12"
  std::string to;                    // .xml, .json or .program
  std::string plot;                  // .svg drawing of the trees
  std::string sketch;                // a TACCL sketch file
  std::string time_limit;            // "10 s"; empty: unlimited
  session::Format format = session::Format::text;
};
session::Reply run(const CollectiveSynthesize& request);

struct CollectiveList {
  std::string collective;  // list only algorithms of this kind
  session::Format format = session::Format::text;
  std::size_t width = explain::kUsualWidth;
};
session::Reply run(const CollectiveList& request);

}  // namespace weft::command
