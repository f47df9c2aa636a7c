#include "weft/parallel/pipeline/synthesized.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

#include <fmt/format.h>

#include "weft/base/number.h"

namespace weft::pipeline {
namespace {

constexpr double kFinest = 200;  // steps per longest pass
constexpr double kTenths = 10;   // per forward pass in memory
constexpr std::int32_t kMostNumber = 1'000'000;
constexpr std::size_t kMostNamedStages = 1024;
constexpr double kNamedEffort = 0.05;  // planners request many: about 0.1 s for 32 stages x 256 micro-batches

// F, B, W, transfers and memory, by stage.
constexpr std::string_view kLists = "fbwtm";
using Lists = std::array<std::vector<std::int32_t>, kLists.size()>;

std::string print_list(char letter, const std::vector<std::int32_t>& numbers) {
  std::string text = fmt::format("_{}", letter);
  for (std::size_t at = 0; at < numbers.size();) {
    std::size_t end = at;
    while (end < numbers.size() && numbers[end] == numbers[at]) ++end;
    text += fmt::format("{}{}", at > 0 ? "_" : "", numbers[at]);
    if (end > at + 1) text += fmt::format("x{}", end - at);
    at = end;
  }
  return text;
}

Error no_such_name(std::string_view name) {
  return user_error(fmt::format("not the name of a synthesized schedule: {}", name),
                    "such as synthesized_f10x4_b20x4_w10x4_t0x4_m40x4");
}

Result<Lists> read_lists(std::string_view name) {
  Lists lists;
  std::size_t list = 0;
  bool begun = false;
  for (std::string_view rest = name.substr(kSynthesized.size()); !rest.empty();) {
    rest.remove_prefix(1);  // an underscore
    std::string_view item = rest.substr(0, rest.find('_'));
    rest.remove_prefix(item.size());
    if (!item.empty() && kLists.find(item.front()) != std::string_view::npos) {
      if (item.front() != kLists[begun ? list + 1 : 0]) return no_such_name(name);
      list = begun ? list + 1 : 0;
      begun = true;
      item.remove_prefix(1);
    }
    const std::size_t times = item.find('x');
    const auto number = read_number<std::int32_t>(item.substr(0, times), 0, kMostNumber);
    const auto count = times == std::string_view::npos
                           ? std::optional<std::int32_t>(1)
                           : read_number<std::int32_t>(item.substr(times + 1), 1, kMostNumber);
    if (!begun || !number || !count ||
        lists[list].size() + static_cast<std::size_t>(*count) > kMostNamedStages)
      return no_such_name(name);
    lists[list].insert(lists[list].end(), static_cast<std::size_t>(*count), *number);
  }
  for (const std::vector<std::int32_t>& numbers : lists)
    if (numbers.empty() || numbers.size() != lists.front().size()) return no_such_name(name);
  return lists;
}

std::vector<double> divided(const std::vector<std::int32_t>& numbers, double by) {
  std::vector<double> made;
  for (const std::int32_t number : numbers) made.push_back(number / by);
  return made;
}

SynthesisRequest request_of(const Lists& lists) {
  SynthesisRequest made;
  made.stages = static_cast<std::int32_t>(lists.front().size());
  made.times = Times::alike(made.stages, 0, 0, 0, 0);
  made.times.forward = divided(lists[0], 1);
  made.times.backward = divided(lists[1], 1);
  made.times.weight = divided(lists[2], 1);
  made.times.transfer = divided(lists[3], 1);
  made.memory = divided(lists[4], kTenths);
  made.weight_share = 1;  // planners assume that a pass holds all its memory until W
  made.effort = kNamedEffort;
  return made;
}

}  // namespace

bool is_synthesized(std::string_view schedule) {
  return schedule.size() > kSynthesized.size() && schedule.starts_with(kSynthesized) &&
         schedule[kSynthesized.size()] == '_';
}

std::string synthesized_name(const SynthesisRequest& request) {
  const Times& times = request.times;
  double longest = 0;
  for (const auto* list : {&times.forward, &times.backward, &times.weight})
    for (const double seconds : *list) longest = std::max(longest, seconds);
  const double unit = longest > 0 ? longest / kFinest : 1;
  const auto rounded = [&](const std::vector<double>& seconds) {
    std::vector<std::int32_t> made;
    for (const double one : seconds)
      made.push_back(static_cast<std::int32_t>(std::min(std::round(one / unit), double{kMostNumber})));
    return made;
  };
  std::vector<std::int32_t> memory;
  for (const double passes : request.memory)
    memory.push_back(static_cast<std::int32_t>(std::min(std::floor(passes * kTenths), double{kMostNumber})));
  return std::string(kSynthesized) + print_list('f', rounded(times.forward)) +
         print_list('b', rounded(times.backward)) + print_list('w', rounded(times.weight)) +
         print_list('t', rounded(times.transfer)) + print_list('m', memory);
}

Result<const ScheduleText*> find_synthesized(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, ScheduleText, std::less<>> known;
  const std::scoped_lock lock(mutex);
  if (const auto found = known.find(name); found != known.end()) return &found->second;
  WEFT_TRY(lists, read_lists(name));
  ScheduleText text;
  text.name = name;
  text.clock = Clock::span;
  text.parameters = {{"stages", std::nullopt}, {"micro_batches", std::nullopt}, {"chunks", 1}};
  text.slots = 4 + static_cast<std::int32_t>(text.parameters.size());  // as for parsed texts
  text.synthesis = std::make_shared<const SynthesisRequest>(request_of(lists));
  return &known.emplace(std::string(name), std::move(text)).first->second;
}

Result<Schedule> synthesized_schedule(const ScheduleText& text, std::int32_t stages,
                                      std::int32_t micro_batches, std::int32_t chunks) {
  SynthesisRequest request = *text.synthesis;
  if (request.stages != stages)
    return user_error(fmt::format("{} is for {} stages, found {}", text.name, request.stages, stages));
  request.micro_batches = micro_batches;
  request.chunks = chunks;
  using Key = std::tuple<std::string, std::int32_t, std::int32_t>;
  static std::mutex mutex;
  static std::map<Key, Schedule> known;
  const Key key(text.name, micro_batches, chunks);
  {
    const std::scoped_lock lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  WEFT_TRY(made, synthesize(request));
  constexpr std::size_t kMostKnown = 64;
  const std::scoped_lock lock(mutex);
  if (known.size() >= kMostKnown) known.clear();
  return known.insert_or_assign(key, std::move(made.schedule)).first->second;
}

}  // namespace weft::pipeline
