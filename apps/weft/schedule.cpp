#include "schedule.h"

#include <string_view>

#include <CLI/CLI.hpp>

#include "subcommands.h"
#include "weft/session/schedule.h"

namespace weft {
namespace {

constexpr std::string_view kScheduleUsage =
    R"(weft schedule: what the stages of a pipeline do, pass after pass

usage:
  weft schedule list [--format text|json]
  weft schedule show NAME|FILE [--stages p] [--micro-batches m] [--chunks v] [TIMES] [-o FILE.svg]
  weft schedule check FILE|NAME [--stages p] [--micro-batches m] [--chunks v] [--memory L]
  weft schedule price NAME|FILE --stages p --micro-batches m [--chunks v] TIMES
  weft schedule synthesize --stages p --micro-batches m [--chunks v] TIMES [--memory L] [--weight-share r]
                           [--clock span|end] [--effort e]

TIMES: --forward F --backward B --weight W --transfer c, each a number or a comma list of one a stage.
`weft help schedule` explains each.
)";

void add_times(CLI::App* command, session::PassTimes& times) {
  command->add_option("--forward", times.forward);
  command->add_option("--backward", times.backward);
  command->add_option("--weight", times.weight);
  command->add_option("--transfer", times.transfer);
}

template <class Request>
void add_sizes(CLI::App* command, Request& request) {
  command->add_option("--stages", request.stages)->check(CLI::Range(1, 1000000));
  command->add_option("--micro-batches", request.micro_batches)->check(CLI::Range(1, 1000000));
  command->add_option("--chunks", request.chunks)->check(CLI::Range(1, 1000000));
  add_format(command, request.format);
}

CLI::App* add_list(CLI::App& app, session::ScheduleList& list) {
  CLI::App* command = app.add_subcommand("list");
  add_format(command, list.format);
  return command;
}

CLI::App* add_show(CLI::App& app, session::ScheduleShow& show) {
  CLI::App* command = app.add_subcommand("show");
  command->add_option("NAME", show.schedule)->required();
  add_sizes(command, show);
  add_times(command, show.times);
  command->add_option("-o", show.to);
  return command;
}

CLI::App* add_check(CLI::App& app, session::ScheduleCheck& check) {
  CLI::App* command = app.add_subcommand("check");
  command->add_option("FILE", check.file)->required();
  add_sizes(command, check);
  command->add_option("--memory", check.memory);
  return command;
}

CLI::App* add_price(CLI::App& app, session::SchedulePrice& price) {
  CLI::App* command = app.add_subcommand("price");
  command->add_option("NAME", price.schedule)->required();
  add_sizes(command, price);
  add_times(command, price.times);
  return command;
}

CLI::App* add_synthesize(CLI::App& app, session::ScheduleSynthesize& synthesize) {
  CLI::App* command = app.add_subcommand("synthesize");
  add_sizes(command, synthesize);
  command->get_option("--stages")->required();
  command->get_option("--micro-batches")->required();
  add_times(command, synthesize.times);
  command->add_option("--memory", synthesize.memory);
  command->add_option("--weight-share", synthesize.weight_share)->check(CLI::Range(0.0, 1.0));
  command->add_option("--clock", synthesize.clock);
  command->add_option("--effort", synthesize.effort);
  return command;
}

}  // namespace

Result<session::Reply> run_schedule(int argc, char** argv) {
  session::ScheduleList list;
  session::ScheduleShow show;
  session::ScheduleCheck check;
  session::SchedulePrice price;
  session::ScheduleSynthesize synthesize;
  CLI::App app;
  return run_subcommand(app,
                        {{add_list(app, list), [&] { return session::run(list); }},
                         {add_show(app, show), [&] { return session::run(show); }},
                         {add_check(app, check), [&] { return session::run(check); }},
                         {add_price(app, price), [&] { return session::run(price); }},
                         {add_synthesize(app, synthesize), [&] { return session::run(synthesize); }}},
                        "schedule", kScheduleUsage, argc, argv);
}

}  // namespace weft
