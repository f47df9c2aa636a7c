#include "collective.h"

#include <string_view>

#include <CLI/CLI.hpp>

#include "interrupt.h"
#include "output.h"
#include "progress.h"
#include "subcommands.h"
#include "weft/app/command/collective.h"
#include "weft/app/command/synthesize_steps.h"
#include "weft/app/command/synthesize_time.h"
#include "weft/app/session/reply.h"

namespace weft {
namespace {

using namespace command;  // NOLINT: this file deals with nothing else
using session::Reply;

// Whether the options select step-optimal synthesis (SCCL) with its chunks, steps and rounds.
bool asks_for_steps(const CLI::App& command) {
  for (const char* option : {"--chunks", "--steps", "--rounds", "--pareto"})
    if (command.count(option) > 0) return true;
  return false;
}

Reply synthesize_in_steps(const CollectiveSynthesize& asked, SynthesizeSteps steps) {
  steps.collective = asked.collective;
  steps.topology = asked.cluster;
  steps.root = asked.root;
  steps.to = asked.to;
  steps.time_limit = asked.time_limit;
  steps.format = asked.format;
  // Ctrl-C stops the search and returns what is known so far.
  interrupt::install();
  steps.interrupted = [] { return interrupt::requested(); };
  return command::run(steps);
}

Reply synthesize_in_time(const CollectiveSynthesize& asked, SynthesizeTime time) {
  time.collective = asked.collective;
  time.topology = asked.cluster;
  time.root = asked.root;
  time.without = asked.without;
  time.to = asked.to;
  time.plot = asked.plot;
  time.sketch = asked.sketch;
  time.time_limit = asked.time_limit;
  time.format = asked.format;
  // Ctrl-C stops the search and returns the best schedule found.
  interrupt::install();
  time.interrupted = [] { return interrupt::requested(); };
  ProgressDisplay progress;
  time.on_progress = [&](const explain::Progress& now) { progress.show(now); };
  Reply reply = command::run(time);
  progress.clear();
  return reply;
}

void add_effort(CLI::App* command, std::int64_t& effort) {
  command->add_option("--effort", effort)->check(CLI::Range(1, 1 << 20));
}

CLI::App* add_check(CLI::App& app, CollectiveCheck& check) {
  CLI::App* command = app.add_subcommand("check");
  command->add_option("PROGRAM", check.programs)->required();
  command->add_option("--target", check.target);
  command->add_option("--slots", check.slots)->check(CLI::Range(0, 1 << 20));
  command->add_option("--as", check.as);
  add_effort(command, check.effort);
  add_format(command, check.format);
  return command;
}

CLI::App* add_convert(CLI::App& app, CollectiveConvert& convert) {
  CLI::App* command = app.add_subcommand("convert");
  command->add_option("IN", convert.from)->required();
  command->add_option("OUT", convert.to)->required();
  command->add_option("--dialect", convert.dialect);
  command->add_option("--operands", convert.operands);
  command->add_option("--as", convert.as);
  add_effort(command, convert.effort);
  add_format(command, convert.format);
  return command;
}

CLI::App* add_compile(CLI::App& app, CollectiveCompile& compile) {
  CLI::App* command = app.add_subcommand("compile");
  command->add_option("ALGORITHM", compile.algorithm)->required();
  command->add_option("-o,--output", compile.to);
  command->add_option("--protocol", compile.protocol);
  command->add_option("--instances", compile.instances)->check(CLI::Range(1, 1024));
  command->add_option("--max-channels", compile.max_channels)->check(CLI::Range(1, 1024));
  command->add_option("--slots", compile.slots)->check(CLI::Range(0, 1 << 20));
  command->add_flag("!--no-fuse", compile.fuse);
  command->add_flag("--out-of-place", compile.out_of_place);
  command->add_option("--passes", compile.passes);
  command->add_option("--dialect", compile.dialect);
  add_format(command, compile.format);
  return command;
}

CLI::App* add_cost(CLI::App& app, CollectiveCost& cost) {
  CLI::App* command = app.add_subcommand("cost");
  command->add_option("ALGORITHM", cost.algorithm)->required();
  command->add_option("--on", cost.cluster)->required();
  command->add_option("--sizes", cost.sizes);
  command->add_option("--protocol", cost.protocol);
  command->add_option("--instances", cost.instances)->check(CLI::Range(1, 1024));
  command->add_option("--fit", cost.fit);
  add_format(command, cost.format);
  return command;
}

CLI::App* add_choose(CLI::App& app, CollectiveChoose& choose) {
  CLI::App* command = app.add_subcommand("choose");
  command->add_option("COLLECTIVE", choose.collective)->required();
  command->add_option("--on", choose.cluster)->required();
  command->add_option("--sizes", choose.sizes);
  command->add_option("--among", choose.candidates);
  command->add_option("-o,--output", choose.to);
  command->add_flag("--synthesize", choose.synthesize);
  add_format(command, choose.format);
  return command;
}

CLI::App* add_fit(CLI::App& app, CollectiveFit& fit) {
  CLI::App* command = app.add_subcommand("fit");
  command->add_option("TABLE", fit.tables)->required();
  command->add_flag("--every-other", fit.every_other);
  add_format(command, fit.format);
  return command;
}

CLI::App* add_run(CLI::App& app, CollectiveRun& request) {
  CLI::App* command = app.add_subcommand("run");
  command->add_option("PROGRAM", request.program)->required();
  command->add_option("--ranks", request.ranks);
  command->add_option("--transport", request.transport);
  command->add_option("--bytes", request.bytes);
  command->add_option("--type", request.type);
  command->add_option("--op", request.op);
  command->add_flag("--in-place", request.in_place);
  command->add_option("--repeat", request.repeat);
  command->add_option("--timeout", request.timeout);
  command->add_flag("--verify", request.verify);
  command->add_option("--as", request.as);
  add_effort(command, request.effort);
  add_format(command, request.format);
  return command;
}

CLI::App* add_show(CLI::App& app, CollectiveShow& show) {
  CLI::App* command = app.add_subcommand("show");
  command->add_option("PROGRAM", show.program)->required();
  command->add_option("-o,--output", show.to);
  command->add_option("--on", show.cluster);
  command->add_option("--size", show.size);
  add_effort(command, show.effort);
  add_format(command, show.format);
  return command;
}

CLI::App* add_synthesize(CLI::App& app, CollectiveSynthesize& synthesize, SynthesizeSteps& steps,
                         SynthesizeTime& time) {
  CLI::App* command = app.add_subcommand("synthesize");
  command->add_option("--chunks", steps.chunks);
  command->add_option("--steps", steps.steps);
  command->add_option("--rounds", steps.rounds);
  command->add_flag("--pareto", steps.pareto);
  command->add_option("COLLECTIVE", synthesize.collective)->required();
  command->add_option("--on", synthesize.cluster)->required();
  command->add_option("--optimal", synthesize.optimal);
  command->add_option("--size", time.size);
  command->add_option("--turns", time.turns);
  command->add_option("--seed", time.seed);
  command->add_option("--plot", synthesize.plot);
  command->add_option("--sketch", synthesize.sketch);
  command->add_option("--root", synthesize.root);
  command->add_option("--without", synthesize.without);
  command->add_option("-o,--output", synthesize.to);
  command->add_option("--time-limit", synthesize.time_limit);
  add_format(command, synthesize.format);
  return command;
}

CLI::App* add_list(CLI::App& app, CollectiveList& list) {
  CLI::App* command = app.add_subcommand("list");
  command->add_option("COLLECTIVE", list.collective);
  add_format(command, list.format);
  return command;
}

}  // namespace

Result<Reply> run_collective(int argc, char** argv) {
  CollectiveCheck check;
  CollectiveConvert convert;
  CollectiveCompile compile;
  CollectiveCost cost;
  CollectiveChoose choose;
  CollectiveFit fit;
  CollectiveRun trial;
  CollectiveShow show;
  CollectiveList list;
  CollectiveSynthesize synthesize;
  SynthesizeSteps steps;
  SynthesizeTime time;
  for (std::size_t* const width : {&choose.width, &show.width, &list.width}) *width = output_width();
  check.width = cost.width = screen_width();

  CLI::App app;
  CLI::App* const synthesizes = add_synthesize(app, synthesize, steps, time);
  const auto run_synthesize = [&] {
    time.chunks = steps.chunks;
    if (synthesize.optimal == "time") return synthesize_in_time(synthesize, time);
    if (asks_for_steps(*synthesizes)) return synthesize_in_steps(synthesize, steps);
    return command::run(synthesize);
  };
  return run_subcommand(app,
                        {{add_check(app, check), [&] { return command::run(check); }},
                         {add_convert(app, convert), [&] { return command::run(convert); }},
                         {add_compile(app, compile), [&] { return command::run(compile); }},
                         {add_cost(app, cost), [&] { return command::run(cost); }},
                         {add_choose(app, choose), [&] { return command::run(choose); }},
                         {add_fit(app, fit), [&] { return command::run(fit); }},
                         {add_run(app, trial), [&] { return command::run(trial); }},
                         {add_show(app, show), [&] { return command::run(show); }},
                         {add_list(app, list), [&] { return command::run(list); }},
                         {synthesizes, run_synthesize}},
                        "collective", argc, argv);
}

}  // namespace weft
