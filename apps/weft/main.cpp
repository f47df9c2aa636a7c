// weft -- the program. Reads its arguments, hands text to a session, prints what comes back.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench.h"
#include "collective.h"
#include "doctor.h"
#include "interrupt.h"
#include "launch.h"
#include "output.h"
#include "plan.h"
#include "profile.h"
#include "progress.h"
#include "repl.h"
#include "rules.h"
#include "script.h"
#include "simulate.h"
#include "tune.h"
#include "weft/base/nearest.h"
#include "weft/run/local_ranks.h"
#include "weft/run/rank_program.h"
#include "weft/session/session.h"

namespace weft {
namespace {

using session::ExitCode;

constexpr std::string_view kWeftUsage = R"(weft plans deep learning the way a database plans a query.

usage:
  weft                     a prompt; or a script from the standard input
  weft run FILE [FILE...]  run scripts one after another; - is the standard input
  weft -c 'STATEMENT'      run a statement; may be given several times
  weft rules ...           prove, generate and apply rewrite rules
  weft plan ...            prove and price plans for several ranks
  weft collective ...      check, convert, price, choose and run collective algorithms
  weft launch -n N ...     start the ranks of a job on this machine
  weft simulate ...        run Chakra traces on a network, by discrete events
  weft profile ...         measure this machine and write it as a cluster
  weft tune ...            measure collective algorithms, so that calls choose well
  weft bench ...           measure collectives beside Open MPI, MPICH and Gloo
  weft doctor [PID]        what the ranks on this machine are doing
  weft help [TOPIC]        the language, topic by topic

options:
  --format text|json       how answers are written (text)
  --version                print the version
  -h, --help               print this

exit codes: 0 done, 1 an error in the statements or arguments, 2 an error of the world
(a file that cannot be read, a full disk), 3 an error of Weft itself
)";

struct Arguments {
  std::string format = "text";
  std::vector<std::string> statements;
  std::vector<std::string> files;
  std::string topic;
  bool run = false, help = false, usage = false, version = false;
};

int code(ExitCode exit_code) { return static_cast<int>(exit_code); }

int fail(const Error& error) {
  complain(fmt::format("error: {}\n", error.message));
  if (!error.hint.empty()) complain(fmt::format("  {}\n", error.hint));
  return static_cast<int>(error.fault);
}

Error unknown_argument(const std::string& argument) {
  constexpr std::string_view kOptions[] = {"--format", "--version", "--help"};
  constexpr std::string_view kCommands[] = {"run",      "help",    "rules", "plan",  "collective", "launch",
                                            "simulate", "profile", "tune",  "bench", "doctor"};
  const bool is_option = argument.size() > 1 && argument[0] == '-';
  std::string hint = is_option ? did_you_mean(argument, kOptions) : did_you_mean(argument, kCommands);
  std::error_code unused;
  if (!is_option && std::filesystem::exists(argument, unused)) {
    hint = fmt::format("to run a script: weft run {}", argument);
  }
  if (hint.empty()) hint = "weft --help lists what there is";
  return user_error(fmt::format("unknown {}: {}", is_option ? "option" : "command", argument), hint);
}

Result<Arguments> read_arguments(int argc, char** argv) {
  Arguments given;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();  // what is unknown is complained about here, with a hint
  app.add_flag("-h,--help", given.usage);
  app.add_flag("--version", given.version);
  app.add_option("--format", given.format);
  app.add_option("-c", given.statements)->allow_extra_args(false);
  CLI::App* run = app.add_subcommand("run")->fallthrough();
  run->add_option("FILE", given.files);
  CLI::App* help = app.add_subcommand("help")->fallthrough();
  help->add_option("TOPIC", given.topic);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return user_error(error.what(), "weft --help lists what there is");
  }
  given.run = run->parsed();
  given.help = help->parsed();
  if (given.usage || given.version) return given;
  if (const auto extras = app.remaining(true); !extras.empty()) return unknown_argument(extras.front());
  if (given.format != "text" && given.format != "json") {
    constexpr std::string_view kFormats[] = {"text", "json"};
    const std::string hint = did_you_mean(given.format, kFormats);
    return user_error(fmt::format("unknown format: {}", given.format), hint.empty() ? "text or json" : hint);
  }
  if (given.run && given.files.empty()) {
    return user_error("run needs a file", "weft run FILE; - is the standard input");
  }
  if (!given.statements.empty() && (given.run || given.help)) {
    return user_error(fmt::format("-c does not go with {}", given.run ? "run" : "help"),
                      "give one of the two");
  }
  return given;
}

// Runs one text and prints its answer; `name` tells whose text a complaint is about.
int execute(session::Session& session, Output& output, std::string_view text, std::string_view name = {}) {
  session.width = output_width();
  const session::Reply reply = session.execute(text);
  output.write(reply.output);
  if (output.broken()) {
    const Status written = output.status();
    return written.ok() ? code(ExitCode::ok) : fail(written.error());
  }
  if (!reply.complaint.empty())
    complain(fmt::format("{}{}{}", name, name.empty() ? "" : ": ", reply.complaint));
  return code(reply.exit_code);
}

int run_files(session::Session& session, Output& output, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const Result<std::string> text = read_script(file);
    if (!text.ok()) return fail(text.error());
    const int result = execute(session, output, *text, file == "-" ? "" : file);
    if (result != code(ExitCode::ok) || output.broken()) return result;
  }
  return code(ExitCode::ok);
}

// The commands that have arguments of their own; none: it is no such word.
std::optional<Result<session::Reply>> run_command(std::string_view command, int argc, char** argv,
                                                  Output& output) {
  if (command == "collective") return run_collective(argc, argv);
  if (command == "rules") return run_rules(argc, argv, output);
  if (command == "plan") return run_plan(argc, argv);
  if (command == "simulate") return run_simulate(argc, argv);
  if (command == "profile") return run_profile(argc, argv);
  if (command == "tune") return run_tune(argc, argv);
  if (command == "bench") return run_bench(argc, argv, output);
  if (command == "bench-rank") return run_bench_rank(argc, argv);
  if (command == "doctor") return run_doctor(argc, argv);
  return {};
}

int run_statements(session::Session& session, Output& output, const std::vector<std::string>& statements) {
  for (const std::string& statement : statements) {
    const int result = execute(session, output, statement);
    if (result != code(ExitCode::ok) || output.broken()) return result;
  }
  return code(ExitCode::ok);
}

int print(Output& output, const session::Reply& reply) {
  output.write(reply.output);
  complain(reply.complaint);
  const Status written = output.status();
  return written.ok() ? code(reply.exit_code) : fail(written.error());
}

int main_of(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  Output output;
  if (command == "launch") {
    const Result<LaunchReply> reply = run_launch(argc - 1, argv + 1, output);
    if (!reply.ok()) return fail(reply.error());
    complain(reply->complaint);
    return reply->exit_code;
  }
  if (const auto reply = run_command(command, argc - 1, argv + 1, output)) {
    return reply->ok() ? print(output, **reply) : fail(reply->error());
  }
  const Result<Arguments> read = read_arguments(argc, argv);
  if (!read.ok()) return fail(read.error());
  const Arguments& given = *read;

  if (given.usage) return print(output, {ExitCode::ok, std::string(kWeftUsage), {}});
  if (given.version) return print(output, {ExitCode::ok, "weft " WEFT_VERSION "\n", {}});
  if (given.help) return print(output, session::help(given.topic));

  interrupt::install();
  session::Session session;
  session.format = given.format == "json" ? session::Format::json : session::Format::text;
  ProgressDisplay progress;
  // Of ranks that a launcher started, the first speaks; of what goes wrong, each.
  if (run::launched_rank() == 0)
    session.on_progress = [&](const explain::Progress& now) { progress.show(now); };
  else
    output.silence();
  session.on_output = [&](std::string_view text) { output.write(text); };
  session.on_statement_end = [&] { progress.clear(); };
  session.interrupted = [&] { return interrupt::requested() || output.broken(); };
  if (!given.statements.empty()) return run_statements(session, output, given.statements);
  if (given.run) return run_files(session, output, given.files);
  if (isatty(STDIN_FILENO) != 0) return run_repl(session, output);
  return run_files(session, output, {"-"});
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  if (const auto code = weft::run::rank_main()) return *code;
  try {
    return weft::main_of(argc, argv);
  } catch (const std::exception& error) {
    weft::complain(fmt::format("error: {}\n  this is a mistake of Weft; please report it\n", error.what()));
    return weft::code(weft::ExitCode::internal_error);
  }
}
