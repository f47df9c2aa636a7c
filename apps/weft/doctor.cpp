#include "doctor.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "output.h"
#include "subcommands.h"
#include "weft/app/explain/diagnosis.h"
#include "weft/communication/transport/doctor.h"
#include "weft/runtime/exec/saved_flight_record.h"

namespace weft {
namespace {

constexpr std::size_t kUsualCalls = 10;

constexpr std::chrono::milliseconds kPatience{1'000};

// Stands for a process that has ended.
transport::RankReport former_patient(exec::SavedFlightRecord left) {
  return {.process = left.process, .answer = std::move(left.text), .state = "ended"};
}

std::string print_left(const exec::SavedFlightRecord& left) {
  return fmt::format("the last process whose device failed, at {}\n{}", left.time, left.text);
}

}  // namespace

Result<session::Reply> run_doctor(int argc, char** argv) {
  std::optional<pid_t> process;
  session::Format format = session::Format::text;
  bool help = false, all = false;
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", help);
  app.add_option("PID", process)->check(CLI::PositiveNumber);
  app.add_flag("--all", all);
  add_format(&app, format);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return user_error(error.what(), "run weft doctor --help");
  }
  if (help) return session::help("doctor", output_width());
  WEFT_TRY(patients, transport::query_ranks(process, kPatience));
  const auto left = exec::find_saved_flight_record();
  const bool is_former = process && patients.empty() && left && left->process == *process;
  if (process && patients.empty() && !is_former) {
    return environment_error(fmt::format("process {} is not a rank of a job here", *process),
                             "run weft doctor to query all ranks");
  }
  std::string text;
  if (format == session::Format::json) {
    if (is_former) patients.push_back(former_patient(*left));
    text = explain::print_json(patients);
  } else if (is_former) {
    text = print_left(*left);
  } else if (patients.empty()) {
    text = "no rank of a job runs on this machine\n";
    if (left) text += "\n" + print_left(*left);
  } else {
    text = explain::print_text(patients, all ? SIZE_MAX : kUsualCalls);
    if (left && !process)
      text += fmt::format("\nthe device of process {} failed at {}: run weft doctor {} for details\n",
                          left->process, left->time, left->process);
  }
  return session::Reply{session::ExitCode::ok, std::move(text), {}};
}

}  // namespace weft
