// Correct plans, and broken variants of them, grouped by what an adversary leaves out.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plan_text.h"

namespace weft::plans {

struct GoodPlan {
  std::string_view name, text;
};

inline const std::vector<GoodPlan>& good_plans() {
  static const std::vector<GoodPlan> plans = {
      {"gather", R"(allgather 2 ranks, 1 2 0 chunks, in place
memory 0-1 0-1
rank *
block
 nop
 rlxsignal m0
 nop
 rlxwait m0
 nop
 put m o$r > $p:o$r
 nop
 signal m0
 wait m0
 nop)"},
      {"exchange", R"(alltoall 2 ranks, 2 2 1 chunks, in place
memory 0-1 0-1
rank *
block
 nop
 rlxsignal m0
 nop
 rlxwait m0
 nop
 put m i$p > $p:s0
 nop
 signal m0
 wait m0
 nop
 copy s0 > i$p)"},
      {"sum", R"(allreduce 2 ranks, 2 2 0 chunks, in place
memory 0-1
rank *
block
 rlxsignal m0
 rlxwait m0
 nop
 rres m i$r $p:i$r > i$r $p:i$r
 nop
 signal m0
 wait m0
 nop)"},
      {"sum of packets", R"(allreduce 2 ranks, 2 2 4 chunks, in place, packets
memory 0-1
rank 0
block
 ppkt m i1 > 1:s0
 respkt m i0 s1 > i0 1:s2
 nop
 upkt s3 > i1
rank 1
block
 ppkt m i0 > 0:s1
 respkt m i1 s0 > i1 0:s3
 nop
 upkt s2 > i0)"},
      {"gather of packets", R"(allgather 2 ranks, 1 2 2 chunks, in place, packets, double
memory 0-1
rank *
block
 ppkt m o$r > $p:s$r
block
 upkt s$p > o$p)"},
      {"port", R"(allgather 2 ranks, 1 2 0 chunks, in place
memory 0-1
port 0-1 0-1
rank *
block
 signal p0
 wait p0
 nop
 put p0 o$r > $p:o$r
 signal p0
 wait p0
 nop)"},
      {"port with flush", R"(allgather 2 ranks, 1 2 1 chunks, out of place
port 0-1 0-1
rank *
block
 copy i0 > o$r
 copy i0 > s0
 nop
 signal p0
 wait p0
 nop
 pws p0 s0 > $p:o$r
 flush p0
 nop
 copy o$r > s0
 wait p0
 nop)"},
      {"pipeline", R"(alltoall 2 ranks, 2 2 1 chunks, in place
memory 0-1 0-1
semaphores 0
rank *
block
 rlxsignal m0
 rlxwait m0
 nop
 pipeline 1 524288
  put m i$p > $p:s0
  nop
  signal m1
  nop
  release 0
  nop
 end
block
 pipeline 1 524288
  acquire 0
  nop
  wait m1
  nop
  copy s0 > i$p)"},
      {"pipeline with credit", R"(alltoall 2 ranks, 2 2 1 chunks, in place, reuse
memory 0-1 0-1 0-1
semaphores 0
rank *
block
 rlxsignal m0
 rlxwait m0
 nop
 pipeline 1 67108864
  put m i$p > $p:s0
  nop
  signal m1
  nop
  release 0
  nop
  wait m2
  nop
 end
block
 pipeline 1 67108864
  acquire 0
  nop
  wait m1
  nop
  copy s0 > i$p
  nop
  signal m2
  nop)"},
      {"group", R"(allgather 2 ranks, 1 2 0 chunks, in place
memory 0-1
rank *
block
 rlxsignal m0
 rlxwait m0
 barrier 0/2
 put m o$r > $p:o$r part 0/2
 barrier 0/2
 signal m0
 wait m0
 nop
block
 barrier 0/2
 put m o$r > $p:o$r part 1/2
 barrier 0/2)"},
      {"switch", R"(allgather 2 ranks, 1 2 0 chunks, in place
memory 0-1
switch o 0 1
rank *
block
 rlxsignal m0
 rlxwait m0
 nop
 gstore o$r > S0:o$r
 nop
 rlxsignal m0
 rlxwait m0
 nop)"},
      {"multicast of packets", R"(allgather 2 ranks, 1 2 2 chunks, in place, packets, double
switch s 0 1
rank *
block
 cpkt o$r > s$r
 gstorepkt s$r > S0:s$r
 upkt s0 > o0
block
 upkt s1 > o1)"},
      {"scatter of sums", R"(reducescatter 2 ranks, 2 1 0 chunks, in place
memory 0-1
rank *
block
 rlxsignal m0
 rlxwait m0
 nop
 rre m i$r $p:i$r > i$r
 nop
 rlxsignal m0
 rlxwait m0
 nop)"},
      {"two blocks", R"(allgather 2 ranks, 1 2 1 chunks, out of place
memory 0-1
semaphores 0
rank *
block
 copy i0 > o$r
 rlxsignal m0
 rlxwait m0
 nop
 put m i0 > $p:s0
 nop
 signal m0
 wait m0
 nop
 release 0
block
 acquire 0
 nop
 copy s0 > o$p)"},
  };
  return plans;
}

struct BrokenPlan {
  std::string_view kind;  // of adversary
  std::string_view what;
  std::string_view base;
  std::vector<std::string> edits = {};
  std::string_view words = "";  // that the finding must contain
  void (*change)(OneSided&) = nullptr;
};

inline const std::vector<BrokenPlan>& broken_plans() {
  static const std::vector<BrokenPlan> plans = {
      {"threads", "no nop between put and signal", "gather", {"*.0.6 -"}},
      {"threads", "no nop between the opening wait and the put", "gather", {"*.0.4 -"}},
      {"threads", "no nop between wait and copy", "exchange", {"*.0.9 -"}},
      {"threads", "no nop between sum and signal", "sum", {"*.0.4 -"}},
      {"threads", "no nop between copy and the put of the copy", "port with flush", {"*.0.5 -", "*.0.2 -"}},
      {"threads", "no nop before a release", "pipeline", {"*.0.3/3 -", "*.0.3/1 -"}},
      {"threads", "no nop after an acquire", "two blocks", {"*.1.1 -"}},
      {"threads", "no nop between store and signal", "switch", {"*.0.4 -"}},
      {"threads",
       "put and signal of a port in two threads",
       "port",
       {"*.0.3 = put p1 p0 o$r o$r > $p:o$r $p:o$r"}},
      {"visibility", "a relaxed signal publishes", "gather", {"*.0.7 = rlxsignal m0"}, "relaxed"},
      {"visibility", "a relaxed wait acquires", "gather", {"*.0.8 = rlxwait m0"}, "relaxed"},
      {"visibility", "a relaxed signal before a copy", "exchange", {"*.0.7 = rlxsignal m0"}, "relaxed"},
      {"visibility",
       "sums published by a relaxed signal",
       "sum",
       {"*.0.5 = rlxsignal m0", "*.0.6 = rlxwait m0"}},
      {"ports", "signalled on another channel", "port", {"*.0.4 = signal p1", "*.0.5 = wait p1"}, "channel"},
      {"ports", "signalled through memory", "port", {"*.0.4 = signal m0", "*.0.5 = wait m0"}, "channel"},
      {"ports", "not flushed before its source is written", "port with flush", {"*.0.7 -"}, "flushed"},
      {"ports", "flushed on another channel", "port with flush", {"*.0.7 = flush p1"}, "flushed"},
      {"ports", "a put with signal through memory", "port", {"*.0.3 = pws m0 o$r > $p:o$r", "*.0.4 -"}},
      {"ports", "a get through a port", "port", {"*.0.3 = get p0 $p:o$p > o$p"}},
      {"ports", "a put without a channel", "port", {"*.0.3 = put p o$r > $p:o$r"}},
      {"waiting", "no rank waits", "gather", {"*.0.8 -"}, "raised"},
      {"waiting", "no rank signals", "gather", {"*.0.7 -"}},
      {"waiting", "one rank does not signal", "gather", {"1.0.7 -"}},
      {"waiting", "a wait on the wrong channel", "gather", {"*.0.8 = wait m1", "*.0.7 + signal m1"}},
      {"waiting", "both ranks wait first", "gather", {"*.0.7 = wait m0", "*.0.8 = signal m0"}},
      {"waiting", "signal before the put", "gather", {"*.0.5 = signal m0", "*.0.7 = put m o$r > $p:o$r"}},
      {"waiting", "copy before the wait", "exchange", {"*.0.10 -", "*.0.8 + copy s0 > i$p", "*.0.8 + nop"}},
      {"waiting",
       "loops wait for each other's end",
       "pipeline",
       {"*.0.3/0 + nop", "*.0.3 + pipeline 1 524288", "*.0.3/0 + wait m1", "*.1.0/2 -", "*.0.4/3 + wait m1"},
       "",
       [](OneSided& plan) {
         for (auto& rank : plan.ranks) {
           auto& loop = rank.blocks[0];
           loop[3].body = {step_of("wait m1")};
           loop[3].unit_chunks = 1, loop[3].unit_bytes = 524288;
         }
       }},
      {"counters", "one signal too many", "gather", {"*.0.7 + signal m0"}, "raised"},
      {"counters", "a semaphore released once too often", "two blocks", {"*.0.9 + release 0"}, "semaphore"},
      {"counters",
       "a semaphore that begins with credit",
       "two blocks",
       {},
       "",
       [](OneSided& plan) {
         for (auto& rank : plan.ranks) rank.semaphores = {1};
       }},
      {"counters",
       "a signal on a channel without another end",
       "gather",
       {"0.0.7 + signal m2"},
       "",
       [](OneSided& plan) { plan.ranks[0].memory_peers.push_back(1); }},
      {"loops",
       "trip counts that differ between two blocks",
       "pipeline",
       {"*.1.0 = pipeline 1 1048576"},
       "trip counts"},
      {"loops",
       "turns that differ between two ranks",
       "pipeline",
       {"0.0.3 = pipeline 1 262144", "0.1.0 = pipeline 1 262144"},
       "trip counts"},
      {"loops", "a loop over fewer chunks than its steps", "pipeline", {"*.0.3 = pipeline 2 1048576"}},
      {"loops", "parts of chunks in a loop", "pipeline", {"*.0.3/0 = put m i$p > $p:s0 part 0/2"}},
      {"loops", "no wait in the loop", "pipeline", {"*.1.0/2 -", "*.0.3/2 -"}},
      {"loops", "no acquire in the loop", "pipeline", {"*.1.0/0 -", "*.0.3/4 -"}},
      {"loops",
       "scratch used again without credit",
       "pipeline",
       {},
       "flow control",
       [](OneSided& plan) { plan.reuse_resources = true; }},
      {"loops",
       "credit returned before the copy",
       "pipeline with credit",
       {"*.1.0/6 -", "*.1.0/4 + signal m2"}},
      {"loops",
       "credit awaited too late",
       "pipeline with credit",
       {"*.0.3/6 -", "*.1.0/6 -"},
       "flow control"},
      {"runs",
       "no opening handshake before a put",
       "gather",
       {"*.0.4 -", "*.0.3 -", "*.0.2 -", "*.0.1 -"},
       "handshake"},
      {"runs", "no opening handshake before a read", "sum", {"*.0.1 -", "*.0.0 -"}, "handshake"},
      {"runs", "no opening handshake before scratch is reused", "exchange", {"*.0.3 -", "*.0.1 -"}},
      {"runs",
       "packets of the next run over unread ones",
       "gather of packets",
       {},
       "",
       [](OneSided& plan) { plan.double_scratch = false; }},
      {"runs", "a rank ends before its output has arrived", "gather", {"*.0.8 -", "*.0.7 -"}, "end"},
      {"runs", "a rank ends before its store is visible", "switch", {"*.0.6 -", "*.0.5 -"}, "end"},
      {"runs", "a rank ends while its input is read", "scatter of sums", {"*.0.6 -", "*.0.5 -"}, "end"},
      {"runs",
       "plain data in scratch that comes twice",
       "exchange",
       {},
       "",
       [](OneSided& plan) { plan.double_scratch = true; }},
      {"blocks",
       "a barrier for one block too many",
       "group",
       {"*.0.2 = barrier 0/3", "*.0.4 = barrier 0/3", "*.1.0 = barrier 0/3", "*.1.2 = barrier 0/3"}},
      {"blocks", "two barriers instead of one", "group", {"*.1.2 = barrier 1/2"}},
      {"blocks", "no barrier before the signal", "group", {"*.0.4 = nop", "*.1.2 -"}},
      {"blocks", "no barrier after the handshake", "group", {"*.0.2 = nop", "*.1.0 -"}},
      {"blocks", "no semaphore between two blocks", "two blocks", {"*.0.9 -", "*.1.0 -"}},
      {"blocks", "released before it has arrived", "two blocks", {"*.0.9 -", "*.0.6 + release 0"}},
      {"blocks", "both blocks do the same part", "group", {"*.1.1 = put m o$r > $p:o$r part 0/2"}},
      {"data", "one chunk off", "gather", {"*.0.5 = put m o$r > $p:o$p"}},
      {"data", "past the end of a buffer", "gather", {"*.0.5 = put m o$r > $p:o2"}},
      {"data", "the wrong chunk is sent", "exchange", {"*.0.5 = put m i$r > $p:s0"}},
      {"data", "added twice", "sum", {"0.0.3 + nop", "0.0.3 + rre m i0 1:i0 > i0"}},
      {"data", "sizes that differ", "gather", {"*.0.5 = put m o$r+1 > $p:o0+2"}},
      {"data",
       "in place is claimed and not so",
       "two blocks",
       {"*.0.0 + nop", "*.0.0 + copy o$p > o$r"},
       "",
       [](OneSided& plan) { plan.in_place = true; }},
      {"data",
       "out of place is claimed and not so",
       "gather",
       {},
       "",
       [](OneSided& plan) { plan.in_place = false; }},
      {"data", "two ranks write one output", "gather", {"1.0.5 = put m o1 > 0:o0"}},
      {"packets", "read as plain data", "sum of packets", {"0.0.3 = copy s3 > i1"}},
      {"packets", "a slot that no rank fills", "sum of packets", {"0.0.1 = respkt m i0 s0 > i0 1:s2"}},
      {"packets", "two values in one slot", "sum of packets", {"0.0.1 = respkt m i0 s1 > i0 1:s0"}},
      {"packets", "plain data where packets are expected", "sum of packets", {"0.0.0 = put m i1 > 1:s0"}},
      {"packets",
       "packets without room for flags",
       "sum of packets",
       {},
       "",
       [](OneSided& plan) { plan.protocol = collective::Protocol::simple; }},
      {"packets", "packets in the output", "gather of packets", {"*.0.0 = ppkt m o$r > $p:o$r"}},
      {"packets", "never unpacked", "sum of packets", {"1.0.3 -"}},
      {"packets", "multicast of the wrong slot", "multicast of packets", {"*.0.1 = gstorepkt s$p > S0:s$r"}},
  };
  return plans;
}

inline OneSided good_plan(std::string_view name) {
  for (const GoodPlan& plan : good_plans())
    if (plan.name == name) return plan_of(std::string(plan.text));
  throw std::runtime_error("no plan: " + std::string(name));
}

inline OneSided broken_plan(const BrokenPlan& broken) {
  OneSided plan = good_plan(broken.base);
  for (const std::string& how : broken.edits) edit(plan, how);
  if (broken.change != nullptr) broken.change(plan);
  return plan;
}

}  // namespace weft::plans
