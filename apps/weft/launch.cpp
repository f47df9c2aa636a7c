#include "launch.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "subcommands.h"
#include "weft/app/session/session.h"
#include "weft/base/nearest.h"
#include "weft/base/units.h"
#include "weft/communication/transport/launch.h"
#include "weft/communication/transport/rendezvous.h"

namespace weft {
namespace {

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
  constexpr std::string_view kOptions[] = {"-n",           "--tag",     "--restarts", "--least", "--grace",
                                           "--stop-grace", "--timeout", "--format",   "--help"};
  const std::string hint = did_you_mean(option, kOptions);
  return user_error(fmt::format("unknown option: {}", option),
                    hint.empty() ? "run weft launch --help" : hint);
}

constexpr int kStopped = static_cast<int>(session::ExitCode::stopped);

// How to react to a failed rank.
struct Restarts {
  std::int64_t most = 0;
  std::int32_t least_ranks = 0;  // 0: restart all ranks
};

Status check(const Restarts& restarts, std::int32_t ranks) {
  if (restarts.most < 0 || restarts.most > 1'000'000)
    return user_error(fmt::format("--restarts needs a number from 0 to 1,000,000: {}", restarts.most));
  if (restarts.least_ranks == 0) return {};
  if (restarts.most == 0)
    return user_error("--least needs --restarts", "weft launch -n 4 --restarts 3 --least 2 PROGRAM");
  if (restarts.least_ranks < 1 || restarts.least_ranks > ranks)
    return user_error(
        fmt::format("--least needs a number of ranks from 1 to {}: {}", ranks, restarts.least_ranks));
  return {};
}

// Ranks that were terminated on request are not restarted.
bool is_worth_another(const transport::LaunchEnd& end) {
  return end.first_failure && !end.asked_to_end && !end.timed_out && end.code() != kStopped &&
         end.code() != kOutputLost;
}

Result<transport::LaunchEnd> launch_until_done(transport::LaunchOptions options, const Restarts& restarts) {
  const auto begun = std::chrono::steady_clock::now();
  const auto all = options.timeout;
  if (restarts.most > 0)
    options.environment.emplace_back("WEFT_LAUNCH", transport::new_secret().substr(0, 16));
  if (restarts.least_ranks > 0) options.environment.emplace_back("WEFT_ELASTIC", "1");
  const auto own = options.environment;
  for (std::int64_t again = 0;; ++again) {
    WEFT_TRY(end, transport::launch(options));
    if (again == restarts.most || !is_worth_another(end)) return end;
    if (restarts.least_ranks > 0 && options.ranks == restarts.least_ranks) return end;
    if (restarts.least_ranks > 0) --options.ranks;
    if (all.count() > 0) {
      options.timeout = all - std::chrono::duration_cast<std::chrono::milliseconds>(
                                  std::chrono::steady_clock::now() - begun);
      if (options.timeout.count() <= 0) return end;
    }
    options.environment = own;
    options.environment.emplace_back("WEFT_RESTARTS", std::to_string(again + 1));
    complain(fmt::format("warning: {}: restarting with {} rank{}, restart {} of {}\n", end.what(),
                         options.ranks, options.ranks == 1 ? "" : "s", again + 1, restarts.most));
  }
}

}  // namespace

Result<LaunchReply> run_launch(int argc, char** argv, Output& output) {
  transport::LaunchOptions options;
  options.forward_signals = true;
  options.ranks = 0;
  std::string grace, stop_grace, timeout;
  Restarts restarts;
  bool tag = false, help = false;
  CLI::App app;
  app.set_help_flag();
  app.prefix_command();  // everything after the program's name belongs to it
  app.add_flag("-h,--help", help);
  app.add_option("-n,--ranks", options.ranks);
  app.add_flag("--tag", tag);
  app.add_option("--restarts", restarts.most);
  app.add_option("--least", restarts.least_ranks);
  app.add_option("--grace", grace);
  app.add_option("--stop-grace", stop_grace);
  app.add_option("--timeout", timeout);
  session::Format format = session::Format::text;  // evaluated by main()
  add_format(&app, format);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return user_error(error.what(), "run weft launch --help");
  }
  if (help || argc == 1) {
    output.write(session::help("launch", output_width()).output);
    return LaunchReply{};
  }
  options.command = app.remaining();
  if (!options.command.empty() && options.command.front() == "--")
    options.command.erase(options.command.begin());
  if (options.command.empty()) return user_error("launch needs a program", "weft launch -n 4 PROGRAM");
  if (options.command.front().starts_with('-')) return unknown_option(options.command.front());
  if (options.ranks == 0) return user_error("launch needs a number of ranks", "weft launch -n 4 PROGRAM");
  WEFT_TRY_STATUS(read_time(grace, "--grace", options.grace));
  WEFT_TRY_STATUS(read_time(stop_grace, "--stop-grace", options.stop_grace));
  WEFT_TRY_STATUS(read_time(timeout, "--timeout", options.timeout));
  WEFT_TRY_STATUS(check(restarts, options.ranks));
  if (tag) {
    options.on_line = [&](std::int32_t rank, transport::Stream stream, std::string_view line) {
      const std::string tagged = fmt::format("[{}] {}\n", rank, line);
      if (stream == transport::Stream::output) {
        output.pass_on(tagged);
      } else {
        std::fwrite(tagged.data(), 1, tagged.size(), stderr);
      }
    };
  }
  WEFT_TRY(end, launch_until_done(std::move(options), restarts));
  LaunchReply reply{end.code(), end.what()};
  if (end.timed_out && reply.exit_code == 0) reply.exit_code = 2;
  if (reply.exit_code == kStopped || reply.exit_code == kOutputLost)
    reply.complaint.clear();  // already printed by ranks
  if (reply.exit_code == kOutputLost)
    reply.exit_code = static_cast<int>(session::ExitCode::environment_error);
  return reply;
}

}  // namespace weft
