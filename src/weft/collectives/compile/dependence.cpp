#include "weft/collectives/compile/dependence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "weft/collectives/chunks/program_text.h"

namespace weft::collective {
namespace {

using Why = Dependence::Why;

// Removing transitive dependences takes quadratic time, so it is limited to short lists.
constexpr std::size_t kMostReduced = 16;

class Analysis {
 public:
  explicit Analysis(std::int32_t cells)
      : writer_(static_cast<std::size_t>(cells), -1), reader_(static_cast<std::size_t>(cells), -1) {}

  void read(std::int32_t end, std::int32_t cell, std::int32_t count) {
    for (std::int32_t i = cell; i < cell + count; ++i) {
      if (writer_[i] >= 0) found_.push_back({writer_[i], Why::raw});
      reader_[i] = link(end, reader_[i]);
    }
  }

  // A reduction also reads its target. It waits for all earlier readers anyway, so nothing else is
  // needed.
  void write(std::int32_t end, std::int32_t cell, std::int32_t count, bool reduces) {
    for (std::int32_t i = cell; i < cell + count; ++i) {
      if (reader_[i] < 0 && writer_[i] >= 0) found_.push_back({writer_[i], reduces ? Why::raw : Why::waw});
      while (reader_[i] >= 0) {
        found_.push_back({links_[reader_[i]].end, Why::war});
        reader_[i] = unlink(reader_[i]);
      }
      writer_[i] = end;
    }
  }

  // Appends the dependences found for one end to the list.
  void close(Dependences& result) {
    std::ranges::sort(found_, {}, [](const Dependence& d) { return std::pair(d.end, d.why); });
    const auto same = [](const Dependence& a, const Dependence& b) { return a.end == b.end; };
    found_.erase(std::unique(found_.begin(), found_.end(), same), found_.end());
    const auto follows = [&](const Dependence& early) {
      return std::ranges::any_of(found_, [&](const Dependence& late) {
        return late.end > early.end &&
               std::ranges::binary_search(result.of(late.end), early.end, {}, &Dependence::end);
      });
    };
    const bool few = found_.size() > 1 && found_.size() <= kMostReduced;
    for (const Dependence& dependence : found_)
      if (!few || !follows(dependence)) result.list.push_back(dependence);
    found_.clear();
    result.first.push_back(static_cast<std::int64_t>(result.list.size()));
  }

 private:
  struct Link {
    std::int32_t end, next;
  };

  std::int32_t link(std::int32_t end, std::int32_t next) {
    if (free_ < 0) {
      links_.push_back({end, next});
      return static_cast<std::int32_t>(links_.size()) - 1;
    }
    const std::int32_t at = free_;
    free_ = links_[at].next;
    links_[at] = {end, next};
    return at;
  }
  std::int32_t unlink(std::int32_t at) {
    const std::int32_t next = links_[at].next;
    links_[at].next = free_;
    free_ = at;
    return next;
  }

  std::vector<std::int32_t> writer_;  // per cell: the end that last wrote it; -1: none
  std::vector<std::int32_t> reader_;  // per cell: linked list of the ends that read it since
  std::vector<Link> links_;
  std::int32_t free_ = -1;
  std::vector<Dependence> found_;
};

}  // namespace

Dependences find_dependences(const Moves& moves, const Cells& cells) {
  Analysis analysis(cells.size());
  Dependences result;
  result.first.reserve(moves.moves.size() * 2 + 1);
  result.list.reserve(moves.moves.size() * 2);
  result.first.push_back(0);
  for (std::size_t m = 0; m < moves.moves.size(); ++m) {
    const Move& move = moves.moves[m];
    const std::int32_t number = static_cast<std::int32_t>(m);
    const std::int32_t from = cells.at(move.from), to = cells.at(move.to);
    const std::int32_t reader = move.local() ? to_end(number) : from_end(number);
    const bool nothing = from == to;  // a copy of a chunk to itself; check_moves() allows no other overlap
    if (nothing || move.local()) analysis.close(result);
    if (!nothing) analysis.read(reader, from, move.count);
    if (!nothing && !move.local()) analysis.close(result);
    if (!nothing) analysis.write(to_end(number), to, move.count, move.verb == Move::Verb::reduce);
    analysis.close(result);
  }
  return result;
}

std::string print(const Moves& moves, const Dependences& dependences) {
  constexpr std::array<std::string_view, 3> kWhy = {"raw", "war", "waw"};
  std::string text;
  for (std::size_t m = 0; m < moves.moves.size(); ++m) {
    text += fmt::format("{:4}  {}\n", m, print(moves.moves[m]));
    for (const std::int32_t end :
         {from_end(static_cast<std::int32_t>(m)), to_end(static_cast<std::int32_t>(m))}) {
      if (dependences.of(end).empty()) continue;
      text += end % 2 == 0 ? "        from after" : "        to after";
      std::string_view separator = " ";
      for (const Dependence& dependence : dependences.of(end)) {
        text += fmt::format("{}{} {} ({})", separator, dependence.end / 2,
                            dependence.end % 2 == 0 ? "from" : "to",
                            kWhy[static_cast<std::size_t>(dependence.why)]);
        separator = ", ";
      }
      text += '\n';
    }
  }
  return text;
}

}  // namespace weft::collective
