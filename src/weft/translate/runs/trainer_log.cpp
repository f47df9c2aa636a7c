// Reads the lines of trainers that state the time or the memory of a step.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/base/median.h"
#include "weft/translate/runs/measured_step.h"

namespace weft::runs {
namespace {

constexpr double kMebibyte = 1024.0 * 1024, kGibibyte = 1024 * kMebibyte;

// What a number after these words means. The first row of a trainer that a line contains counts; later rows of the
// same trainer are other spellings.
struct LoggedTime {
  std::string_view trainer, words;
  double MeasuredStep::*field;
  double scale;
};
constexpr LoggedTime kTimes[] = {
    {"Nanotron", "elapsed_time_per_iteration_ms: ", &MeasuredStep::seconds, 1e-3},
    {"Megatron-LM", "elapsed time per iteration (ms): ", &MeasuredStep::seconds, 1e-3},
    {"torchtitan", "tps: ", &MeasuredStep::tokens_per_second_per_gpu, 1},
    {"DeepSpeed", "CurrSamplesPerSec=", &MeasuredStep::examples_per_second, 1},
    {"DeepSpeed", "SamplesPerSec=", &MeasuredStep::examples_per_second, 1},
    {"DeepSpeed", "samples/sec: ", &MeasuredStep::examples_per_second, 1},
};
// DeepSpeed divides by 1024^3 and prints GB; Megatron-LM divides by 1024^2 and prints MB.
struct LoggedMemory {
  std::string_view words;
  double scale;  // 0: the unit follows the number
};
constexpr LoggedMemory kMemories[] = {
    {"max allocated: ", kMebibyte},
    {"MaxMemAllocated=", kGibibyte},
    {"Peak allocated ", kMebibyte},
    {"Peak allocated: ", kMebibyte},
    {"memory: ", 0},
};

// Colours, which terminals' logs contain.
std::string without_escapes(std::string_view text) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      made += text[i];
      continue;
    }
    while (i < text.size() && text[i] != 'm' && text[i] != '\n') ++i;
    if (i < text.size() && text[i] == '\n') made += '\n';
  }
  return made;
}

struct LoggedNumber {
  double value = 0;
  std::string_view rest;  // of the line
};

// "5,432", "1310.2", "1.31K"
std::optional<LoggedNumber> number_at(std::string_view text) {
  std::string digits;
  std::size_t at = 0;
  while (at < text.size() && text[at] == ' ') ++at;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    const bool exponent = (c == 'e' || c == 'E') && at + 1 < text.size() &&
                          (is_digit(text[at + 1]) || text[at + 1] == '-' || text[at + 1] == '+');
    if (is_digit(c) || c == '.' || exponent ||
        (!digits.empty() && (c == '-' || c == '+') && digits.back() == 'e'))
      digits += c;
    else if (c != ',' || at + 1 >= text.size() || !is_digit(text[at + 1]))
      break;
  }
  LoggedNumber made;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), made.value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(made.value))
    return std::nullopt;
  constexpr std::pair<char, double> kThousands[] = {{'K', 1e3}, {'M', 1e6}, {'B', 1e9}};
  made.rest = text.substr(at);
  for (const auto& [letter, scale] : kThousands)
    if (made.rest.starts_with(letter) && (made.rest.size() == 1 || !is_letter(made.rest[1])))
      made.value *= scale;
  return made;
}

std::optional<LoggedNumber> number_after(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  return number_at(line.substr(at + words.size()));
}

void read_memory(std::string_view line, double& most) {
  for (const LoggedMemory& memory : kMemories) {
    const auto number = number_after(line, memory.words);
    if (!number) continue;
    double scale = memory.scale;
    if (scale == 0)
      scale = number->rest.starts_with("GiB") ? kGibibyte : number->rest.starts_with("MiB") ? kMebibyte : 0;
    most = std::max(most, number->value * scale);
    return;
  }
}

}  // namespace

Result<MeasuredStep> read_trainer_log(std::string_view text, std::string_view path) {
  const std::string plain = without_escapes(text);
  MeasuredStep made;
  const LoggedTime* kind = nullptr;
  std::vector<double> values;
  for (std::size_t at = 0; at < plain.size();) {
    const std::size_t end = std::min(plain.find('\n', at), plain.size());
    const std::string_view line = std::string_view(plain).substr(at, end - at);
    at = end + 1;
    read_memory(line, made.peak_bytes);
    for (const LoggedTime& time : kTimes) {
      if (kind != nullptr && kind != &time) continue;
      const auto number = number_after(line, time.words);
      if (!number || !(number->value > 0)) continue;
      kind = &time;
      values.push_back(number->value * time.scale);
      break;
    }
  }
  if (kind == nullptr)
    return user_error(fmt::format("{}: expected a line with the time of a step, found none", path),
                      "logs of Megatron-LM, torchtitan, DeepSpeed and Nanotron are read; else step=1.31s");
  // The first steps compile, allocate and tune.
  constexpr std::size_t kWarmUp = 3;
  const std::size_t skipped = std::min(std::max(kWarmUp, values.size() / 10), values.size() / 2);
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(skipped));
  made.trainer = kind->trainer;
  made.steps = static_cast<std::int64_t>(values.size());
  made.*kind->field = median(std::move(values));
  return made;
}

}  // namespace weft::runs
