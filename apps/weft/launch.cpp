#include "launch.h"

#include <cstdio>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "subcommands.h"
#include "weft/base/nearest.h"
#include "weft/base/units.h"
#include "weft/transport/launch.h"

namespace weft {
namespace {

constexpr std::string_view kLaunchUsage = R"(weft launch: start the ranks of a job on this machine

usage:
  weft launch -n RANKS [--tag] [--grace TIME] [--timeout TIME] [--format text|json] PROGRAM [ARGUMENT...]

  -n RANKS        how many processes
  --tag           begin every line that a rank writes with its number: [2] ...
  --grace TIME    how long the others have to report a rank that failed before they are ended (5 s)
  --timeout TIME  end all ranks after this time
  --format json   say in JSON what goes wrong

`weft help launch` tells what ranks find in their environment.
)";

Status read_time(const std::string& text, std::string_view option, std::chrono::milliseconds& out) {
  if (text.empty()) return {};
  const Result<Quantity> time = parse_quantity(text);
  constexpr double kLongest = 366 * 86400.0;
  if (!time.ok() || time->dimension != Dimension::seconds || !(time->value >= 0 && time->value <= kLongest)) {
    return user_error(fmt::format("{} needs a time: '{}'", option, text), "write it with its unit: 5 s");
  }
  out = std::chrono::milliseconds(static_cast<std::int64_t>(time->value * 1000.0));
  return {};
}

Error unknown_option(const std::string& option) {
  constexpr std::string_view kOptions[] = {"-n", "--tag", "--grace", "--timeout", "--format", "--help"};
  const std::string hint = did_you_mean(option, kOptions);
  return user_error(fmt::format("unknown option: {}", option),
                    hint.empty() ? "weft launch --help lists what there is" : hint);
}

}  // namespace

Result<LaunchReply> run_launch(int argc, char** argv, Output& output) {
  transport::LaunchOptions options;
  options.forward_signals = true;
  options.ranks = 0;
  std::string grace, timeout;
  bool tag = false, help = false;
  CLI::App app;
  app.set_help_flag();
  app.prefix_command();  // from the program on, everything is the program's
  app.add_flag("-h,--help", help);
  app.add_option("-n,--ranks", options.ranks);
  app.add_flag("--tag", tag);
  app.add_option("--grace", grace);
  app.add_option("--timeout", timeout);
  session::Format format = session::Format::text;  // main() looks at it
  add_format(&app, format);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return user_error(error.what(), "weft launch --help shows how it is used");
  }
  if (help || argc == 1) {
    output.write(kLaunchUsage);
    return LaunchReply{};
  }
  options.command = app.remaining();
  if (!options.command.empty() && options.command.front() == "--")
    options.command.erase(options.command.begin());
  if (options.command.empty()) return user_error("launch needs a program", "weft launch -n 4 PROGRAM");
  if (options.command.front().starts_with('-')) return unknown_option(options.command.front());
  if (options.ranks == 0) return user_error("launch needs a number of ranks", "weft launch -n 4 PROGRAM");
  WEFT_TRY_STATUS(read_time(grace, "--grace", options.grace));
  WEFT_TRY_STATUS(read_time(timeout, "--timeout", options.timeout));
  if (tag) {
    options.on_line = [&](std::int32_t rank, transport::Stream stream, std::string_view line) {
      const std::string tagged = fmt::format("[{}] {}\n", rank, line);
      if (stream == transport::Stream::output) {
        output.write(tagged);
      } else {
        std::fwrite(tagged.data(), 1, tagged.size(), stderr);
      }
    };
  }
  WEFT_TRY(end, transport::launch(options));
  LaunchReply reply{end.code(), end.what()};
  if (end.timed_out && reply.exit_code == 0) reply.exit_code = 2;
  return reply;
}

}  // namespace weft
