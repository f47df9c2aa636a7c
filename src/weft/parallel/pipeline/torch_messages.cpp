// Adds the actions that move data to a schedule of passes.
#include "weft/parallel/pipeline/torch_messages.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace weft::pipeline {
namespace {

using ActionKind = TorchAction::Kind;

// As many stages of a rank have gathered parameters: one that runs forward, one that runs backward, and
// the next.
constexpr std::size_t kGathered = 3;

// The message that a pass sends, as its sender lists it, if the next stage is on another rank.
std::optional<TorchAction> sent_by(const TorchAction& pass, const std::vector<std::size_t>& ranks) {
  const std::int32_t to = pass.stage + (pass.kind == ActionKind::forward ? 1 : -1);
  if (pass.kind == ActionKind::weight || to < 0 || to >= static_cast<std::int32_t>(ranks.size())) return {};
  if (ranks[static_cast<std::size_t>(to)] == ranks[static_cast<std::size_t>(pass.stage)]) return {};
  return TorchAction{pass.kind == ActionKind::forward ? ActionKind::send_forward : ActionKind::send_backward,
                     pass.stage, pass.micro_batch};
}

// The same message, as its receiver lists it.
TorchAction received(const TorchAction& sent) {
  return sent.kind == ActionKind::send_forward
             ? TorchAction{ActionKind::receive_forward, sent.stage + 1, sent.micro_batch}
             : TorchAction{ActionKind::receive_backward, sent.stage - 1, sent.micro_batch};
}

using Finished = std::set<std::tuple<std::int32_t, std::int32_t, bool>>;  // stage, micro-batch, forward

// Whether the pass has its input: from the stage before it, or, backward, from the stage after it.
bool has_input(const TorchAction& pass, const Finished& finished, std::size_t stages) {
  if (pass.kind == ActionKind::forward)
    return pass.stage == 0 || finished.contains({pass.stage - 1, pass.micro_batch, true});
  if (pass.is_backward())
    return pass.stage + 1 == static_cast<std::int32_t>(stages) ||
           finished.contains({pass.stage + 1, pass.micro_batch, false});
  return true;
}

// The passes of a rank with the actions on its parameters.
std::vector<TorchCell> add_parameters(const std::vector<TorchCell>& passes) {
  std::map<std::int32_t, std::int64_t> left;  // W and B, by stage
  for (const TorchCell& cell : passes)
    for (const TorchAction& pass : cell)
      left[pass.stage] += pass.kind == ActionKind::weight || pass.kind == ActionKind::backward;
  std::vector<std::int32_t> gathered;
  std::vector<TorchCell> made;
  for (std::size_t at = 0; at < passes.size(); ++at) {
    if (passes[at].empty()) continue;
    std::vector<std::int32_t> next;
    for (std::size_t later = at; later < passes.size() && next.size() < kGathered; ++later)
      for (const TorchAction& pass : passes[later])
        if (std::ranges::find(next, pass.stage) == next.end()) next.push_back(pass.stage);
    std::erase_if(gathered, [&](std::int32_t stage) {
      if (std::ranges::find(next, stage) != next.end()) return false;
      made.push_back({{ActionKind::reshard, stage}});
      return true;
    });
    for (const std::int32_t stage : next)
      if (std::ranges::find(gathered, stage) == gathered.end()) {
        made.push_back({{ActionKind::unshard, stage}});
        gathered.push_back(stage);
      }
    made.push_back(passes[at]);
    for (const TorchAction& pass : passes[at])
      if ((pass.kind == ActionKind::weight || pass.kind == ActionKind::backward) && --left[pass.stage] == 0)
        made.push_back({{ActionKind::reduce_grad, pass.stage}});
  }
  for (const std::int32_t stage : gathered) made.push_back({{ActionKind::reshard, stage}});
  return made;
}

}  // namespace

Result<std::vector<std::size_t>> ranks_of_stages(const TorchRows& rows) {
  std::map<std::int32_t, std::size_t> found;
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::size_t cell = 0; cell < rows[row].size(); ++cell)
      for (const TorchAction& action : rows[row][cell])
        if (const auto [known, is_new] = found.emplace(action.stage, row); known->second != row)
          return user_error(fmt::format("{}: expected each stage in one row, found {} and stage {} in row {}",
                                        print_place(row, cell), print(action), action.stage,
                                        known->second + 1));
  std::vector<std::size_t> ranks;
  for (const auto& [stage, row] : found) {
    if (stage != static_cast<std::int32_t>(ranks.size()))
      return user_error(fmt::format("expected actions of stage {}, found none; the last stage is {}",
                                    ranks.size(), found.rbegin()->first));
    ranks.push_back(row);
  }
  return ranks;
}

Result<TorchRows> add_messages(const TorchRows& passes, const std::vector<std::size_t>& ranks) {
  TorchRows rows, made(passes.size());
  for (const std::vector<TorchCell>& row : passes) rows.push_back(add_parameters(row));
  Finished finished;
  std::vector<std::size_t> next(rows.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (next[row] == rows[row].size()) continue;
      const TorchCell& cell = rows[row][next[row]];
      if (!std::ranges::all_of(
              cell, [&](const TorchAction& one) { return has_input(one, finished, ranks.size()); }))
        continue;
      made[row].push_back(cell);
      for (const TorchAction& action : cell) {
        if (!action.is_pass()) continue;
        if (action.kind != ActionKind::weight)
          finished.insert({action.stage, action.micro_batch, action.kind == ActionKind::forward});
        if (const auto sent = sent_by(action, ranks)) {
          const TorchAction arrives = received(*sent);
          made[row].push_back({*sent});
          made[ranks[static_cast<std::size_t>(arrives.stage)]].push_back({arrives});
        }
      }
      ++next[row];
      moved = true;
    }
  }
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (next[row] == rows[row].size()) continue;
    const TorchCell& waits = rows[row][next[row]];
    const auto place = static_cast<std::size_t>(std::ranges::find(passes[row], waits) - passes[row].begin());
    return user_error(fmt::format("deadlock: {}: {} waits for a pass that another rank runs later",
                                  print_place(row, place), print(waits.front())),
                      "order the passes so that no rank waits for itself");
  }
  return made;
}

namespace {

// Messages between two ranks, as one of them lists them.
struct Listed {
  TorchAction sent;  // as its sender lists it
  std::size_t row = 0, cell = 0;
};

class MessageCheck {
 public:
  MessageCheck(const TorchRows& rows, const std::vector<std::size_t>& ranks) : rows_(rows), ranks_(ranks) {}

  Status run() {
    for (std::size_t row = 0; row < rows_.size(); ++row) WEFT_TRY_STATUS(read_row(row));
    WEFT_TRY_STATUS(each_expected());
    WEFT_TRY_STATUS(same_order());
    return no_deadlock();
  }

 private:
  static Error wrong(std::size_t row, std::size_t cell, std::string_view what) {
    return user_error(fmt::format("{}: {}", print_place(row, cell), what));
  }

  Status read_row(std::size_t row) {
    std::set<std::int32_t> gathered, ever, reduced;
    std::map<std::int32_t, std::int64_t> left;
    std::vector<TorchAction> seen;
    for (const TorchCell& cell : rows_[row])
      for (const TorchAction& one : cell) {
        left[one.stage] += one.kind == ActionKind::weight || one.kind == ActionKind::backward;
        if (one.kind == ActionKind::unshard) ever.insert(one.stage);
      }
    for (std::size_t at = 0; at < rows_[row].size(); ++at) {
      if (rows_[row][at].empty()) return wrong(row, at, "expected an action, found an empty cell");
      for (const TorchAction& one : rows_[row][at]) {
        const std::string found = fmt::format("found {}", print(one));
        if (one.kind == ActionKind::weight || one.kind == ActionKind::backward) --left[one.stage];
        if (one.is_pass() && ever.contains(one.stage) && !gathered.contains(one.stage))
          return wrong(row, at, fmt::format("expected {}UNSHARD before this pass, {}", one.stage, found));
        if (one.kind == ActionKind::unshard && !gathered.insert(one.stage).second)
          return wrong(row, at, fmt::format("expected {}RESHARD before it, {} again", one.stage, found));
        if (one.kind == ActionKind::reshard && gathered.erase(one.stage) == 0)
          return wrong(row, at, fmt::format("expected {}UNSHARD before it, {}", one.stage, found));
        if (one.kind == ActionKind::reduce_grad && (left[one.stage] > 0 || !reduced.insert(one.stage).second))
          return wrong(row, at,
                       fmt::format("expected it once, after the last W or B of the stage, {}", found));
        if (one.is_message()) WEFT_TRY_STATUS(read_message(row, at, one));
        if (const auto sent = one.is_pass() ? sent_by(one, ranks_) : std::nullopt)
          sendable_.insert(print(*sent));
      }
    }
    return {};
  }

  Status read_message(std::size_t row, std::size_t at, const TorchAction& one) {
    const bool forward = one.kind == ActionKind::send_forward || one.kind == ActionKind::receive_forward;
    const bool sends = one.kind == ActionKind::send_forward || one.kind == ActionKind::send_backward;
    const std::int32_t other = one.stage + (forward == sends ? 1 : -1);
    if (other < 0 || other >= static_cast<std::int32_t>(ranks_.size()))
      return wrong(row, at,
                   fmt::format("expected a message between two stages, found {} with {} stages", print(one),
                               ranks_.size()));
    const std::size_t peer = ranks_[static_cast<std::size_t>(other)];
    if (peer == row)
      return wrong(row, at,
                   fmt::format("expected no message between stages of one rank, found {}", print(one)));
    if (sends && !sendable_.contains(print(one)))
      return wrong(row, at,
                   fmt::format("expected the pass that makes this message before it, found {}", print(one)));
    const TorchAction sent = sends
                                 ? one
                                 : TorchAction{forward ? ActionKind::send_forward : ActionKind::send_backward,
                                               other, one.micro_batch};
    std::vector<Listed>& list = listed_[{row, peer}];
    if (std::ranges::any_of(list, [&](const Listed& known) { return known.sent == sent; }))
      return wrong(row, at, fmt::format("expected each message once, found {} again", print(one)));
    if (!sends) arrives_[{row, print(one)}] = list.size();
    list.push_back({sent, row, at});
    return {};
  }

  // Every pass that needs a message has its receive before it, and every pass that makes one has its
  // send.
  Status each_expected() const {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      std::set<std::string> listed;
      for (const TorchCell& cell : rows_[row])
        for (const TorchAction& one : cell)
          if (one.is_message()) listed.insert(print(one));
      std::set<std::string> before;
      for (std::size_t at = 0; at < rows_[row].size(); ++at)
        for (const TorchAction& one : rows_[row][at]) {
          if (one.is_message()) before.insert(print(one));
          if (!one.is_pass()) continue;
          if (const auto needed = needed_by(one); needed && !before.contains(print(*needed)))
            return wrong(row, at,
                         fmt::format("expected {} before this pass, found {}", print(*needed), print(one)));
          if (const auto sent = sent_by(one, ranks_); sent && !listed.contains(print(*sent)))
            return wrong(row, at, fmt::format("expected {} after this pass, found none", print(*sent)));
        }
    }
    return {};
  }

  // The receive that a pass waits for.
  std::optional<TorchAction> needed_by(const TorchAction& pass) const {
    const bool forward = pass.kind == ActionKind::forward;
    const std::int32_t from = pass.stage + (forward ? -1 : 1);
    if (pass.kind == ActionKind::weight || from < 0 || from >= static_cast<std::int32_t>(ranks_.size()))
      return {};
    const auto sent =
        sent_by({forward ? ActionKind::forward : ActionKind::backward, from, pass.micro_batch}, ranks_);
    if (!sent) return {};
    return received(*sent);
  }

  Status same_order() const {
    for (const auto& [pair, list] : listed_) {
      const auto found = listed_.find({pair.second, pair.first});
      const std::size_t others = found == listed_.end() ? 0 : found->second.size();
      for (std::size_t at = 0; at < list.size(); ++at) {
        if (at < others && found->second[at].sent == list[at].sent) continue;
        const std::string other =
            at < others ? fmt::format("row {} lists {} there", pair.second + 1, print(found->second[at].sent))
                        : fmt::format("row {} lists none", pair.second + 1);
        return wrong(
            list[at].row, list[at].cell,
            fmt::format("expected the same messages in the same order in rows {} and {}, found {}, and {}",
                        pair.first + 1, pair.second + 1, print(list[at].sent), other));
      }
    }
    return {};
  }

  // A message has arrived when both ranks have issued it and all messages between them before it.
  Status no_deadlock() const {
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> issued;
    std::vector<std::size_t> next(rows_.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t row = 0; row < rows_.size(); ++row)
        while (next[row] < rows_[row].size() && can_run(row, rows_[row][next[row]], issued)) {
          for (const TorchAction& one : rows_[row][next[row]])
            if (one.is_message()) ++issued[{row, peer_of(one)}];
          ++next[row];
          moved = true;
        }
    }
    for (std::size_t row = 0; row < rows_.size(); ++row)
      if (next[row] < rows_[row].size())
        return wrong(row, next[row],
                     fmt::format("deadlock: {} waits for a message that another rank sends later",
                                 print(rows_[row][next[row]].front())));
    return {};
  }

  std::size_t peer_of(const TorchAction& one) const {
    const bool up = one.kind == ActionKind::send_forward || one.kind == ActionKind::receive_backward;
    return ranks_[static_cast<std::size_t>(one.stage + (up ? 1 : -1))];
  }

  bool can_run(std::size_t row, const TorchCell& cell,
               const std::map<std::pair<std::size_t, std::size_t>, std::size_t>& issued) const {
    for (const TorchAction& one : cell) {
      const auto needed = one.is_pass() ? needed_by(one) : std::nullopt;
      if (!needed) continue;
      const auto at = arrives_.find({row, print(*needed)});
      const auto others = issued.find({peer_of(*needed), row});
      if (at == arrives_.end() || others == issued.end() || others->second <= at->second) return false;
    }
    return true;
  }

  const TorchRows& rows_;
  const std::vector<std::size_t>& ranks_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Listed>> listed_;  // by row and peer
  std::map<std::pair<std::size_t, std::string>, std::size_t> arrives_;  // place of a receive in its list
  std::set<std::string> sendable_;
};

}  // namespace

Status check_messages(const TorchRows& rows, const std::vector<std::size_t>& ranks) {
  return MessageCheck(rows, ranks).run();
}

}  // namespace weft::pipeline
