#include "weft/formats/host_list.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/formats/value.h"

namespace weft::formats {
namespace {

constexpr std::int64_t kMostSlots = 4096;
constexpr std::size_t kMostHostName = 255;

bool is_host_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
         c == '_';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view host_line(std::string_view line) {
  line = line.substr(0, line.find('#'));
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = line.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(kBlank) - first + 1);
}

class HostListReader {
 public:
  Result<HostList> read(std::string_view text) {
    std::size_t at = 0;
    while (at <= text.size()) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      ++line_;
      if (const std::string_view line = host_line(text.substr(at, end - at)); !line.empty())
        WEFT_TRY_STATUS(read_line(line));
      at = end + 1;
    }
    if (list_.hosts.empty())
      return user_error("expected hosts, found none", "write one host per line: node1 slots=8");
    for (const std::string& host : list_.hosts)
      if (slots_[host] != slots_[list_.hosts.front()])
        return user_error(fmt::format("hosts have different numbers of slots: {} {}, {} {}",
                                      list_.hosts.front(), slots_[list_.hosts.front()], host, slots_[host]),
                          "all nodes of a cluster must have the same number of devices");
    list_.slots = slots_[list_.hosts.front()];
    return std::move(list_);
  }

 private:
  Error wrong(std::string_view expected, std::string_view found) const {
    return user_error(
        fmt::format("line {}: expected {}, found '{}'", line_, expected, shown(found.substr(0, 60))));
  }

  Status read_line(std::string_view line) {
    const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
    const std::string_view names = line.substr(0, blank);
    std::int64_t slots = 0;
    std::string_view rest = host_line(line.substr(blank));
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
      const std::string_view word = rest.substr(0, end);
      rest = host_line(rest.substr(end));
      if (word.starts_with("slots=")) {
        WEFT_TRY(count, number(word.substr(6), "slots=", kMostSlots));
        slots = count;
      } else if (!word.starts_with("max_slots=") && !word.starts_with("max-slots=")) {
        return wrong("slots=N after a machine", word);
      }
    }
    return read_names(names, slots);
  }

  Result<std::int64_t> number(std::string_view digits, std::string_view what, std::int64_t most) const {
    if (const auto count = read_number<std::int64_t>(digits, 0, most)) return *count;
    return wrong(fmt::format("{} from 0 to {}", what, most), digits);
  }

  // a,b[1-3]c,d:8 -- commas outside brackets separate machines.
  Status read_names(std::string_view names, std::int64_t slots) {
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i <= names.size(); ++i) {
      if (i < names.size() && names[i] == '[') ++depth;
      if (i < names.size() && names[i] == ']') --depth;
      if (i < names.size() && (names[i] != ',' || depth != 0)) continue;
      std::string_view name = names.substr(begin, i - begin);
      std::int64_t own = slots;
      if (const std::size_t colon = name.rfind(':'); colon != std::string_view::npos) {
        WEFT_TRY(count, number(name.substr(colon + 1), "a number of slots", kMostSlots));
        own = count;
        name = name.substr(0, colon);
      }
      WEFT_TRY_STATUS(expand({}, name, own));
      begin = i + 1;
    }
    return {};
  }

  Status expand(const std::string& before, std::string_view pattern, std::int64_t slots) {
    const std::size_t open = pattern.find('[');
    if (open == std::string_view::npos) return add(before + std::string(pattern), slots);
    const std::size_t close = pattern.find(']', open);
    if (close == std::string_view::npos) return wrong("a closing ]", pattern);
    std::string_view ranges = pattern.substr(open + 1, close - open - 1);
    const std::string head = before + std::string(pattern.substr(0, open));
    const std::string_view tail = pattern.substr(close + 1);
    while (true) {
      const std::size_t end = std::min(ranges.find(','), ranges.size());
      const std::string_view range = ranges.substr(0, end);
      const std::size_t dash = range.find('-');
      const std::string_view from = range.substr(0, dash);
      const std::string_view to = dash == std::string_view::npos ? from : range.substr(dash + 1);
      constexpr std::int64_t kMostNumber = 999'999'999;
      WEFT_TRY(first, number(from, "a number", kMostNumber));
      WEFT_TRY(last, number(to, "a number", kMostNumber));
      if (last < first || last - first >= static_cast<std::int64_t>(kMostHosts))
        return wrong(fmt::format("an ascending range of at most {} hosts", kMostHosts), range);
      for (std::int64_t i = first; i <= last; ++i)
        WEFT_TRY_STATUS(expand(head + fmt::format("{:0{}}", i, from.size()), tail, slots));
      if (end == ranges.size()) return {};
      ranges = ranges.substr(end + 1);
    }
  }

  Status add(std::string host, std::int64_t slots) {
    const bool named = std::ranges::any_of(host, [](char c) { return !is_digit(c); });
    if (host.empty() || host.size() > kMostHostName || !named || host[0] == '-' ||
        !std::ranges::all_of(host, is_host_letter))
      return wrong("the name of a machine", host);
    const auto [at, is_new] = slots_.emplace(host, slots);
    if (!is_new) {
      at->second += slots;
      return {};
    }
    if (list_.hosts.size() == kMostHosts)
      return user_error(fmt::format("line {}: expected at most {} hosts, found more", line_, kMostHosts));
    list_.hosts.push_back(std::move(host));
    return {};
  }

  HostList list_;
  std::map<std::string, std::int64_t> slots_;
  std::int64_t line_ = 0;
};

}  // namespace

bool looks_like_host_list(std::string_view text) {
  bool any = false;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = host_line(text.substr(at, end - at));
    at = end + 1;
    if (line.empty()) continue;
    const std::string_view first = line.substr(0, line.find_first_of(" \t"));
    const std::string_view rest = host_line(line.substr(first.size()));
    const bool letters = std::ranges::all_of(
        first, [](char c) { return is_host_letter(c) || c == '[' || c == ']' || c == ',' || c == ':'; });
    const bool named = std::ranges::any_of(first, [](char c) { return is_host_letter(c) && !is_digit(c); });
    if (!letters || !named || first[0] == '-' || (!rest.empty() && rest.find('=') == std::string_view::npos))
      return false;
    any = true;
  }
  return any;
}

Result<HostList> read_host_list(std::string_view text) { return HostListReader().read(text); }

}  // namespace weft::formats
