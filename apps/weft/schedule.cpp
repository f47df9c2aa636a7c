#include "schedule.h"

#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "output.h"
#include "subcommands.h"
#include "weft/app/command/schedule.h"

namespace weft {
namespace {

void add_times(CLI::App* command, command::PassTimes& times) {
  command->add_option("--forward", times.forward);
  command->add_option("--backward", times.backward);
  command->add_option("--weight", times.weight);
  command->add_option("--transfer", times.transfer);
}

// `sizes` has stages, micro_batches and chunks.
template <class Sizes>
void add_sizes(CLI::App* command, Sizes& sizes) {
  command->add_option("--stages", sizes.stages)->check(CLI::Range(1, 1000000));
  command->add_option("--micro-batches", sizes.micro_batches)->check(CLI::Range(1, 1000000));
  command->add_option("--chunks", sizes.chunks)->check(CLI::Range(1, 1000000));
}

// A command about one schedule.
template <class Request>
CLI::App* add_about(CLI::App& app, const std::string& verb, Request& request) {
  CLI::App* command = app.add_subcommand(verb);
  command->add_option("NAME", request.which.name)->required();
  add_sizes(command, request.which);
  command->add_option("--set", request.which.set)->allow_extra_args(false);
  add_format(command, request.format);
  return command;
}

CLI::App* add_list(CLI::App& app, command::ScheduleList& list) {
  CLI::App* command = app.add_subcommand("list");
  add_format(command, list.format);
  return command;
}

template <class Request>
CLI::App* add_timed(CLI::App& app, const std::string& verb, Request& request) {
  CLI::App* command = add_about(app, verb, request);
  add_times(command, request.times);
  command->add_option("--overlap", request.times.overlap)->check(CLI::Range(0.0, 1.0));
  return command;
}

CLI::App* add_show(CLI::App& app, command::ScheduleShow& show) {
  CLI::App* command = add_timed(app, "show", show);
  command->add_option("-o", show.to);
  return command;
}

CLI::App* add_check(CLI::App& app, command::ScheduleCheck& check) {
  CLI::App* command = add_about(app, "check", check);
  command->add_option("--memory", check.memory);
  return command;
}

CLI::App* add_export(CLI::App& app, command::ScheduleExport& exported) {
  CLI::App* command = add_about(app, "export", exported);
  command->add_option("--torch", exported.torch);
  command->add_option("-o", exported.to);
  return command;
}

CLI::App* add_synthesize(CLI::App& app, command::ScheduleSynthesize& synthesize) {
  CLI::App* command = app.add_subcommand("synthesize");
  add_sizes(command, synthesize);
  add_format(command, synthesize.format);
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
  command::ScheduleList list;
  command::ScheduleShow show;
  command::ScheduleCheck check;
  command::ScheduleEstimate price;
  command::ScheduleExport exported;
  command::ScheduleSynthesize synthesize;
  for (std::size_t* const width :
       {&list.width, &show.width, &check.width, &price.width, &exported.width, &synthesize.width})
    *width = output_width();
  CLI::App app;
  return run_subcommand(app,
                        {{add_list(app, list), [&] { return command::run(list); }},
                         {add_show(app, show), [&] { return command::run(show); }},
                         {add_check(app, check), [&] { return command::run(check); }},
                         {add_timed(app, "price", price), [&] { return command::run(price); }},
                         {add_export(app, exported), [&] { return command::run(exported); }},
                         {add_synthesize(app, synthesize), [&] { return command::run(synthesize); }}},
                        "schedule", argc, argv);
}

}  // namespace weft
