// doors.h -- the doors to the layers that golden tests knock on.
//
//   parse [expand]                   script        -> canonical WeftQL, or the complaint
//   session [expand] [format=json] [only=FIELD,..]
//                                    scripts, == between -> all that one fresh session prints
//   bind model=NAME [mode=train]     script        -> plan text of the model
//   plan                             plan text     -> read and printed again
//   verify                           plan text     -> ok, or what is wrong
//   hash                             plan text     -> its structural hash
//   signature                        plan text     -> the loops of each node
//   work                             plan text     -> multiply-adds, flops and bytes of each node
//   run [seed=N] [show=NAME]         plan text     -> outputs for small made-up inputs
//   rule name=RULE [mesh=AXIS=N,..]  plan text     -> the plan after the rule, which .reverse restores,
//                                    or why the rule declines
//   distribute [moves] [smallest=N]  a distribution, then plan text or a script -> each node and its layout
//   program [workers=N]              plan text     -> the program of one rank
//   pack [capacity=N] [alignment=N]  born dies size, a line each -> an address for each buffer
//   trace with=NAME=VALUE,..         algorithm     -> its moves, its steps and what it sends
//   chunk-program                    program text  -> read and printed again
//   check [slots=N]                  program text  -> ok, or what is wrong
//   compile [passes=NAME,..] [fuse=no] [slots=N] [instances=N]
//                                    moves         -> a program, or what the last pass made
//   cost on=CLUSTER [sizes=A..B] [protocol=P]    algorithm -> a table of times
//   choose collective=NAME on=CLUSTER [sizes=A..B]  algorithms, a line each -> the best by size
//   import [name=NAME] [plain-rotary]  config.json -> the model's text and its parameters
//   schedule [draw] [F=] [B=] [W=] [transfer=] [overlap=] PARAMETER=VALUE..
//                                    a schedule's name or text -> its orders or a drawing, and its price
//   synthesize stages=N micro_batches=N [chunks=N] [memory=L] [clock=end] [F=] [B=] [W=] [transfer=]
//                                    nothing       -> the best schedule found
//   same-plan [model=NAME]           texts, == between -> `one plan`, or how many there are
//
// With `expand`, {300*(} in the script is 300 times ( and \x00 is that byte; `only` keeps the fields
// named of each JSON object. An error is just another answer. A new door is a function here and a line in
// doors.cpp.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "golden_file.h"

namespace weft::golden {

using Answer = std::string (*)(const Case&);

struct Door {
  std::string_view name;
  Answer answer;
};

std::span<const Door> doors();

std::string parse_door(const Case& test);
std::string session_door(const Case& test);
std::string bind_door(const Case& test);
std::string explain_door(const Case& test);
std::string same_plan_door(const Case& test);
std::string plan_door(const Case& test);
std::string verify_door(const Case& test);
std::string hash_door(const Case& test);
std::string signature_door(const Case& test);
std::string work_door(const Case& test);
std::string run_door(const Case& test);
std::string rule_door(const Case& test);
std::string distribute_door(const Case& test);
std::string program_door(const Case& test);
std::string pack_door(const Case& test);
std::string trace_door(const Case& test);
std::string chunk_program_door(const Case& test);
std::string check_door(const Case& test);
std::string compile_door(const Case& test);
std::string cost_door(const Case& test);
std::string choose_door(const Case& test);
std::string import_door(const Case& test);
std::string schedule_door(const Case& test);
std::string synthesize_door(const Case& test);

}  // namespace weft::golden
