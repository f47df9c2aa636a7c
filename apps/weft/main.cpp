// weft -- the program. Parses its arguments, passes text to a session, prints the replies.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "collective.h"
#include "doctor.h"
#include "import.h"
#include "improve.h"
#include "interrupt.h"
#include "invocation.h"
#include "large_stack.h"
#include "launch.h"
#include "memory.h"
#include "output.h"
#include "partition.h"
#include "plan.h"
#include "profile.h"
#include "progress.h"
#include "repl.h"
#include "rules.h"
#include "schedule.h"
#include "script.h"
#include "simulate.h"
#include "tokenize.h"
#include "top.h"
#include "tune.h"
#include "validate.h"
#include "weft/app/session/reply.h"
#include "weft/app/session/session.h"
#include "weft/base/nearest.h"
#include "weft/base/thread_error.h"
#include "weft/device/device.h"
#include "weft/language/complaint.h"
#include "weft/runtime/run/local_ranks.h"
#include "weft/runtime/run/rank_comparison.h"
#include "weft/runtime/run/rank_program.h"

namespace weft {
namespace {

using session::ExitCode;

struct Arguments {
  std::string format = "text";
  std::vector<std::string> statements;
  std::vector<std::string> files;
  std::vector<std::string> loaded;  // before a prompt
  std::string topic;
  bool run = false, help = false, usage = false, version = false;
};

int code(ExitCode exit_code) { return static_cast<int>(exit_code); }

// Whether JSON is requested. Needed before the arguments are parsed, since they may be invalid.
// Arguments after the program of `launch` belong to that program.
bool asks_for_json(int argc, char** argv) {
  const bool launches = argc > 1 && std::string_view(argv[1]) == "launch";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i], next = i + 1 < argc ? argv[i + 1] : "";
    if (argument == "--format=json" || (argument == "--format" && next == "json")) return true;
    if (launches && i > 1 && (argument == "--" || (!argument.starts_with('-') && argv[i - 1][0] != '-')))
      return false;
  }
  return false;
}

// Reports errors: as text on standard error, or as JSON on standard output.
class Complaints {
 public:
  Complaints(Output& output, bool json) : output_(output), json_(json) {}

  int fail(const Error& error) {
    last_ = error;
    if (json_ && !output_.broken()) {
      output_.write(session::error_json(error, {}));
    } else {
      complain(fmt::format("error: {}\n", error.message));
      if (!error.hint.empty()) complain(fmt::format("  {}\n", error.hint));
    }
    return static_cast<int>(error.fault);
  }

  // `text` is what was executed; `name` is its file, for messages.
  void tell(const session::Reply& reply, std::string_view text = {}, std::string_view name = {}) {
    if (reply.error) last_ = reply.error;
    if (json_ && !output_.broken() && reply.exit_code != ExitCode::ok) {
      const std::string shown =
          reply.error ? language::complain(*reply.error, text_of(*reply.error, text)) : reply.complaint;
      // Warnings precede the error and are not part of the JSON.
      if (reply.complaint.ends_with(shown))
        complain(reply.complaint.substr(0, reply.complaint.size() - shown.size()));
      if (reply.error || !reply.complaint.empty())
        output_.write(
            session::error_json(reply.error ? *reply.error : error_in(reply.complaint), text, name));
      return;
    }
    if (!reply.complaint.empty())
      complain(fmt::format("{}{}{}", name, name.empty() ? "" : ": ", reply.complaint));
  }

  const std::optional<Error>& last() const { return last_; }  // reported

 private:
  static std::string_view text_of(const Error& error, std::string_view text) {
    return error.text != nullptr ? std::string_view(*error.text) : text;
  }

  // The error of a reply that has only a complaint: "error: 2 lines are no rule".
  static Error error_in(std::string_view complaint) {
    constexpr std::string_view kBegin = "error: ";
    if (const std::size_t at = complaint.rfind(kBegin); at != std::string_view::npos)
      complaint.remove_prefix(at + kBegin.size());
    return user_error(std::string(complaint.substr(0, complaint.find('\n'))));
  }

  Output& output_;
  bool json_;
  std::optional<Error> last_;
};

Error unknown_argument(const std::string& argument) {
  constexpr std::string_view kOptions[] = {"--format", "--version", "--help"};
  std::vector<std::string_view> commands = command_names();
  commands.insert(commands.end(), {"run", "help"});
  if (std::ranges::find(commands, argument) != commands.end())
    return user_error(fmt::format("unexpected argument: {}", argument),
                      fmt::format("put a command first: weft {} ...", argument));
  const bool is_option = argument.size() > 1 && argument[0] == '-';
  std::string hint = is_option ? did_you_mean(argument, kOptions) : did_you_mean(argument, commands);
  std::error_code unused;
  if (!is_option && std::filesystem::exists(argument, unused)) {
    hint = fmt::format("to run a script: weft run {}", argument);
  }
  if (hint.empty()) hint = "run weft --help";
  return user_error(fmt::format("unknown {}: {}", is_option ? "option" : "command", argument), hint);
}

Result<Arguments> read_arguments(int argc, char** argv) {
  Arguments given;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();  // unknown arguments are reported here, with a hint
  app.add_flag("-h,--help", given.usage);
  app.add_flag("--version", given.version);
  app.add_option("--format", given.format);
  app.add_option("-c", given.statements)->allow_extra_args(false);
  app.add_option("-i", given.loaded)->allow_extra_args(false);
  CLI::App* run = app.add_subcommand("run")->fallthrough();
  run->add_option("FILE", given.files);
  CLI::App* help = app.add_subcommand("help")->fallthrough();
  help->add_option("TOPIC", given.topic);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return user_error(error.what(), "run weft --help");
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
  if (given.help && !(given.statements.empty() && given.loaded.empty())) {
    return user_error(fmt::format("{} cannot be combined with help", given.statements.empty() ? "-i" : "-c"),
                      "give only one of them");
  }
  return given;
}

// Executes one text and prints the reply; `name` is its file, for messages.
int execute(session::Session& session, Output& output, Complaints& complaints, std::string_view text,
            std::string_view name = {}) {
  session.width = output_width();
  const session::Reply reply = session.execute(text);
  output.write(reply.output);
  complaints.tell(reply, text, name);
  return code(reply.exit_code);
}

int run_files(session::Session& session, Output& output, Complaints& complaints,
              const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const Result<std::string> text = read_script(file);
    if (!text.ok()) return complaints.fail(text.error());
    const int result = execute(session, output, complaints, *text, file == "-" ? "" : file);
    if (result != code(ExitCode::ok)) return result;
  }
  return code(ExitCode::ok);
}

// Runs a command that parses its own arguments; empty if there is none of that name.
std::optional<Result<session::Reply>> run_command(std::string_view command, int argc, char** argv,
                                                  Output& output) {
  if (command == "collective") return run_collective(argc, argv);
  if (command == "rules") return run_rules(argc, argv, output);
  if (command == "plan") return run_plan(argc, argv);
  if (command == "import") return run_import(argc, argv);
  if (command == "improve") return run_improve(argc, argv);
  if (command == "partition") return run_partition(argc, argv);
  if (command == "tokenize") return run_tokenize(argc, argv);
  if (command == "schedule") return run_schedule(argc, argv);
  if (command == "memory") return run_memory(argc, argv);
  if (command == "simulate") return run_simulate(argc, argv);
  if (command == "profile") return run_profile(argc, argv);
  if (command == "validate") return run_validate(argc, argv);
  if (command == "tune") return run_tune(argc, argv);
  if (command == "bench") return run_bench(argc, argv, output);
  if (command == "bench-rank") return run_bench_rank(argc, argv);
  if (command == "doctor") return run_doctor(argc, argv);
  if (command == "top") return run_top(argc, argv, output);
  return {};
}

int run_statements(session::Session& session, Output& output, Complaints& complaints,
                   const std::vector<std::string>& statements) {
  for (const std::string& statement : statements) {
    const int result = execute(session, output, complaints, statement);
    if (result != code(ExitCode::ok)) return result;
  }
  return code(ExitCode::ok);
}

// Runs scripts, then statements, then terminal or piped input, if wanted.
int run_session(session::Session& session, Output& output, Complaints& complaints, const Arguments& given) {
  for (const auto* files : {&given.loaded, &given.files})
    if (const int result = run_files(session, output, complaints, *files); result != code(ExitCode::ok))
      return result;
  if (const int result = run_statements(session, output, complaints, given.statements);
      result != code(ExitCode::ok))
    return result;
  if (given.loaded.empty() && (given.run || !given.statements.empty())) return code(ExitCode::ok);
  if (isatty(STDIN_FILENO) != 0) return run_repl(session, output);
  return run_files(session, output, complaints, {"-"});
}

int print(Output& output, Complaints& complaints, const session::Reply& reply) {
  output.write(reply.output);
  complaints.tell(reply);
  return code(reply.exit_code);
}

// A text of the program itself: plain, or as one JSON field.
session::Reply own_text(std::string_view name, std::string_view text, bool json) {
  if (!json) return {ExitCode::ok, std::string(text), {}};
  return {ExitCode::ok, nlohmann::json{{name, text}}.dump() + "\n", {}};
}

int run_all(int argc, char** argv, Output& output) {
  Invocation invocation = read_invocation(argc, argv);
  const std::string_view command = invocation.command;
  const bool json = asks_for_json(argc, argv);
  Complaints complaints(output, json);
  if (const Status read = read_scripts(invocation); !read.ok()) {
    const session::Reply reply = session::complain(read.error());
    complaints.tell(reply);
    return code(reply.exit_code);
  }
  const int count = static_cast<int>(invocation.arguments.size());
  if (command == "launch") {
    const Result<LaunchReply> reply = run_launch(count, invocation.arguments.data(), output);
    if (!reply.ok()) return complaints.fail(reply.error());
    if (!reply->complaint.empty()) complaints.fail(environment_error(reply->complaint));
    return reply->exit_code;
  }
  if (const auto reply = run_command(command, count, invocation.arguments.data(), output)) {
    return reply->ok() ? print(output, complaints, **reply) : complaints.fail(reply->error());
  }
  const Result<Arguments> read = read_arguments(argc, argv);
  if (!read.ok()) return complaints.fail(read.error());
  const Arguments& given = *read;

  if (given.usage) {
    const session::Reply page = session::help({}, json ? SIZE_MAX : output_width());
    return print(output, complaints, own_text("usage", page.output, json));
  }
  if (given.version) {
    return print(
        output, complaints,
        json ? own_text("version", WEFT_VERSION, json) : own_text({}, "weft " WEFT_VERSION "\n", json));
  }
  if (given.help) {
    session::Reply page = session::help(given.topic, json ? SIZE_MAX : output_width());
    if (page.exit_code == ExitCode::ok) page = own_text("help", page.output, json);
    return print(output, complaints, page);
  }

  interrupt::install();
  session::Session session;
  session.format = json ? session::Format::json : session::Format::text;
  ProgressDisplay progress;
  // Of the ranks that a launcher started, only the first prints output; all print errors.
  if (run::launched_rank() == 0)
    session.on_progress = [&](const explain::Progress& now) { progress.show(now); };
  else
    output.silence();
  session.goes_on = false;
  session.on_output = [&](std::string_view text) { output.write(text); };
  // On a terminal, notes appear among the output. In a file or pipe they would be mistaken for
  // output.
  if (isatty(STDOUT_FILENO) == 0 && run::launched_rank() == 0) session.on_note = complain;
  session.on_statement_end = [&] { progress.clear(); };
  session.interrupted = interrupt::requested;
  session.terminated = interrupt::terminated;
  session.on_training = interrupt::defer_termination;
  session.on_warning = [&](std::string_view text) {
    progress.clear();
    complain(text);
  };
  const int result = run_session(session, output, complaints, given);
  // Notify the other ranks, which may be waiting for this one.
  if (complaints.last() && complaints.last()->fault == Fault::world)
    run::notify_other_ranks(*complaints.last());
  return interrupt::exit_code(result);
}

int main_of(int argc, char** argv) {
  Output output;
  return output.exit_code(run_all(argc, argv, output));
}

// Runs as a rank or as the program, and reports exceptions.
int guarded_main(int argc, char** argv) {
  try {
    if (const auto ended = run::rank_main()) return *ended;
    int ended = main_of(argc, argv);
    if (ended != 0) ended = interrupt::exit_code(ended);  // a stopped search may still have succeeded
    if (!device::is_any_abandoned()) return ended;
    std::fflush(nullptr);
    std::_Exit(ended);  // the device's libraries would wait for abandoned work
  } catch (const std::bad_alloc&) {
    complain("error: out of memory\n  check ulimit -v and the container's memory limit\n");
    return code(ExitCode::environment_error);
  } catch (const std::system_error& error) {
    const Error told = thread_error(error);
    complain(fmt::format("error: {}\n  {}\n", told.message, told.hint));
    return code(ExitCode::environment_error);
  } catch (const std::exception& error) {
    complain(fmt::format("error: {}\n  this is a bug in weft; please report it\n", error.what()));
    return code(ExitCode::internal_error);
  }
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::reserve_standard_descriptors();
  return weft::with_large_stack([&] { return weft::guarded_main(argc, argv); });
}
