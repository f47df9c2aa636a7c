#include "doctor.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "subcommands.h"
#include "weft/transport/doctor.h"

namespace weft {
namespace {

constexpr std::string_view kDoctorUsage = R"(weft doctor: what the ranks on this machine are doing

usage:
  weft doctor [PID] [--format text|json]

Asks every process of a job, or the one given, and waits a second at most.
)";

constexpr std::chrono::milliseconds kPatience{1'000};

std::string as_text(const std::vector<transport::Patient>& patients) {
  std::string out;
  for (const transport::Patient& patient : patients) {
    if (!out.empty()) out += '\n';
    if (patient.answer.empty()) {
      out += fmt::format("process {} does not answer: it is {}\n", patient.process, patient.state);
      continue;
    }
    out += patient.answer;
    if (!out.ends_with('\n')) out += '\n';
  }
  return out;
}

std::string as_json(const std::vector<transport::Patient>& patients) {
  using Json = nlohmann::ordered_json;
  Json processes = Json::array();
  for (const transport::Patient& patient : patients) {
    Json row = {{"process", patient.process}};
    if (patient.rank >= 0) row.update({{"rank", patient.rank}, {"ranks", patient.ranks}});
    if (patient.answer.empty()) {
      row["state"] = patient.state;
    } else {
      row["answer"] = patient.answer;
    }
    processes.push_back(std::move(row));
  }
  return Json{{"processes", processes}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

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
  if (format == session::Format::json) return session::Reply{session::ExitCode::ok, as_json(patients), {}};
  if (!patients.empty()) return session::Reply{session::ExitCode::ok, as_text(patients), {}};
  if (process) {
    return world_error(fmt::format("process {} is not a rank of a job here", *process),
                       "weft doctor asks all ranks");
  }
  return session::Reply{session::ExitCode::ok, "no rank of a job runs on this machine\n", {}};
}

}  // namespace weft
