#include "weft/runtime/run/own_ranks.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "weft/communication/transport/launch.h"
#include "weft/communication/transport/rendezvous.h"

namespace weft::run {
namespace {

constexpr const char* kPart = "WEFT_PART";
constexpr std::size_t kMostAnswer = 64 << 20;

}  // namespace

Part part_in(std::string_view command, bool counts_ranks) {
  const char* const part = std::getenv(kPart);
  if (part != nullptr && part == command) return Part::own_rank;
  if (counts_ranks) return Part::starts_ranks;
  const auto launched = transport::rendezvous_from_environment();
  return launched.ok() && launched->ranks > 1 ? Part::launched_rank : Part::starts_ranks;
}

Result<std::shared_ptr<transport::Job>> join_from_environment() {
  WEFT_TRY(rendezvous, transport::rendezvous_from_environment());
  WEFT_TRY(job, transport::join(rendezvous));
  return std::shared_ptr<transport::Job>(std::move(job));
}

Result<std::string> run_own_ranks(const OwnRanks& request) {
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure)
    return environment_error(fmt::format("cannot find this program by /proc/self/exe: {}", failure.message()),
                             "mount /proc");
  transport::LaunchOptions options;
  options.ranks = request.ranks;
  options.command = {program.string(), request.command};
  options.command.insert(options.command.end(), request.arguments.begin(), request.arguments.end());
  options.environment = {{kPart, request.command}};
  options.timeout = request.timeout;
  options.forward_signals = true;
  std::string answer, complaint;
  options.on_line = [&](std::int32_t rank, transport::Stream stream, std::string_view line) {
    if (stream == transport::Stream::output) {
      if (rank == 0 && answer.size() < kMostAnswer) answer.append(line).push_back('\n');
    } else if (line.starts_with("error: ")) {
      if (complaint.empty()) complaint = fmt::format("rank {}: {}", rank, line.substr(7));
    } else if (rank == 0 && request.on_note) {
      request.on_note(line);
    }
  };
  WEFT_TRY(end, transport::launch(options));
  if (end.timed_out) {
    return environment_error(fmt::format("weft {} took longer than {} s and was stopped", request.command,
                                         request.timeout.count() / 1000));
  }
  if (end.code() != 0) return environment_error(complaint.empty() ? end.what() : complaint);
  return answer;
}

}  // namespace weft::run
