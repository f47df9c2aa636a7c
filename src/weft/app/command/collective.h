// weft/app/command/collective.h -- `weft collective`: what people do with collective algorithms.
//
//   check    proves programs right, or says what is wrong and where
//   convert  reads one format, writes another; what it writes was checked
//   compile  an algorithm with its parameters, to a program; any pass alone
//   cost     time and bandwidth by message size, on a cluster
//   choose   the best algorithm for each range of sizes, and why
//   fit      latency and bandwidth from a measured table
//   synthesize  an algorithm made for the wires at hand, with the bound that it comes up to
//   run      runs a program on real ranks, and compares what comes out
//   show     a program as a table, or drawn
//   list     the shipped algorithms
//
// A program is named by a file (MSCCL XML, MSCCL++ JSON, Weft's text of programs or of algorithms) or as a
// shipped algorithm with parameters: "all_reduce_ring(ranks=8, chunks=4)". Nothing here prints.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct CollectiveCheck {
  std::vector<std::string> programs;
  std::string target;       // msccl, rccl, azure or mscclpp: its limits and slots count too
  std::int32_t slots = 0;   // that a connection has; 0: as many as needed
  std::string as;           // the collective it is held to, where the file cannot say
  std::int64_t effort = 1;  // how much a check may cost: 1 is about a second and 200 MB
  session::Format format = session::Format::text;
};
session::Reply run(const CollectiveCheck& request);

struct CollectiveConvert {
  std::string from, to;
  std::string dialect;   // msccl or azure, for XML that is written; else by what was read
  std::string operands;  // runtime, sender or automatic: whose slot the source of rrc names in XML read
  std::string as;
  std::int64_t effort = 0;  // as of a check; 0: no limit but that of an algorithm's own run
  session::Format format = session::Format::text;
};
session::Reply run(const CollectiveConvert& request);

struct CollectiveCompile {
  std::string algorithm;
  std::string to;        // a file; else the text is the answer
  std::string protocol;  // Simple, LL, LL128
  std::int32_t instances = 1;
  std::int32_t max_channels = 32;
  std::int32_t slots = 0;
  bool fuse = true;
  bool out_of_place = false;
  std::string passes;  // stop after the last of these, and show what it made
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
  std::string fit;  // a measured table whose latency and bandwidth are used
  session::Format format = session::Format::text;
};
session::Reply run(const CollectiveCost& request);

struct CollectiveChoose {
  std::string collective;
  std::string cluster;
  std::string sizes;
  std::vector<std::string> candidates;  // none: every shipped algorithm of the collective
  std::string to;                       // .svg, .csv (NCCL tuner), .json; else text is the answer
  bool synthesize = false;              // algorithms made for the cluster compete as well
  session::Format format = session::Format::text;
};
session::Reply run(const CollectiveChoose& request);

struct CollectiveFit {
  std::vector<std::string> tables;
  bool every_other = false;  // fit on every other size and say how well the others are predicted
  session::Format format = session::Format::text;
};
session::Reply run(const CollectiveFit& request);

struct CollectiveRun {
  std::string program;
  std::int32_t ranks = 0;            // 0: as many as the program has; an algorithm is given them
  std::string transport = "inproc";  // threads; shm, tcp: processes
  std::string bytes = "1MiB";        // of the message, as nccl-tests counts
  std::string type = "f32";
  std::string op = "sum";
  bool in_place = false;
  bool verify = false;
  std::int32_t repeat = 5;
  std::string timeout = "30 s";  // without anything moving
  std::string as;
  std::int64_t effort = 0;  // as of a check; 0: no limit but that of an algorithm's own run
  session::Format format = session::Format::text;
  // What starts a rank's process, which then comes to run() with the same request; empty: this program, as
  // people call it.
  std::vector<std::string> rank_command = {};
};
// Set in the environment of a rank's process.
inline constexpr const char* kCollectiveRankVariable = "WEFT_COLLECTIVE_RANK";
session::Reply run(const CollectiveRun& request);

struct CollectiveShow {
  std::string program;
  std::string to;           // .svg: a space-time diagram
  std::string cluster;      // place the steps by simulated time there
  std::string size;         // of the message, with `cluster`
  std::int64_t effort = 0;  // as of a check; 0: no limit but that of an algorithm's own run
  session::Format format = session::Format::text;
};
session::Reply run(const CollectiveShow& request);

struct CollectiveSynthesize {
  std::string collective;
  std::string cluster;
  std::string optimal = "bandwidth";
  std::int32_t root = 0;             // of a broadcast or reduce
  std::vector<std::string> without;  // lost links and devices: "link:3-5", "gpu:12"
  std::string to;                    // .xml, .json or .program
  std::string plot;                  // a drawing of the trees, .svg
  std::string sketch;                // TACCL's file of what is allowed
  std::string time_limit;            // "10 s"; empty: as long as it takes
  session::Format format = session::Format::text;
};
session::Reply run(const CollectiveSynthesize& request);

struct CollectiveList {
  std::string collective;  // only those of this kind
  session::Format format = session::Format::text;
};
session::Reply run(const CollectiveList& request);

}  // namespace weft::command
