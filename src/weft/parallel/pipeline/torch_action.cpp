// Parses and prints the cells of PyTorch's CSV.
#include "weft/parallel/pipeline/torch_action.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/number.h"

namespace weft::pipeline {
namespace {

constexpr std::string_view kOverlap = "OVERLAP_F_B";
constexpr std::int32_t kMost = 1'000'000;  // stages, micro-batches
constexpr std::size_t kMostShown = 40;     // letters of a cell in a message

struct Named {
  TorchAction::Kind kind;
  std::string_view name;
};
constexpr Named kNames[] = {
    {TorchAction::Kind::forward, "F"},
    {TorchAction::Kind::backward_input, "I"},
    {TorchAction::Kind::weight, "W"},
    {TorchAction::Kind::backward, "B"},
    {TorchAction::Kind::unshard, "UNSHARD"},
    {TorchAction::Kind::reshard, "RESHARD"},
    {TorchAction::Kind::reduce_grad, "REDUCE_GRAD"},
    {TorchAction::Kind::send_forward, "SEND_F"},
    {TorchAction::Kind::receive_forward, "RECV_F"},
    {TorchAction::Kind::send_backward, "SEND_B"},
    {TorchAction::Kind::receive_backward, "RECV_B"},
};

std::string_view name(TorchAction::Kind kind) {
  return std::ranges::find(kNames, kind, &Named::kind)->name;  // kNames has every kind
}

std::string_view stripped(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// What a message repeats of a cell.
std::string shown(std::string_view cell) {
  std::string text;
  for (const char c : cell.substr(0, kMostShown)) text += c >= ' ' && c <= '~' ? c : '?';
  return fmt::format("'{}'{}", text, cell.size() > kMostShown ? " .." : "");
}

std::optional<TorchAction> parse_action(std::string_view text) {
  text = stripped(text);
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t word = std::min(text.find_first_not_of(kDigits), text.size());
  const std::size_t micro = std::min(text.find_first_of(kDigits, word), text.size());
  const auto named = std::ranges::find(kNames, text.substr(word, micro - word), &Named::name);
  const auto stage = read_number<std::int32_t>(text.substr(0, word), 0, kMost - 1);
  if (named == std::end(kNames) || !stage) return {};
  TorchAction action{named->kind, *stage};
  if (!action.is_pass() && !action.is_message()) {
    if (micro != text.size()) return {};
    return action;
  }
  const auto read = read_number<std::int32_t>(text.substr(micro), 0, kMost - 1);
  if (!read) return {};
  action.micro_batch = *read;
  return action;
}

Result<TorchCell> parse_cell(std::string_view text) {
  text = stripped(text);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    text = stripped(text.substr(1, text.size() - 2));
  if (text.empty()) return TorchCell{};
  if (!text.starts_with('(')) {
    const auto action = parse_action(text);
    if (!action)
      return user_error(fmt::format("expected a stage, an action and a micro-batch, found {}", shown(text)),
                        "for example 0F0, 1SEND_F2 or 0UNSHARD");
    return TorchCell{*action};
  }
  const std::size_t middle = text.find(';'), close = text.find(')');
  if (middle != std::string_view::npos && close != std::string_view::npos && middle < close &&
      text.substr(close + 1) == kOverlap) {
    const auto first = parse_action(text.substr(1, middle - 1));
    const auto second = parse_action(text.substr(middle + 1, close - middle - 1));
    if (first && second && first->kind == TorchAction::Kind::forward && second->is_backward() &&
        first->micro_batch != second->micro_batch)
      return TorchCell{*first, *second};
  }
  return user_error(
      fmt::format("expected an F and an I or B of another micro-batch in parentheses, found {}", shown(text)),
      fmt::format("for example (0F3;1B2){}", kOverlap));
}

}  // namespace

std::string print(const TorchAction& action) {
  return action.micro_batch < 0 ? fmt::format("{}{}", action.stage, name(action.kind))
                                : fmt::format("{}{}{}", action.stage, name(action.kind), action.micro_batch);
}

std::string print_place(std::size_t row, std::size_t cell) {
  return fmt::format("row {}, cell {}", row + 1, cell + 1);
}

Result<TorchRows> parse_torch_cells(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  TorchRows rows;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::vector<TorchCell> row;
    while (true) {
      const std::size_t comma = line.find(',');
      auto cell = parse_cell(line.substr(0, comma));
      if (!cell.ok()) {
        Error error = std::move(cell).error();
        error.message = fmt::format("{}: {}", print_place(rows.size(), row.size()), error.message);
        return error;
      }
      row.push_back(*std::move(cell));
      if (comma == std::string_view::npos) break;
      line.remove_prefix(comma + 1);
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return user_error("expected one row per rank, found an empty file");
  return rows;
}

std::string print_torch_cells(const TorchRows& rows) {
  std::string text;
  for (const std::vector<TorchCell>& row : rows) {
    std::vector<std::string> cells;
    for (const TorchCell& cell : row) {
      if (cell.empty())
        cells.emplace_back();
      else if (cell.size() == 1)
        cells.push_back(print(cell.front()));
      else
        cells.push_back(fmt::format("({};{}){}", print(cell[0]), print(cell[1]), kOverlap));
    }
    text += fmt::format("{}\n", fmt::join(cells, ","));
  }
  return text;
}

}  // namespace weft::pipeline
