// Text format of a choice table: one record per line, tab-separated fields, exact numbers.
//
//   weft-choices 1
//   figures  shm  2  1.3e-07  1e-06  8e-11  3.9e-11  5.8e-11  default figures
//   setting  all_reduce  4  1  shm  private
//   candidate  direct one-shot  measured 2026-11-15  0  0
//   time  256  1.1e-06
#include <cmath>

#include <fmt/format.h>

#include "weft/base/number.h"

#include "weft/communication/comm/choice/choice.h"

namespace weft::comm {
namespace {

constexpr std::string_view kFirstLine = "weft-choices 1";
constexpr std::size_t kLongestText = 16 << 20;
constexpr std::size_t kLongestName = 256;
constexpr std::int32_t kMostRanks = 1 << 20;

using Fields = std::vector<std::string_view>;

Fields split(std::string_view line) {
  Fields fields;
  for (;;) {
    const std::size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

template <class Number>
bool read(std::string_view text, Number least, Number most, Number& number) {
  const auto found = read_number<Number>(text, least, most);
  if (found) number = *found;
  return found.has_value();
}

bool read_cost(std::string_view text, double& number) { return read(text, 0.0, 1e12, number); }

bool read(std::string_view text, std::string& name) {
  name = text;
  return !text.empty() && text.size() <= kLongestName;
}

// Names must not contain field or line separators.
std::string name_of(std::string_view text) {
  std::string name(text.substr(0, kLongestName));
  for (char& letter : name)
    if (static_cast<unsigned char>(letter) < ' ') letter = ' ';
  return name.empty() ? "-" : name;
}

bool read_figures(const Fields& fields, std::string& transport, Figures& figures) {
  return fields.size() == 9 && read(fields[1], transport) && read(fields[2], 1, kMostRanks, figures.cores) &&
         read_cost(fields[3], figures.step) && read_cost(fields[4], figures.oversubscribed_step) &&
         read_cost(fields[5], figures.wire) && read_cost(fields[6], figures.copy) &&
         read_cost(fields[7], figures.reduce) && read(fields[8], figures.source);
}

bool read_setting(const Fields& fields, Setting& setting) {
  if (fields.size() != 6) return false;
  const auto kind = collective::find_kind(fields[1]);
  if (!kind || (fields[5] != "allocated" && fields[5] != "private")) return false;
  setting.kind = *kind;
  setting.allocated = fields[5] == "allocated";
  return read(fields[2], 1, kMostRanks, setting.ranks) && read(fields[3], 1, kMostRanks, setting.hosts) &&
         read(fields[4], setting.transport);
}

bool read_candidate(const Fields& fields, Candidate& candidate) {
  return fields.size() == 5 && read(fields[1], candidate.name) && read(fields[2], candidate.source) &&
         read_cost(fields[3], candidate.formula.intercept) && read_cost(fields[4], candidate.formula.slope);
}

bool read_time(const Fields& fields, const std::vector<TimePoint>& before, TimePoint& time) {
  constexpr std::int64_t kMostSaidBytes = std::int64_t{1} << 60;
  return fields.size() == 3 && read(fields[1], std::int64_t{1}, kMostSaidBytes, time.bytes) &&
         read_cost(fields[2], time.seconds) && time.seconds > 0 &&
         (before.empty() || before.back().bytes < time.bytes);
}

}  // namespace

std::string ChoiceTable::print() const {
  std::string text = fmt::format("{}\n", kFirstLine);
  const auto out = std::back_inserter(text);
  for (const auto& [transport, figures] : figures_)
    fmt::format_to(out, "figures\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", name_of(transport), figures.cores,
                   figures.step, figures.oversubscribed_step, figures.wire, figures.copy, figures.reduce,
                   name_of(figures.source));
  for (const auto& [setting, candidates] : table_) {
    fmt::format_to(out, "setting\t{}\t{}\t{}\t{}\t{}\n", name(setting.kind), setting.ranks, setting.hosts,
                   name_of(setting.transport), setting.allocated ? "allocated" : "private");
    for (const Candidate& candidate : candidates) {
      fmt::format_to(out, "candidate\t{}\t{}\t{}\t{}\n", name_of(candidate.name), name_of(candidate.source),
                     candidate.formula.intercept, candidate.formula.slope);
      for (const TimePoint& time : candidate.times)
        fmt::format_to(out, "time\t{}\t{}\n", time.bytes, time.seconds);
    }
  }
  return text;
}

Result<ChoiceTable> ChoiceTable::parse(std::string_view text) {
  if (text.size() > kLongestText) {
    return user_error(
        fmt::format("the tuning table is too long: {} bytes, at most {}", text.size(), kLongestText));
  }
  ChoiceTable table;
  std::vector<Candidate>* candidates = nullptr;
  std::uint32_t offset = 0;
  bool first = true;
  while (offset < text.size()) {
    const std::string_view line = text.substr(offset, text.find('\n', offset) - offset);
    const Span span{offset, static_cast<std::uint32_t>(std::max<std::size_t>(line.size(), 1))};
    offset += static_cast<std::uint32_t>(line.size() + 1);
    const auto wrong = [&](std::string_view expected) {
      return user_error(fmt::format("the tuning table is invalid: expected {}", expected), {}, span);
    };
    if (first) {
      if (line != kFirstLine) return wrong(kFirstLine);
      first = false;
      continue;
    }
    const Fields fields = split(line);
    if (fields[0] == "figures") {
      std::string transport;
      Figures figures;
      if (!read_figures(fields, transport, figures)) return wrong("the figures of a transport");
      table.figures_[transport] = figures;
    } else if (fields[0] == "setting") {
      Setting setting;
      if (!read_setting(fields, setting) || table.table_.contains(setting)) return wrong("a new setting");
      candidates = &table.table_[setting];
    } else if (fields[0] == "candidate" && candidates != nullptr) {
      Candidate candidate;
      if (!read_candidate(fields, candidate) ||
          (!candidates->empty() && candidates->back().name >= candidate.name))
        return wrong("a candidate, sorted by name");
      candidates->push_back(std::move(candidate));
    } else if (fields[0] == "time" && candidates != nullptr && !candidates->empty()) {
      TimePoint time;
      auto& times = candidates->back().times;
      if (!read_time(fields, times, time)) return wrong("a time, sorted by size");
      times.push_back(time);
    } else {
      return wrong("figures, setting, candidate or time");
    }
  }
  if (first) return user_error("the tuning table is empty");
  return table;
}

}  // namespace weft::comm
