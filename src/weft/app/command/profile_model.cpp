#include "weft/app/command/profile_model.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/table.h"
#include "weft/app/session/session.h"
#include "weft/base/machine.h"
#include "weft/base/units.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft::command {
namespace {

constexpr int kMostRounds = 4;  // most plans to measure per number of ranks

bool is_word(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

Status check_model_request(const Profile& request) {
  if (!is_word(request.model))
    return user_error(fmt::format("expected the name of a model, found {}", request.model),
                      "SHOW MODELS lists them");
  if (request.ranks > run::kMostLocalRanks)
    return user_error(
        fmt::format("expected 1 to {} ranks on this machine, found {}", run::kMostLocalRanks, request.ranks));
  if (!request.statistics.empty() || !request.to.empty() || !request.transports.empty())
    return user_error("--model can be combined only with --with, --ranks and --quick",
                      "the times are stored in your own statistics database");
  return {};
}

std::string statement(const Profile& request, std::int32_t ranks) {
  constexpr int kSteps = 10, kQuickSteps = 3;
  return fmt::format("EXPLAIN (ANALYZE, FORMAT json) TRAIN {} ON LOCAL {} STEPS {}{}", request.model, ranks,
                     request.quick ? kQuickSteps : kSteps,
                     request.with.empty() ? std::string() : fmt::format(" WITH ({})", request.with));
}

// The error message without its position, because the user did not type this statement.
Error failed(const session::Reply& reply) {
  const std::string_view first = std::string_view(reply.complaint).substr(0, reply.complaint.find('\n'));
  const std::size_t colon = first.find(": ");
  std::string message(colon == std::string_view::npos ? first : first.substr(colon + 2));
  return reply.exit_code == session::ExitCode::user_error ? user_error(std::move(message))
                                                          : environment_error(std::move(message));
}

std::string measured_percent(const nlohmann::json& measured, const char* key) {
  const auto found = measured.find(key);
  return found == measured.end() ? "" : fmt::format("{:.0f} %", 100 * found->get<double>());
}

}  // namespace

Result<std::string> profile_model(const Profile& request) {
  WEFT_TRY_STATUS(check_model_request(request));
  const std::int32_t most =
      request.ranks > 0 ? request.ranks : std::min(available_processors(), run::kMostLocalRanks);
  std::vector<std::int32_t> sizes = {1};
  if (most > 1) sizes.push_back(most);
  explain::Table table({{"ranks", explain::Align::right},
                        {"step time", explain::Align::right},
                        {"predicted", explain::Align::right},
                        {"unit error before", explain::Align::right},
                        {"after", explain::Align::right},
                        {"distribution"}});
  auto rows = nlohmann::ordered_json::array();
  for (const std::int32_t ranks : sizes) {
    std::string plan;
    // New measurements can change the chosen plan; then measure that plan as well.
    for (int round = 0; round < kMostRounds; ++round) {
      if (request.on_note)
        request.on_note(fmt::format("{} on {} rank{}", request.model, ranks, ranks == 1 ? "" : "s"));
      session::Session session;
      const session::Reply reply = session.execute(statement(request, ranks));
      if (reply.exit_code != session::ExitCode::ok) return failed(reply);
      const auto json = nlohmann::json::parse(reply.output, nullptr, /*allow_exceptions=*/false);
      if (!json.is_object() || !json.contains("measured")) return environment_error("nothing was measured");
      const nlohmann::json& measured = json["measured"];
      // With one rank there is no predicted plan.
      const bool alone = ranks == 1;
      rows.push_back({{"ranks", ranks}, {"measured", measured}});
      if (!alone)
        rows.back().update(
            {{"step_seconds", json.value("step_seconds", 0.0)}, {"plan", json.value("plan", "")}});
      table.add({fmt::format("{}", ranks),
                 print_seconds(measured.value(alone ? "seconds_a_step" : "step_seconds", 0.0)),
                 alone ? "" : print_seconds(json.value("step_seconds", 0.0)),
                 measured_percent(measured, "median_error_before"),
                 measured_percent(measured, "median_error_after"), alone ? "" : json.value("plan", "")});
      if (alone || json.value("plan", "") == plan) break;
      plan = json.value("plan", "");
    }
  }
  if (request.format == session::Format::json)
    return nlohmann::ordered_json{{"model", request.model}, {"rows", std::move(rows)}}.dump() + "\n";
  return table.print();
}

}  // namespace weft::command
