#include "rules.h"

#include <string_view>

#include <CLI/CLI.hpp>

#include "interrupt.h"
#include "output.h"
#include "progress.h"
#include "subcommands.h"
#include "weft/app/command/rules.h"

namespace weft {
namespace {

using namespace command;  // NOLINT: this file deals with nothing else

CLI::App* add_list(CLI::App& app, RulesList& list) {
  CLI::App* command = app.add_subcommand("list");
  command->add_option("--rules", list.files);
  command->add_option("--store", list.store);
  add_format(command, list.format);
  return command;
}

CLI::App* add_show(CLI::App& app, RulesShow& show) {
  CLI::App* command = app.add_subcommand("show");
  command->add_option("NAME", show.rule)->required();
  command->add_option("--rules", show.files);
  command->add_option("--store", show.store);
  add_format(command, show.format);
  return command;
}

CLI::App* add_prove(CLI::App& app, RulesProve& prove) {
  CLI::App* command = app.add_subcommand("prove");
  command->add_option("FILE", prove.files)->required();
  command->add_option("--shapes", prove.shapes)->check(CLI::Range(1, 100000));
  command->add_option("--store", prove.store);
  command->add_flag("--again", prove.again);
  add_format(command, prove.format);
  return command;
}

CLI::App* add_generate(CLI::App& app, RulesGenerate& generate) {
  CLI::App* command = app.add_subcommand("generate");
  command->add_option("--operators", generate.operators);
  command->add_option("--most", generate.most_operators)->check(CLI::Range(1, 6));
  command->add_option("-o,--output", generate.to);
  command->add_option("--against", generate.against);
  command->add_option("--best", generate.best)->check(CLI::Range(0, 1000));
  add_format(command, generate.format);
  return command;
}

CLI::App* add_test(CLI::App& app, RulesTest& test) {
  CLI::App* command = app.add_subcommand("test");
  command->add_option("FILE,--rules", test.files);
  add_format(command, test.format);
  return command;
}

CLI::App* add_why(CLI::App& app, RulesWhy& why) {
  CLI::App* command = app.add_subcommand("why");
  command->add_option("PLAN", why.plan)->required();
  command->add_option("RULE", why.rule)->required();
  command->add_option("--on", why.device);
  command->add_option("--rules", why.files);
  add_format(command, why.format);
  return command;
}

CLI::App* add_apply(CLI::App& app, RulesApply& apply) {
  CLI::App* command = app.add_subcommand("apply");
  command->add_option("PLAN", apply.plan)->required();
  command->add_option("--on", apply.device);
  command->add_option("--rules", apply.files);
  command->add_option("-o,--output", apply.to);
  command->add_option("--cache", apply.cache);
  command->add_flag("--check", apply.check);
  add_format(command, apply.format);
  return command;
}

}  // namespace

Result<session::Reply> run_rules(int argc, char** argv, Output& output) {
  RulesList list;
  RulesShow show;
  RulesProve prove;
  RulesGenerate generate;
  RulesTest test;
  RulesWhy why;
  RulesApply apply;
  interrupt::install();
  ProgressDisplay progress;
  prove.on_line = [&](std::string_view line) { output.write(line); };
  generate.on_progress = [&](const explain::Progress& now) { progress.show(now); };
  list.width = show.width = output_width();
  prove.width = screen_width();
  prove.interrupted = interrupt::requested;
  generate.interrupted = interrupt::requested;
  CLI::App app;
  return run_subcommand(app,
                        {{add_list(app, list), [&] { return command::run(list); }},
                         {add_show(app, show), [&] { return command::run(show); }},
                         {add_prove(app, prove), [&] { return command::run(prove); }},
                         {add_generate(app, generate),
                          [&] {
                            session::Reply reply = command::run(generate);
                            progress.clear();
                            return reply;
                          }},
                         {add_test(app, test), [&] { return command::run(test); }},
                         {add_why(app, why), [&] { return command::run(why); }},
                         {add_apply(app, apply), [&] { return command::run(apply); }}},
                        "rules", argc, argv);
}

}  // namespace weft
