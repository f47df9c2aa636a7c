#include "weft/collectives/check/contributions.h"

#include <algorithm>
#include <numeric>

#include "weft/collectives/check/wrong_result.h"

namespace weft::collective {
namespace {

// Compares values with the expected contributions. These are counted in one array, which is all
// zero between calls.
class Judge {
 public:
  Judge(const Actions& actions, const Values& values)
      : values_(values),
        inputs_(input_cells(actions, values.cells)),
        missing_(values.cells.size()),
        complete_(values.sums.size(), -1) {}

  bool holds(std::int32_t value, const Want& want) {
    switch (want.what) {
      case Want::What::anything: return true;
      case Want::What::chunk: return value == inputs_[want.rank].first + want.index;
      case Want::What::sum: return holds_sum(value, want.index);
      case Want::What::listed: return holds_listed(value, want.contributions);
    }
    return false;
  }

  bool holds_listed(std::int32_t value, std::span<const Contribution> contributions) {
    for (const Contribution& part : contributions) ++missing_[cell(part)];
    const bool right = opens_into(value, static_cast<std::int64_t>(contributions.size()));
    for (const Contribution& part : contributions) missing_[cell(part)] = 0;
    return right;
  }

 private:
  std::int32_t cell(const Contribution& part) const { return inputs_[part.rank].first + part.index; }

  bool holds_sum(std::int32_t value, std::int32_t index) {
    if (values_.is_sum(value) && complete_[value - values_.cells.size()] == index) return true;
    for (const InputCells& input : inputs_) missing_[input.first + index] = 1;
    const bool right = opens_into(value, static_cast<std::int64_t>(inputs_.size()));
    for (const InputCells& input : inputs_) missing_[input.first + index] = 0;
    if (right && values_.is_sum(value)) complete_[value - values_.cells.size()] = index;
    return right;
  }

  // Whether the value is the sum of the `wanted` cells counted in missing_. Gives up once the value
  // expands to more terms: there may be two to the number of steps.
  bool opens_into(std::int32_t value, std::int64_t wanted) {
    std::vector<std::int32_t>& open = open_;
    open.assign(1, value);
    std::int64_t found = 0;
    while (!open.empty()) {
      const std::int32_t next = open.back();
      open.pop_back();
      if (values_.is_sum(next)) {
        if (found + static_cast<std::int64_t>(open.size()) + 2 > wanted) return false;
        open.push_back(values_.sum(next).left);
        open.push_back(values_.sum(next).right);
      } else if (++found; missing_[next]-- <= 0) {
        missing_[next] = 0;
        return false;
      }
    }
    return found == wanted;
  }

  const Values& values_;
  const std::vector<InputCells> inputs_;
  std::vector<std::int32_t> missing_;   // per cell: how many times it is still expected
  std::vector<std::int32_t> complete_;  // per sum: it is complete for this index over all ranks; -1: unknown
  std::vector<std::int32_t> open_;
};

// Per value: whether a term of it is uninitialized memory.
std::vector<std::uint8_t> find_unwritten(const Actions& actions, const Values& values) {
  std::vector<std::uint8_t> unwritten(values.cells.size(), 1);
  for (const InputCells& input : input_cells(actions, values.cells))
    std::fill_n(unwritten.begin() + input.first, input.count, std::uint8_t{0});
  for (const Values::Sum& sum : values.sums) unwritten.push_back(unwritten[sum.left] | unwritten[sum.right]);
  return unwritten;
}

std::int32_t output_chunks(const Actions& actions, std::int32_t rank) {
  if (actions.collective.kind != Kind::custom) return extent(actions.collective, Buffer::output, rank);
  const Slot base = resolve(actions.collective, actions.placement, rank, {Buffer::output, 0});
  return actions.memory[rank].chunks[static_cast<std::size_t>(base.buffer)];
}

}  // namespace

Values execute(const Actions& actions, std::span<const std::int32_t> order) {
  Values values(actions);
  values.held.resize(values.cells.size());
  std::iota(values.held.begin(), values.held.end(), 0);
  values.writer.assign(values.cells.size(), -1);

  // Messages of all connections in one array, grouped by connection.
  std::vector<std::int32_t> given(actions.connections.size() + 1);
  for (const Action& action : actions.actions)
    if (action.give >= 0) given[action.give + 1] += action.count;
  std::partial_sum(given.begin(), given.end(), given.begin());
  std::vector<std::int32_t> messages(given.back()), taken = given;

  const auto count = static_cast<std::int32_t>(actions.actions.size());
  for (const std::int32_t node : order) {
    if (node >= count) continue;
    const Action& action = actions.actions[node];
    if (action.sources == 0 && action.take < 0) continue;
    for (std::int32_t chunk = 0; chunk < action.count; ++chunk) {
      std::int32_t value = -1;
      const auto add = [&](std::int32_t part) {
        if (value >= 0) {
          values.sums.push_back({value, part, node});
          part = values.cells.size() + static_cast<std::int32_t>(values.sums.size()) - 1;
        }
        value = part;
      };
      for (const Cell& source : actions.sources(action)) add(values.held[values.cells(source) + chunk]);
      if (action.take >= 0) add(messages[taken[action.take]++]);
      for (const Cell& target : actions.targets(action)) {
        values.held[values.cells(target) + chunk] = value;
        values.writer[values.cells(target) + chunk] = node;
      }
      if (action.give >= 0) messages[given[action.give]++] = value;
    }
  }
  return values;
}

std::vector<InputCells> input_cells(const Actions& actions, const CellNumbers& cells) {
  std::vector<InputCells> inputs;
  for (std::int32_t rank = 0; rank < actions.collective.ranks; ++rank) {
    const Slot base = resolve(actions.collective, actions.placement, rank, {Buffer::input, 0});
    const std::int32_t chunks = actions.collective.kind == Kind::custom
                                    ? actions.memory[rank].chunks[static_cast<std::size_t>(base.buffer)]
                                    : extent(actions.collective, Buffer::input, rank);
    inputs.push_back({cells.first(rank, base.buffer) + base.index, chunks});
  }
  return inputs;
}

std::int32_t output_cell(const Actions& actions, const CellNumbers& cells, std::int32_t rank,
                         std::int32_t index) {
  const Slot base = resolve(actions.collective, actions.placement, rank, {Buffer::output, 0});
  return cells.first(rank, base.buffer) + base.index + index;
}

std::optional<Finding> find_wrong_result(const Actions& actions, std::span<const std::int32_t> order) {
  const Values values = execute(actions, order);
  const Collective& collective = actions.collective;
  Judge judge(actions, values);
  if (collective.kind == Kind::custom && !collective.wants.empty()) {
    for (const CustomWant& wanted : collective.wants) {
      const std::int32_t cell = output_cell(actions, values.cells, wanted.rank, wanted.index);
      if (!judge.holds_listed(values.held[cell], wanted.contributions))
        return explain_wrong_result(actions, order, values, wanted.rank, wanted.index);
    }
    return std::nullopt;
  }
  const bool custom = collective.kind == Kind::custom;
  const std::vector<std::uint8_t> unwritten =
      custom ? find_unwritten(actions, values) : std::vector<std::uint8_t>{};
  for (std::int32_t rank = 0; rank < collective.ranks; ++rank) {
    const std::int32_t first = output_cell(actions, values.cells, rank, 0),
                       chunks = output_chunks(actions, rank);
    for (std::int32_t index = 0; index < chunks; ++index) {
      const std::int32_t value = values.held[first + index];
      if (custom ? values.writer[first + index] >= 0 && unwritten[value]
                 : !judge.holds(value, want(collective, rank, index)))
        return explain_wrong_result(actions, order, values, rank, index);
    }
  }
  return std::nullopt;
}

std::optional<Finding> find_alias_fault(const Actions& in_place, const Actions& out_of_place,
                                        std::span<const std::int32_t> order) {
  const Values shared = execute(in_place, order), apart = execute(out_of_place, order);
  const std::vector<InputCells> shared_inputs = input_cells(in_place, shared.cells),
                                apart_inputs = input_cells(out_of_place, apart.cells);
  for (std::int32_t rank = 0; rank < in_place.collective.ranks; ++rank) {
    const std::int32_t chunks = std::min(output_chunks(in_place, rank), output_chunks(out_of_place, rank));
    for (std::int32_t index = 0; index < chunks; ++index) {
      const std::int32_t cell = output_cell(in_place, shared.cells, rank, index),
                         other = output_cell(out_of_place, apart.cells, rank, index);
      if (apart.writer[other] < 0) continue;  // in place, the previous content counts
      const std::vector<Part> here = expand_value(shared, shared_inputs, shared.held[cell]),
                              there = expand_value(apart, apart_inputs, apart.held[other]);
      if (here != there) return alias_fault(in_place, shared, rank, index, here, there);
    }
  }
  return std::nullopt;
}

}  // namespace weft::collective
