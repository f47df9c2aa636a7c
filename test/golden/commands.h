// commands.h -- the commands of golden tests: each runs one layer on the input of a case.
//
//   parse [expand]                   script        -> canonical WeftQL, or the error
//   session [expand] [format=json] [only=FIELD,..]
//                                    scripts, == between -> everything that one new session prints
//   bind model=NAME [mode=train]     script        -> plan text of the model
//   plan                             plan text     -> the same plan, read and printed
//   verify                           plan text     -> ok, or the error
//   hash                             plan text     -> its structural hash
//   signature                        plan text     -> the loops of each node
//   work                             plan text     -> multiply-adds, flops and bytes of each node
//   run [seed=N] [show=NAME]         plan text     -> outputs for small generated inputs
//   rule name=RULE [mesh=AXIS=N,..]  plan text     -> the plan after the rule, which .reverse restores,
//                                    or why the rule declines
//   distribute [moves] [smallest=N]  a distribution, then plan text or a script -> each node and its layout
//   program [workers=N]              plan text     -> the program of one rank
//   pack [capacity=N] [alignment=N]  born dies size, one buffer per line -> an address for each buffer
//   trace with=NAME=VALUE,..         algorithm     -> its moves, step count and bytes sent
//   chunk-program                    program text  -> the same program, read and printed
//   check [slots=N]                  program text  -> ok, or the error
//   compile [passes=NAME,..] [fuse=no] [slots=N] [instances=N]
//                                    moves         -> a program, or the output of the last pass
//   cost on=CLUSTER [sizes=A..B] [protocol=P]    algorithm -> a table of times
//   choose collective=NAME on=CLUSTER [sizes=A..B]  algorithms, one per line -> the best one per size
//   import [name=NAME] [plain-rotary]  config.json -> the model's text and parameter count
//   schedule [draw] [F=] [B=] [W=] [transfer=] [overlap=] PARAMETER=VALUE..
//                                    a schedule's name or text -> its orders or a drawing, and its cost
//   synthesize stages=N micro_batches=N [chunks=N] [memory=L] [clock=end] [F=] [B=] [W=] [transfer=]
//                                    nothing       -> the best schedule found
//   same-plan [model=NAME]           texts, == between -> `one plan`, or how many different plans
//
// With `expand`, {300*(} in the script stands for 300 times ( and \x00 for that byte. `only` keeps
// only the named fields of each JSON object. Errors are part of the expected output. To add a
// command, write its function and list it in commands().
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "golden_file.h"

namespace weft::golden {

using Handler = std::string (*)(const Case&);

struct Command {
  std::string_view name;
  Handler run;
};

std::span<const Command> commands();

std::string parse_command(const Case& test);
std::string session_command(const Case& test);
std::string bind_command(const Case& test);
std::string explain_command(const Case& test);
std::string same_plan_command(const Case& test);
std::string plan_command(const Case& test);
std::string verify_command(const Case& test);
std::string hash_command(const Case& test);
std::string signature_command(const Case& test);
std::string work_command(const Case& test);
std::string run_command(const Case& test);
std::string rule_command(const Case& test);
std::string distribute_command(const Case& test);
std::string program_command(const Case& test);
std::string pack_command(const Case& test);
std::string trace_command(const Case& test);
std::string chunk_program_command(const Case& test);
std::string check_command(const Case& test);
std::string compile_command(const Case& test);
std::string cost_command(const Case& test);
std::string choose_command(const Case& test);
std::string import_command(const Case& test);
std::string schedule_command(const Case& test);
std::string synthesize_command(const Case& test);

}  // namespace weft::golden
