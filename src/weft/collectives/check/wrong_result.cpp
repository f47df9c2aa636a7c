#include "weft/collectives/check/wrong_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>

#include "weft/collectives/check/deadlock.h"

namespace weft::collective {
namespace {

constexpr std::size_t kPrintedParts = 4;  // of a sum are printed; the rest is counted

std::string text(const Contribution& input) {
  return fmt::format("input[{}] of gpu {}", input.index, input.rank);
}

std::string text(const Part& part) {
  if (part.is_input) return text(part.input);
  return fmt::format("the initial content of {}[{}] of gpu {}", name(part.cell.buffer), part.cell.index,
                     part.cell.rank);
}

std::string text(std::span<const Part> parts) {
  std::string told;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i == kPrintedParts && parts.size() > kPrintedParts + 1)
      return told + fmt::format(" + {} more", parts.size() - i);
    if (i > 0) told += " + ";
    if (parts[i].times > 1) told += fmt::format("{} x ", parts[i].times);
    told += text(parts[i]);
  }
  return told;
}

std::vector<Contribution> wanted(const Collective& collective, const Want& want) {
  switch (want.what) {
    case Want::What::anything: return {};
    case Want::What::chunk: return {{want.rank, want.index}};
    case Want::What::sum: {
      std::vector<Contribution> all;
      for (std::int32_t rank = 0; rank < collective.ranks; ++rank) all.push_back({rank, want.index});
      return all;
    }
    case Want::What::listed: return want.contributions;
  }
  return {};
}

class FaultLocator {
 public:
  FaultLocator(const Actions& actions, std::span<const std::int32_t> order, const Values& values,
               std::int32_t rank, std::int32_t index)
      : actions_(actions),
        order_(order),
        values_(values),
        inputs_(input_cells(actions, values.cells)),
        rank_(rank),
        index_(index),
        cell_(output_cell(actions, values.cells, rank, index)),
        parts_(expand_value(values, inputs_, values.held[cell_])) {}

  Finding find() const {
    if (values_.writer[cell_] < 0) return at(-1, fmt::format("output[{}] was never written", index_));
    for (const Part& part : parts_)
      if (!part.is_input) return unwritten(part);
    const std::vector<Contribution> expected =
        wanted(actions_.collective, want(actions_.collective, rank_, index_));
    const auto expects = [&](const Contribution& input) {
      return static_cast<std::uint64_t>(std::ranges::count(expected, input));
    };
    for (const Part& part : parts_)
      if (expects(part.input) > 0 && part.times > expects(part.input)) return doubled(part);
    const bool alone = parts_.size() <= 1 && (parts_.empty() || expects(parts_[0].input) == 0);
    if (expected.size() <= 1 || alone) return other(expected);
    for (const Part& part : parts_)
      if (expects(part.input) == 0) return foreign(part, expected);
    return lacking(expected);
  }

 private:
  // `action` is -1: located at the rank only.
  Finding at(std::int32_t action, std::string told) const {
    const Where place = action < 0 ? Where{rank_, -1, -1} : where(actions_, actions_.actions[action]);
    return {Verdict::wrong_result, place, std::move(told)};
  }

  // Names the output relative to the rank of the action.
  std::string output(std::int32_t action) const {
    return actions_.agents[actions_.actions[action].agent].rank == rank_
               ? fmt::format("output[{}]", index_)
               : fmt::format("output[{}] of gpu {}", index_, rank_);
  }

  bool touches(const Cell& cell, const Action& action, std::int32_t number) const {
    return number >= values_.cells(cell) && number < values_.cells(cell) + action.count;
  }

  // The first action in order that reads the cell, or with `writes` writes it; -1: none.
  std::int32_t first_to_touch(std::int32_t number, bool writes) const {
    for (const std::int32_t node : order_) {
      if (node >= static_cast<std::int32_t>(actions_.actions.size())) continue;
      const Action& action = actions_.actions[node];
      for (const Cell& cell : writes ? actions_.targets(action) : actions_.sources(action))
        if (touches(cell, action, number)) return node;
    }
    return -1;
  }

  Finding unwritten(const Part& part) const {
    const Cell& cell = part.cell;
    const std::int32_t number = values_.cells(cell), reader = first_to_touch(number, false);
    if (reader < 0) return at(values_.writer[cell_], fmt::format("output[{}] holds {}", index_, text(part)));
    const bool own = actions_.agents[actions_.actions[reader].agent].rank == cell.rank;
    return at(reader, fmt::format("reads {}[{}]{}, which was never written{}", name(cell.buffer), cell.index,
                                  own ? "" : fmt::format(" of gpu {}", cell.rank),
                                  values_.writer[number] < 0 ? "" : " before"));
  }

  // Per value up to that of the output: whether one of the cells is a term of it.
  std::vector<std::uint8_t> which_have(std::span<const std::int32_t> cells) const {
    std::vector<std::uint8_t> has(values_.held[cell_] + 1);
    for (const std::int32_t cell : cells)
      if (cell < static_cast<std::int32_t>(has.size())) has[cell] = 1;
    for (std::int32_t sum = values_.cells.size(); sum < static_cast<std::int32_t>(has.size()); ++sum)
      has[sum] = has[values_.sum(sum).left] | has[values_.sum(sum).right];
    return has;
  }

  // Descends to the sum that has the part on both sides.
  Finding doubled(const Part& part) const {
    const std::vector<std::uint8_t> has = which_have(std::array{values_.cells(part.cell)});
    std::int32_t value = values_.held[cell_];
    while (!(has[values_.sum(value).left] && has[values_.sum(value).right]))
      value = has[values_.sum(value).left] ? values_.sum(value).left : values_.sum(value).right;
    const std::int32_t action = values_.sum(value).action;
    return at(action, fmt::format("adds {} to {} twice", text(part.input), output(action)));
  }

  // Descends to the sum where the part was added to expected ones.
  Finding foreign(const Part& part, std::span<const Contribution> expected) const {
    std::vector<std::int32_t> cells;
    for (const Contribution& input : expected) cells.push_back(inputs_[input.rank].first + input.index);
    const std::vector<std::uint8_t> has = which_have(std::array{values_.cells(part.cell)}),
                                    fits = which_have(cells);
    std::int32_t value = values_.held[cell_], action = values_.writer[cell_];
    while (values_.is_sum(value) && fits[value]) {
      action = values_.sum(value).action;
      value = has[values_.sum(value).left] ? values_.sum(value).left : values_.sum(value).right;
    }
    return at(action,
              fmt::format("adds {} to {}, which must not contain it", text(part.input), output(action)));
  }

  Finding other(std::span<const Contribution> expected) const {
    std::string told = fmt::format("output[{}] holds {}, expected ", index_, text(parts_));
    if (expected.empty()) told += "nothing";
    if (expected.size() == 1) told += text(expected.front());
    if (expected.size() > 1) told += fmt::format("a sum of {} inputs", expected.size());
    return at(values_.writer[cell_], told);
  }

  Finding lacking(std::span<const Contribution> expected) const {
    std::vector<Contribution> missing;
    for (const Contribution& input : expected)
      if (std::ranges::none_of(parts_, [&](const Part& part) { return part.input == input; }))
        missing.push_back(input);
    if (missing.empty()) return other(expected);  // some occur less often than expected
    // If the chunk was overwritten before any rank read it, the contribution was lost there.
    const Contribution& first = missing.front();
    const std::int32_t cell = inputs_[first.rank].first + first.index;
    const std::int32_t reader = first_to_touch(cell, false), writer = first_to_touch(cell, true);
    if (writer >= 0 && (reader < 0 || comes_before(writer, reader)))
      return at(writer,
                fmt::format("overwrites input[{}]{} before any rank has read it, so {} lacks it", first.index,
                            actions_.agents[actions_.actions[writer].agent].rank == first.rank
                                ? ""
                                : fmt::format(" of gpu {}", first.rank),
                            output(writer)));
    std::string told = fmt::format("output[{}] lacks the contribution of gpu {}", index_, first.rank);
    if (missing.size() > 1) told += fmt::format(" and {} more", missing.size() - 1);
    return at(values_.writer[cell_], told);
  }

  bool comes_before(std::int32_t one, std::int32_t other_one) const {
    if (one == other_one) return false;  // an action reads before it writes
    return *std::ranges::find_if(order_,
                                 [&](std::int32_t node) { return node == one || node == other_one; }) == one;
  }

  const Actions& actions_;
  const std::span<const std::int32_t> order_;
  const Values& values_;
  const std::vector<InputCells> inputs_;
  const std::int32_t rank_, index_, cell_;
  const std::vector<Part> parts_;
};

}  // namespace

std::vector<Part> expand_value(const Values& values, std::span<const InputCells> inputs, std::int32_t value) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  // In descending order, so that each value is expanded once however often it is used.
  std::map<std::int32_t, std::uint64_t, std::greater<>> open = {{value, 1}};
  std::vector<Part> parts;
  while (!open.empty()) {
    const auto [next, times] = *open.begin();
    open.erase(open.begin());
    if (values.is_sum(next)) {
      for (const std::int32_t side : {values.sum(next).left, values.sum(next).right}) {
        std::uint64_t& total = open[side];
        total = total > kMost - times ? kMost : total + times;
      }
      continue;
    }
    const Cell cell = values.cells.cell(next);
    const InputCells& input = inputs[cell.rank];
    const bool is_input = input.contains(next);
    parts.push_back(
        {is_input ? Contribution{cell.rank, next - input.first} : Contribution{}, cell, is_input, times});
  }
  std::ranges::sort(parts, {}, [](const Part& part) {
    return std::tuple(!part.is_input, part.input, part.cell.rank, part.cell.buffer, part.cell.index);
  });
  return parts;
}

Finding explain_wrong_result(const Actions& actions, std::span<const std::int32_t> order,
                             const Values& values, std::int32_t rank, std::int32_t index) {
  return FaultLocator(actions, order, values, rank, index).find();
}

Finding alias_fault(const Actions& in_place, const Values& shared, std::int32_t rank, std::int32_t index,
                    std::span<const Part> here, std::span<const Part> there) {
  const std::int32_t writer = shared.writer[output_cell(in_place, shared.cells, rank, index)];
  return {Verdict::wrong_result, writer < 0 ? Where{rank, -1, -1} : where(in_place, in_place.actions[writer]),
          fmt::format("in place, output[{}] of gpu {} holds {}, out of place {}", index, rank, text(here),
                      text(there))};
}

}  // namespace weft::collective
