#include "weft/runtime/measure/bench_turn.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/base/number.h"

namespace weft::measure {
namespace {

constexpr std::int64_t kMostTurnBytes = std::int64_t{1} << 40;
constexpr std::int64_t kMostIterations = 1'000'000'000;
constexpr double kMostSeconds = 1e6;

// An integer in [least, most] without surrounding text.
Result<std::int64_t> number_between(std::string_view what, std::string_view text, std::int64_t least,
                                    std::int64_t most) {
  if (const auto value = read_number<std::int64_t>(text, least, most)) return *value;
  return user_error(
      fmt::format("expected {} of {} to {}, found '{}'", what, least, most, text.substr(0, 40)));
}

Result<double> seconds(std::string_view what, std::string_view text) {
  if (const auto value = read_number(text, 0.0, kMostSeconds)) return *value;
  return user_error(fmt::format("expected {}, found '{}'", what, text.substr(0, 40)));
}

Status read_setting(std::string_view key, std::string_view value, BenchTurn& turn) {
  const auto flag = [&](bool& target) -> Status {
    WEFT_TRY(given, number_between(key, value, 0, 1));
    target = given == 1;
    return {};
  };
  const auto count = [&](std::int64_t& target, std::int64_t least, std::int64_t most) -> Status {
    WEFT_TRY(given, number_between(key, value, least, most));
    target = given;
    return {};
  };
  if (key == "in_place") return flag(turn.in_place);
  if (key == "keep") return flag(turn.keep);
  if (key == "iterations") return count(turn.iterations, 1, kMostIterations);
  if (key == "warmup") return count(turn.warmup, 0, kMostIterations);
  if (key == "limit") return count(turn.limit, 1, 86'400);
  if (key == "variant" && !value.empty()) {
    turn.variant = value;
    return {};
  }
  if (key == "buffers" && (value == "private" || value == "allocated")) {
    turn.allocated = value == "allocated";
    return {};
  }
  return user_error(fmt::format("unknown setting of a turn: {}={}", key, value));
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::int64_t block_elements(const BenchTurn& turn, std::int32_t ranks) {
  const std::int64_t blocks = collective::has_block_per_rank(turn.kind) ? std::max(ranks, 1) : 1;
  return std::max<std::int64_t>(turn.bytes / static_cast<std::int64_t>(size_of(turn.type)) / blocks, 1);
}

std::int64_t message_bytes(const BenchTurn& turn, std::int32_t ranks) {
  const std::int64_t blocks = collective::has_block_per_rank(turn.kind) ? std::max(ranks, 1) : 1;
  return block_elements(turn, ranks) * blocks * static_cast<std::int64_t>(size_of(turn.type));
}

std::string print(const BenchTurn& turn) {
  return fmt::format("{} {} {} in_place={} iterations={} warmup={} variant={} buffers={} keep={} limit={}",
                     collective::name(turn.kind), turn.bytes, device::name(turn.type), turn.in_place ? 1 : 0,
                     turn.iterations, turn.warmup, turn.variant, turn.allocated ? "allocated" : "private",
                     turn.keep ? 1 : 0, turn.limit);
}

Result<BenchTurn> parse_bench_turn(std::string_view line) {
  if (line.size() > kMostBenchLine)
    return user_error(fmt::format("a turn of {} characters is too long", line.size()));
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 3)
    return user_error(
        fmt::format("expected a collective, a size and a type, found '{}'", line.substr(0, 40)));
  BenchTurn turn;
  WEFT_TRY(kind, collective::parse_kind(words[0]));
  turn.kind = kind;
  WEFT_TRY(bytes, number_between("a size", words[1], 1, kMostTurnBytes));
  turn.bytes = bytes;
  const auto type = device::find_element_type(words[2]);
  if (!type) return user_error(fmt::format("unknown type: {}", words[2]));
  turn.type = *type;
  for (std::size_t i = 3; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (equals == std::string_view::npos)
      return user_error(fmt::format("expected a setting as key=value, found '{}'", words[i]));
    WEFT_TRY_STATUS(read_setting(words[i].substr(0, equals), words[i].substr(equals + 1), turn));
  }
  return turn;
}

std::string print(const BenchAnswer& answer) {
  return fmt::format("{:.9g} {:.9g} {}", answer.seconds, answer.processor_seconds, answer.wrong);
}

Result<BenchAnswer> parse_bench_answer(std::string_view line) {
  constexpr std::string_view kError = "error ";
  if (line.starts_with(kError)) return environment_error(std::string(line.substr(kError.size())));
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() != 3)
    return user_error(fmt::format("expected two times and a count, found '{}'", line.substr(0, 40)));
  WEFT_TRY(wall, seconds("seconds per call", words[0]));
  WEFT_TRY(processor, seconds("processor seconds per call", words[1]));
  WEFT_TRY(wrong, number_between("wrong elements", words[2], 0, kMostTurnBytes));
  return BenchAnswer{wall, processor, wrong};
}

std::string print(const BenchHello& hello) {
  return fmt::format("hello {} {} {}", hello.rank, hello.ranks, hello.version);
}

Result<BenchHello> parse_bench_hello(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 3 || words[0] != "hello")
    return user_error(fmt::format("expected a rank's handshake, found '{}'", line.substr(0, 40)));
  WEFT_TRY(ranks, number_between("ranks", words[2], 1, 1 << 20));
  WEFT_TRY(rank, number_between("a rank", words[1], 0, ranks - 1));
  BenchHello hello{static_cast<std::int32_t>(rank), static_cast<std::int32_t>(ranks), {}};
  for (std::size_t i = 3; i < words.size(); ++i)
    hello.version += fmt::format("{}{}", hello.version.empty() ? "" : " ", words[i]);
  return hello;
}

}  // namespace weft::measure
