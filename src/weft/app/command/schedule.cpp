// weft schedule: reads schedules and times from arguments, and prints answers as text or JSON.
#include "weft/app/command/schedule.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/table.h"
#include "weft/app/session/reply.h"
#include "weft/base/file.h"
#include "weft/base/number.h"
#include "weft/parallel/pipeline/check_claims.h"
#include "weft/parallel/pipeline/draw.h"
#include "weft/parallel/pipeline/library.h"
#include "weft/parallel/pipeline/schedule_cost.h"
#include "weft/parallel/pipeline/synthesize.h"
#include "weft/parallel/pipeline/torch_csv.h"
#include "weft/parallel/pipeline/verify.h"

namespace weft::command {
namespace {

using ScheduleJson = nlohmann::ordered_json;

constexpr std::int64_t kMostScheduleBytes = 64 << 20;

std::string line_of(const ScheduleJson& json) {
  return json.dump(-1, ' ', false, ScheduleJson::error_handler_t::replace) + "\n";
}

// "1.5" or "1,2,3"; a single number applies to all stages.
Result<std::vector<double>> read_numbers(const std::string& text, std::string_view option) {
  std::vector<double> numbers;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const auto number = read_number<double>(std::string_view(text).substr(at, comma - at));
    if (!number)
      return user_error(fmt::format(
          "{}: expected one number or a comma-separated list of one per stage, found {}", option, text));
    numbers.push_back(*number);
    at = comma + 1;
  }
  return numbers;
}

Result<pipeline::Times> read_times(const PassTimes& given, std::int32_t stages) {
  pipeline::Times times;
  const std::tuple<const std::string*, std::vector<double>*, std::string_view> lists[] = {
      {&given.forward, &times.forward, "--forward"},
      {&given.backward, &times.backward, "--backward"},
      {&given.weight, &times.weight, "--weight"},
      {&given.transfer, &times.transfer, "--transfer"}};
  for (const auto& [text, list, option] : lists) {
    WEFT_TRY(numbers, read_numbers(*text, option));
    if (numbers.size() == 1) numbers.assign(static_cast<std::size_t>(std::max(stages, 1)), numbers.front());
    // p stages have p - 1 transfers between neighbours; the p-th goes from the last stage to the
    // first.
    if (list == &times.transfer && numbers.size() + 1 == static_cast<std::size_t>(stages))
      numbers.push_back(numbers.back());
    *list = std::move(numbers);
  }
  times.overlap = given.overlap;
  WEFT_TRY_STATUS(pipeline::check(times, stages));
  return times;
}

Result<std::map<std::string, double>> parameters_of(const ScheduleSelection& which) {
  std::map<std::string, double> parameters;
  for (const auto& [name, number] :
       {std::pair("stages", which.stages), std::pair("micro_batches", which.micro_batches),
        std::pair("chunks", which.chunks)})
    if (number != 0) parameters[name] = number;
  for (const std::string& set : which.set) {
    const std::size_t equals = set.find('=');
    const std::string name = set.substr(0, equals);
    const auto value = equals == std::string::npos
                           ? std::nullopt
                           : read_number<double>(std::string_view(set).substr(equals + 1));
    if (name.empty() || !value)
      return user_error(fmt::format("--set: expected a parameter and its value, found {}", set),
                        "for example warm=2");
    if (!parameters.emplace(name, *value).second)
      return user_error(fmt::format("parameter given twice: {}", name));
  }
  return parameters;
}

// A schedule and the text it was unfolded from; a CSV has none.
struct ReadSchedule {
  std::optional<pipeline::ScheduleText> text;
  std::map<std::string, double> parameters;
  pipeline::Schedule schedule;
};

// PyTorch's CSV states its sizes; sizes on the command line must equal them.
Result<ReadSchedule> read_torch_schedule(std::string_view csv, const std::string& file,
                                         std::map<std::string, double> parameters) {
  auto read = pipeline::parse_torch_csv(csv);
  if (!read.ok()) {
    Error error = std::move(read).error();
    error.message = fmt::format("{}: {}", file, error.message);
    return error;
  }
  pipeline::Schedule& schedule = read->schedule;
  const std::map<std::string, double> sizes = {
      {"stages", schedule.stages}, {"micro_batches", schedule.micro_batches}, {"chunks", schedule.chunks}};
  for (const auto& [parameter, value] : parameters) {
    const auto size = sizes.find(parameter);
    if (size == sizes.end())
      return user_error(fmt::format("{}: a CSV has no parameters, found {}", file, parameter));
    if (size->second != value)
      return user_error(fmt::format("{}: expected {} = {}, found {}", file, parameter, value, size->second));
  }
  return ReadSchedule{std::nullopt, std::move(parameters), std::move(schedule)};
}

Result<ReadSchedule> read_schedule(const ScheduleSelection& which) {
  WEFT_TRY(parameters, parameters_of(which));
  std::error_code unused;
  if (!std::filesystem::is_regular_file(which.name, unused)) {
    WEFT_TRY(shipped, pipeline::find_schedule(which.name));
    WEFT_TRY(schedule, pipeline::unfold(*shipped, parameters));
    return ReadSchedule{*shipped, std::move(parameters), std::move(schedule)};
  }
  WEFT_TRY(text, read_file(which.name, kMostScheduleBytes));
  if (which.name.ends_with(".csv")) return read_torch_schedule(text, which.name, std::move(parameters));
  auto parsed = pipeline::parse_schedule(text);
  if (!parsed.ok()) return session::in_text(text, std::move(parsed).error());
  auto schedule = pipeline::unfold(*parsed, parameters);
  if (!schedule.ok()) return session::in_text(text, std::move(schedule).error());
  return ReadSchedule{std::move(parsed).value(), std::move(parameters), std::move(schedule).value()};
}

Result<pipeline::Schedule> find_or_read(const ScheduleSelection& which) {
  WEFT_TRY(read, read_schedule(which));
  return std::move(read.schedule);
}

ScheduleJson to_json(const pipeline::Schedule& schedule, const pipeline::Price& price) {
  return {{"schedule", schedule.name},
          {"stages", schedule.stages},
          {"micro_batches", schedule.micro_batches},
          {"chunks", schedule.chunks},
          {"route", name(schedule.route)},
          {"clock", name(schedule.clock)},
          {"cost", price.cost},
          {"bubble_rate", price.bubble_rate},
          {"peak_in_flight", price.peak_in_flight},
          {"end", price.end},
          {"span", price.span},
          {"idle", price.idle}};
}

std::string to_text(const pipeline::Schedule& schedule, const pipeline::Price& price, std::size_t width) {
  return explain::wrap(
      fmt::format(
          "{}: {} stages, {} micro-batches{}\ncost {:.6g} ({}), bubble {:.2f} %\nin flight at most {}\n",
          schedule.name, schedule.stages, schedule.micro_batches,
          schedule.chunks > 1 ? fmt::format(", {} chunks per stage", schedule.chunks) : std::string(),
          price.cost, name(schedule.clock), 100 * price.bubble_rate, fmt::join(price.peak_in_flight, " ")),
      width);
}

Result<std::string> answer(const ScheduleList& request) {
  ScheduleJson json = ScheduleJson::array();
  explain::Table table({{"schedule"}, {"what it does", explain::Align::left, explain::Fit::wrap}});
  for (const pipeline::ScheduleText& one : pipeline::shipped_schedules()) {
    const std::string first = one.comment.substr(0, one.comment.find('\n'));
    ScheduleJson parameters = ScheduleJson::object();
    for (const auto& parameter : one.parameters)
      parameters[parameter.name] = parameter.value ? ScheduleJson(*parameter.value) : ScheduleJson(nullptr);
    json.push_back({{"schedule", one.name},
                    {"about", first},
                    {"route", name(one.route)},
                    {"parameters", parameters},
                    {"bubble", one.bubble_text},
                    {"peak", one.peak_text},
                    {"from", one.from_text},
                    {"overlap", !one.overlap.empty()}});
    table.add({one.name, first});
  }
  return request.format == session::Format::json ? line_of(json) : table.print(request.width);
}

Result<std::string> answer(const ScheduleShow& request) {
  WEFT_TRY(schedule, find_or_read(request.which));
  WEFT_TRY(times, read_times(request.times, schedule.stages));
  WEFT_TRY(price, pipeline::price(schedule, times));
  if (!request.to.empty()) {
    if (!request.to.ends_with(".svg"))
      return user_error(fmt::format("unknown file format: {}", request.to), "use .svg");
    WEFT_TRY_STATUS(write_file_atomically(request.to, pipeline::draw_svg(schedule, price)));
  }
  ScheduleJson json = to_json(schedule, price);
  json["text"] = print(schedule);
  if (!request.to.empty()) json["file"] = request.to;
  if (request.format == session::Format::json) return line_of(json);
  if (!request.to.empty()) return to_text(schedule, price, request.width);
  return to_text(schedule, price, request.width) + pipeline::draw_text(schedule, price, request.width);
}

Result<std::string> answer(const ScheduleCheck& request) {
  WEFT_TRY(read, read_schedule(request.which));
  const pipeline::Schedule& schedule = read.schedule;
  std::vector<double> memory;
  if (!request.memory.empty()) {
    WEFT_TRY(limits, read_numbers(request.memory, "--memory"));
    memory = std::move(limits);
  }
  WEFT_TRY_STATUS(pipeline::verify(schedule, memory));
  std::vector<std::string> claims;  // a CSV has none
  if (read.text) {
    WEFT_TRY(checked, pipeline::check_claims(*read.text, schedule, read.parameters));
    claims = std::move(checked);
  }
  const std::vector<double> peaks = pipeline::peak_in_flight(schedule);
  if (request.format == session::Format::json)
    return line_of(
        {{"schedule", schedule.name}, {"right", true}, {"claims", claims}, {"peak_in_flight", peaks}});
  return explain::wrap(
      fmt::format("{} is valid: {} stages, {} micro-batches, at most {} in flight{}\n", schedule.name,
                  schedule.stages, schedule.micro_batches, fmt::join(peaks, " "),
                  claims.empty() ? "" : fmt::format("; {} as claimed", fmt::join(claims, " and "))),
      request.width);
}

Result<std::string> answer(const ScheduleEstimate& request) {
  WEFT_TRY(schedule, find_or_read(request.which));
  WEFT_TRY(times, read_times(request.times, schedule.stages));
  WEFT_TRY(price, pipeline::price(schedule, times));
  return request.format == session::Format::json ? line_of(to_json(schedule, price))
                                                 : to_text(schedule, price, request.width);
}

Result<std::string> answer(const ScheduleExport& request) {
  using pipeline::TorchFormat;
  WEFT_TRY(schedule, find_or_read(request.which));
  TorchFormat format = TorchFormat::compute_only;
  if (request.torch == name(TorchFormat::compute_comms))
    format = TorchFormat::compute_comms;
  else if (request.torch != name(format))
    return user_error(
        fmt::format("--torch: expected compute_only or compute_comms, found {}", request.torch));
  WEFT_TRY(csv, pipeline::print_torch_csv(schedule, format));
  if (!request.to.empty()) WEFT_TRY_STATUS(write_file_atomically(request.to, csv));
  if (request.format == session::Format::json) {
    ScheduleJson json = {
        {"schedule", schedule.name}, {"stages", schedule.stages}, {"micro_batches", schedule.micro_batches},
        {"chunks", schedule.chunks}, {"torch", name(format)},     {"csv", csv}};
    if (!request.to.empty()) json["file"] = request.to;
    return line_of(json);
  }
  if (request.to.empty()) return csv;
  return explain::wrap(fmt::format("wrote {}: {}, {} ranks with {} stage{} each, {} micro-batches, {}\n",
                                   request.to, schedule.name, schedule.stages, schedule.chunks,
                                   schedule.chunks == 1 ? "" : "s", schedule.micro_batches, name(format)),
                       request.width);
}

Result<std::string> answer(const ScheduleSynthesize& request) {
  const auto begin = std::chrono::steady_clock::now();
  pipeline::SynthesisRequest asked;
  asked.stages = request.stages;
  asked.micro_batches = request.micro_batches;
  asked.chunks = request.chunks;
  asked.effort = request.effort;
  WEFT_TRY(times, read_times(request.times, request.stages));
  asked.times = std::move(times);
  if (!request.memory.empty()) {
    WEFT_TRY(memory, read_numbers(request.memory, "--memory"));
    asked.memory = std::move(memory);
  }
  if (request.weight_share >= 0) asked.weight_share = request.weight_share;
  if (request.clock != "span" && request.clock != "end")
    return user_error(fmt::format("unknown clock: {}", request.clock), "span or end");
  asked.clock = request.clock == "end" ? pipeline::Clock::end : pipeline::Clock::span;
  WEFT_TRY(made, pipeline::synthesize(asked));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (request.format == session::Format::json) {
    ScheduleJson json = to_json(made.schedule, made.price);
    json["peak_in_flight"] = made.peak_memory;  // in the unit of --memory; B frees a share of it
    json["held"] = made.price.peak_in_flight;
    json["lower_bound"] = made.lower_bound;
    json["seconds"] = seconds;
    json["from"] = made.from;
    json["why_stopped"] = made.why_stopped;
    json["text"] = print(made.schedule);
    return line_of(json);
  }
  return to_text(made.schedule, made.price, request.width) +
         explain::wrap(fmt::format("lower bound {:.6g}; {}; made from {}, in {:.2f} s", made.lower_bound,
                                   made.why_stopped, made.from, seconds),
                       request.width) +
         print(made.schedule);
}

}  // namespace

session::Reply run(const ScheduleList& request) { return session::to_reply(answer(request)); }
session::Reply run(const ScheduleShow& request) { return session::to_reply(answer(request)); }
session::Reply run(const ScheduleCheck& request) { return session::to_reply(answer(request)); }
session::Reply run(const ScheduleEstimate& request) { return session::to_reply(answer(request)); }
session::Reply run(const ScheduleExport& request) { return session::to_reply(answer(request)); }
session::Reply run(const ScheduleSynthesize& request) { return session::to_reply(answer(request)); }

}  // namespace weft::command
