#include "doctor.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "subcommands.h"
#include "weft/exec/left_flights.h"
#include "weft/explain/diagnosis.h"
#include "weft/transport/doctor.h"

namespace weft {
namespace {

constexpr std::string_view kDoctorUsage = R"(weft doctor: what the ranks on this machine are doing

usage:
  weft doctor [PID] [--format text|json]

Asks every process of a job, or the one given, and waits a second at most.
)";

constexpr std::chrono::milliseconds kPatience{1'000};

}  // namespace

Result<session::Reply> run_doctor(int argc, char** argv) {
  std::optional<pid_t> process;
  session::Format format = session::Format::text;
  bool help = false;
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", help);
  app.add_option("PID", process)->check(CLI::PositiveNumber);
  add_format(&app, format);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return user_error(error.what(), "weft doctor --help shows how it is used");
  }
  if (help) return session::Reply{session::ExitCode::ok, std::string(kDoctorUsage), {}};
  WEFT_TRY(patients, transport::ask_ranks(process, kPatience));
  if (process && patients.empty()) {
    return world_error(fmt::format("process {} is not a rank of a job here", *process),
                       "weft doctor asks all ranks");
  }
  if (format == session::Format::json)
    return session::Reply{session::ExitCode::ok, explain::print_json(patients), {}};
  if (!patients.empty()) return session::Reply{session::ExitCode::ok, explain::print_text(patients), {}};
  std::string text = "no rank of a job runs on this machine\n";
  if (const auto left = exec::find_left_flights()) text += "\nthe last whose device failed, at " + *left;
  return session::Reply{session::ExitCode::ok, std::move(text), {}};
}

}  // namespace weft
