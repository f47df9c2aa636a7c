#include "weft/app/command/profile.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/profile_model.h"
#include "weft/app/explain/profile_cluster.h"
#include "weft/app/explain/profile_device.h"
#include "weft/app/session/reply.h"
#include "weft/base/file.h"
#include "weft/base/letters.h"
#include "weft/base/machine.h"
#include "weft/device/device.h"
#include "weft/runtime/measure/device_rates.h"
#include "weft/runtime/measure/machine_profile.h"
#include "weft/runtime/run/own_ranks.h"

namespace weft::command {
namespace {

using transport::Job;

constexpr std::int32_t kMostProfileRanks = 1024;
constexpr std::string_view kProfileTransports[] = {"shm", "tcp", "inproc"};

Status check_profile(const Profile& request) {
  if (request.ranks < 0 || request.ranks > kMostProfileRanks) {
    return user_error(fmt::format("expected 1 to {} ranks, found {}", kMostProfileRanks, request.ranks));
  }
  for (const std::string& transport : request.transports)
    if (std::ranges::count(kProfileTransports, transport) == 0)
      return user_error(fmt::format("unknown transport: {}", transport), "use shm or tcp");
  return explain::check_cluster_name(request.name);
}

void note(const Profile& request, const Job& job, std::string_view text) {
  if (request.on_note && job.rank() == 0) request.on_note(text);
}

Status keep(const Profile& request, const measure::MachineProfile& profile) {
  if (request.statistics == "none") return {};
  WEFT_TRY(statistics, cost::Statistics::open(request.statistics, cost::Access::write));
  WEFT_TRY_STATUS(statistics.add(profile.rates));
  return statistics.add(profile.links);
}

// The result on rank 0; empty on other ranks.
Result<std::string> take_part(const std::shared_ptr<Job>& job, const Profile& request) {
  WEFT_TRY(profile,
           measure::measure_machine(
               job, {.transports = request.transports, .quick = request.quick, .on_note = request.on_note}));
  job->leave();
  if (job->rank() != 0) return std::string();
  WEFT_TRY(text, explain::print_cluster(profile, request.name));
  if (const Status kept = keep(request, profile); !kept.ok())
    note(request, *job, fmt::format("the figures were not saved: {}", kept.error().message));
  return text;
}

Result<std::string> start_ranks(const Profile& request) {
  run::OwnRanks own{.command = "profile", .arguments = {"--name", request.name}, .on_note = request.on_note};
  own.ranks = request.ranks > 0 ? request.ranks : std::max(available_processors(), 2);
  if (!request.transports.empty()) {
    own.arguments.insert(own.arguments.end(),
                         {"--transport", fmt::format("{}", fmt::join(request.transports, ","))});
  }
  if (!request.statistics.empty())
    own.arguments.insert(own.arguments.end(), {"--statistics", request.statistics});
  if (request.quick) own.arguments.emplace_back("--quick");
  return run::run_own_ranks(own);
}

// Without a name, the device's model name is used: "NVIDIA H200" becomes h200.
Result<std::string> profile_gpu(const Profile& request) {
  if (!same_word(request.device, "gpu"))
    return user_error(fmt::format("unknown device: {}", request.device),
                      "the only device is gpu: --device gpu");
  if (request.ranks > 0 || !request.transports.empty() || !request.model.empty())
    return user_error("--device gpu cannot be combined with --ranks, --transport or --model",
                      "it measures one GPU on its own");
  WEFT_TRY(gpu, device::open_device("cuda:0"));
  WEFT_TRY(exact, device::open_device("cuda:0 exact"));
  WEFT_TRY(rates, measure::measure_device(
                      {.as_is = gpu, .exact = exact, .quick = request.quick, .on_note = request.on_note}));
  return explain::print_device(rates, gpu->model(), request.name);
}

Result<std::string> answer(const Profile& request) {
  WEFT_TRY_STATUS(check_profile(request));
  if (!request.model.empty()) {
    if (run::part_in("profile", /*counts_ranks=*/false) != run::Part::starts_ranks)
      return user_error("--model starts its own ranks", "run it without a launcher");
    return profile_model(request);
  }
  std::string text;
  if (!request.device.empty()) {
    WEFT_TRY(measured, profile_gpu(request));
    text = std::move(measured);
  } else if (run::part_in("profile", request.ranks > 0) == run::Part::starts_ranks) {
    WEFT_TRY(measured, start_ranks(request));
    text = std::move(measured);
  } else {
    WEFT_TRY(job, run::join_from_environment());
    WEFT_TRY(measured, take_part(job, request));
    text = std::move(measured);
  }
  if (text.empty()) return text;  // not rank 0
  if (!request.to.empty()) WEFT_TRY_STATUS(write_file_atomically(request.to, text));
  if (request.format == session::Format::text) return request.to.empty() ? text : std::string();
  nlohmann::ordered_json json = {{"cluster", request.name}};
  json[request.to.empty() ? "script" : "file"] = request.to.empty() ? text : request.to;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

session::Reply run(const Profile& request) { return session::to_reply(answer(request)); }

}  // namespace weft::command
