// weft collective run: a program on real ranks.
//
//   inproc      this process, one thread per rank
//   gpu         this process, all ranks in one kernel on its GPU
//   shm, tcp    weft collective run ─┬─ rank 0   the same command again; joins the job, runs its share
//                                    ├─ rank 1   and, on rank 0, writes the combined results as one
//                                    └─ ...      line of JSON
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/collective.h"
#include "weft/app/session/reply.h"
#include "weft/base/hash.h"
#include "weft/base/nearest.h"
#include "weft/base/number.h"
#include "weft/base/units.h"
#include "weft/collectives/check/check.h"
#include "weft/communication/transport/launch.h"
#include "weft/communication/transport/rendezvous.h"
#include "weft/formats/collective_source.h"
#include "weft/runtime/run/collective_trial.h"

namespace weft::command {
namespace {

using collective::Kind;

constexpr std::int32_t kMostRunRanks = 256;
constexpr std::int32_t kMostRepeats = 100'000;
constexpr std::string_view kRunTransports[] = {"inproc", "shm", "tcp", "gpu"};

// The outcomes of all ranks, combined.
struct Summary {
  double seconds = 0;
  std::int64_t wrong = 0;
  std::string first_wrong;
  std::uint64_t checksum = 0;
};

Summary summarize(const std::vector<run::TrialOutcome>& outcomes) {
  Summary summary;
  summary.seconds = run::median_seconds(outcomes);
  Hasher all;
  for (const run::TrialOutcome& outcome : outcomes) {
    if (summary.wrong == 0) summary.first_wrong = outcome.first_wrong;
    summary.wrong += outcome.wrong;
    all.number(outcome.checksum);
  }
  summary.checksum = all.digest().low;
  return summary;
}

Result<double> parse_measure(const std::string& text, Dimension dimension, std::string_view option) {
  const auto quantity = parse_quantity(text);
  if (quantity.ok() && quantity->value >= 0 &&
      (quantity->dimension == dimension || quantity->dimension == Dimension::count))
    return quantity->value;
  return user_error(fmt::format("{} takes {}: {}", option, name(dimension), text),
                    fmt::format("as in {} {}", option, example(dimension)));
}

Status check_transport(const std::string& transport) {
  if (std::ranges::find(kRunTransports, transport) != std::end(kRunTransports)) return {};
  const std::string hint = did_you_mean(transport, kRunTransports);
  return user_error(fmt::format("unknown transport: {}", transport),
                    hint.empty() ? "inproc, shm, tcp or gpu" : hint);
}

Result<collective::Program> read_program(const CollectiveRun& request) {
  formats::CollectiveReading reading;
  if (request.ranks > 0)
    reading.complete = [&](const collective::Algorithm&, collective::Arguments& arguments) {
      arguments.try_emplace("ranks", std::int64_t{request.ranks});
    };
  reading.effort = request.effort;
  WEFT_TRY(source, formats::read_collective(request.program, reading));
  WEFT_TRY_STATUS(formats::check_as(source, request.as));
  return formats::to_program(source);
}

Result<run::CollectiveTrial> prepare(const CollectiveRun& request) {
  WEFT_TRY_STATUS(check_transport(request.transport));
  if (request.ranks < 0 || request.ranks > kMostRunRanks)
    return user_error(fmt::format("--ranks is 1 to {}: {}", kMostRunRanks, request.ranks));
  if (request.repeat < 1 || request.repeat > kMostRepeats)
    return user_error(fmt::format("--repeat is 1 to {}: {}", kMostRepeats, request.repeat));
  run::CollectiveTrial trial;
  const auto type = device::find_element_type(request.type);
  if (!type)
    return user_error(fmt::format("unknown type: {}", request.type),
                      "f64, f32, f16, bf16, i8, i16, i32, i64, u8, u16, u32 or u64");
  const auto op = device::find_reduce_op(request.op);
  if (!op)
    return user_error(fmt::format("unknown operation: {}", request.op),
                      "sum, product, min, max, avg, and, or or xor");
  if (device::is_bitwise(*op) && !device::is_whole(*type))
    return user_error(fmt::format("{} needs an integer type, not {}", request.op, request.type),
                      "--type u32, or another integer");
  WEFT_TRY(bytes, parse_measure(request.bytes, Dimension::bytes, "--bytes"));
  if (bytes > 0x1p50) return user_error(fmt::format("too many bytes for any memory: {}", request.bytes));

  WEFT_TRY(program, read_program(request));
  const collective::Report report = collective::check(program);
  WEFT_TRY_STATUS(formats::expect_correct(report, "the program is"));
  const std::int32_t ranks = program.collective.ranks;
  if (request.ranks > 0 && request.ranks != ranks)
    return user_error(fmt::format("{} is for {} ranks, not {}", request.program, ranks, request.ranks),
                      fmt::format("--ranks {}", ranks));
  if (ranks > kMostRunRanks)
    return user_error(
        fmt::format("{} has {} ranks: at most {} run on one machine", request.program, ranks, kMostRunRanks));
  if (program.collective.kind == Kind::custom && *op == device::ReduceOp::avg)
    return user_error("avg is not defined for a custom collective", "--op sum");
  if (request.verify && program.collective.kind == Kind::custom && program.collective.wants.empty())
    return user_error(
        fmt::format("{} does not state its collective: there is nothing to verify", request.program),
        "state it with --as COLLECTIVE: --as broadcast or --as 'out[r]=in[r+1]'");
  trial.slots = std::max(report.slots, report.slots_small);
  trial.program = std::make_shared<const collective::Program>(std::move(program));
  trial.type = *type;
  trial.op = *op;
  trial.in_place = request.in_place;
  trial.verify = request.verify;
  trial.repeat = request.repeat;
  return run::with_bytes(std::move(trial), static_cast<std::int64_t>(bytes));
}

nlohmann::ordered_json to_json(const Summary& summary) {
  return {{"seconds", summary.seconds},
          {"wrong", summary.wrong},
          {"first_wrong", summary.first_wrong},
          {"checksum", fmt::format("{:016x}", summary.checksum)}};
}

std::optional<Summary> parse_summary(std::string_view line) {
  try {
    const auto json = nlohmann::json::parse(line);
    const auto checksum = read_number<std::uint64_t>(json.at("checksum").get<std::string>(), 0,
                                                     std::numeric_limits<std::uint64_t>::max(), 16);
    if (!checksum) return std::nullopt;
    return Summary{json.at("seconds"), json.at("wrong"), json.at("first_wrong"), *checksum};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

// Runs in a rank's process; the parent process reads the output.
Result<std::string> play_rank(const CollectiveRun& request) {
  WEFT_TRY(trial, prepare(request));
  WEFT_TRY(rendezvous, transport::rendezvous_from_environment());
  WEFT_TRY(timeout, parse_measure(request.timeout, Dimension::seconds, "--timeout"));
  rendezvous.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout * 1000));
  WEFT_TRY(job, transport::join(rendezvous));
  const std::shared_ptr<transport::Job> shared = std::move(job);
  WEFT_TRY(outcomes, run::run_trial(trial, shared, request.transport));
  if (shared->rank() != 0) return std::string();
  return to_json(summarize(outcomes)).dump() + "\n";
}

std::vector<std::string> command_of(const CollectiveRun& request, std::int32_t ranks) {
  if (!request.rank_command.empty()) return request.rank_command;
  std::vector<std::string> command = {"/proc/self/exe", "collective", "run", request.program};
  const auto add = [&](std::string option, std::string value) {
    command.push_back(std::move(option));
    command.push_back(std::move(value));
  };
  add("--ranks", std::to_string(ranks));
  add("--transport", request.transport);
  add("--bytes", request.bytes);
  add("--type", request.type);
  add("--op", request.op);
  add("--repeat", std::to_string(request.repeat));
  add("--timeout", request.timeout);
  if (!request.as.empty()) add("--as", request.as);
  if (request.in_place) command.emplace_back("--in-place");
  if (request.verify) command.emplace_back("--verify");
  return command;
}

Result<Summary> run_processes(const CollectiveRun& request, std::int32_t ranks) {
  std::optional<Summary> summary;
  std::vector<std::string> complaints(static_cast<std::size_t>(ranks));
  transport::LaunchOptions options;
  options.ranks = ranks;
  options.command = command_of(request, ranks);
  options.environment = {{kCollectiveRankVariable, "1"}};
  options.forward_signals = true;
  options.on_line = [&](std::int32_t rank, transport::Stream stream, std::string_view line) {
    if (stream == transport::Stream::output && rank == 0 && !summary) summary = parse_summary(line);
    std::string& complaint = complaints[static_cast<std::size_t>(rank)];
    if (stream == transport::Stream::error && complaint.empty()) complaint = line;
  };
  WEFT_TRY(end, transport::launch(options));
  if (end.first_failure) {
    std::string complaint = complaints[static_cast<std::size_t>(*end.first_failure)];
    constexpr std::string_view kPrefix = "error: ";
    if (complaint.starts_with(kPrefix)) complaint.erase(0, kPrefix.size());
    return environment_error(complaint.empty() ? end.what()
                                               : fmt::format("rank {}: {}", *end.first_failure, complaint));
  }
  if (!summary) return environment_error("rank 0 ended without a report");
  return std::move(*summary);
}

std::string to_text(const run::CollectiveTrial& trial, const CollectiveRun& request, const Summary& summary) {
  const collective::Collective& collective = trial.program->collective;
  const std::int64_t bytes = run::message_bytes(trial);
  const double algorithm_bandwidth =
      summary.seconds > 0 ? static_cast<double>(bytes) / summary.seconds / 1e9 : 0;
  constexpr std::string_view kRow = "{}{:>11} {:>11} {:>5} {:>7} {:>4} {:>10} {:>7} {:>7} {:>6}\n";
  std::string text =
      fmt::format("# {}, {} ranks, {}, {}\n", collective::name(collective.kind), collective.ranks,
                  request.transport, trial.in_place ? "in place" : "out of place");
  text +=
      fmt::format(kRow, "#", "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong");
  text += fmt::format(kRow, "#", "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "");
  text += fmt::format(
      kRow, " ", bytes, trial.counts.empty() ? fmt::format("{}", trial.count) : "uneven",
      device::name(trial.type),
      collective::reduces(collective.kind) || collective.kind == Kind::custom ? device::name(trial.op)
                                                                              : "none",
      comm::has_root(collective.kind) ? collective.root : -1, fmt::format("{:.2f}", summary.seconds * 1e6),
      fmt::format("{:.2f}", algorithm_bandwidth),
      fmt::format("{:.2f}", algorithm_bandwidth * collective::bus_factor(collective.kind, collective.ranks)),
      trial.verify ? fmt::format("{}", summary.wrong) : "N/A");
  if (summary.wrong > 0) return text + fmt::format("wrong: {}\n", summary.first_wrong);
  return text +
         fmt::format("{}, checksum {:016x}\n", trial.verify ? "ok" : "ok (not verified)", summary.checksum);
}

std::string to_json_text(const run::CollectiveTrial& trial, const CollectiveRun& request,
                         const Summary& summary) {
  nlohmann::ordered_json json;
  const collective::Collective& collective = trial.program->collective;
  const std::int64_t bytes = run::message_bytes(trial);
  const double bandwidth = summary.seconds > 0 ? static_cast<double>(bytes) / summary.seconds : 0;
  json["program"] = request.program;
  json["collective"] = collective::name(collective.kind);
  json["ranks"] = collective.ranks;
  json["transport"] = request.transport;
  json["bytes"] = bytes;
  json["type"] = device::name(trial.type);
  json["op"] = device::name(trial.op);
  json["in_place"] = trial.in_place;
  json["repeat"] = trial.repeat;
  json["microseconds"] = summary.seconds * 1e6;
  json["algorithm_bandwidth"] = bandwidth;
  json["bus_bandwidth"] = bandwidth * collective::bus_factor(collective.kind, collective.ranks);
  json["verified"] = trial.verify;
  json["wrong"] = summary.wrong;
  if (summary.wrong > 0) json["first_wrong"] = summary.first_wrong;
  json["checksum"] = fmt::format("{:016x}", summary.checksum);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

session::Reply run(const CollectiveRun& request) {
  if (std::getenv(kCollectiveRankVariable) != nullptr) return session::to_reply(play_rank(request));
  const auto trial = prepare(request);
  if (!trial.ok()) return session::complain(trial.error());
  const auto timeout = parse_measure(request.timeout, Dimension::seconds, "--timeout");
  if (!timeout.ok()) return session::complain(timeout.error());
  Result<Summary> summary = user_error("");
  if (request.transport == "inproc") {
    const auto outcomes = run::run_trial_on_threads(
        *trial, std::chrono::milliseconds(static_cast<std::int64_t>(*timeout * 1000)));
    summary = outcomes.ok() ? Result<Summary>(summarize(*outcomes)) : Result<Summary>(outcomes.error());
  } else if (request.transport == "gpu") {
    const auto outcomes = run::run_trial_on_gpu(*trial);
    summary = outcomes.ok() ? Result<Summary>(summarize(*outcomes)) : Result<Summary>(outcomes.error());
  } else {
    summary = run_processes(request, trial->program->collective.ranks);
  }
  if (!summary.ok()) return session::complain(summary.error());
  session::Reply reply;
  reply.output = request.format == session::Format::json ? to_json_text(*trial, request, *summary)
                                                         : to_text(*trial, request, *summary);
  if (summary->wrong > 0) reply.exit_code = session::ExitCode::user_error;
  return reply;
}

}  // namespace weft::command
