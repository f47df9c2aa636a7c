// test/unit/case/changed_training.h -- every single change of one kind to the text of a training
// plan: the errors that a hand-edited plan or a wrong rewrite may contain.
#pragma once
#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::distribute {

struct ChangedPlan {
  std::string what, text;
};

class TrainingChanges {
 public:
  explicit TrainingChanges(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      lines_.emplace_back(text.substr(at, end - at));
      at = end + 1;
    }
  }

  // Changes to nodes of the update phase and to scalar nodes: operands, comparisons and factors.
  std::vector<ChangedPlan> all() {
    for (std::size_t line = 1; line + 1 < lines_.size(); ++line) {
      const std::string op = operator_of(line);
      const std::vector<std::string> operands = operands_of(line);
      const bool is_late = lines_[line].ends_with("in update");
      if (op == "select") swap(line, operands, 1, 2);
      if (op == "greater") word(line, "greater", "greater-equal");
      if (op == "equal" && is_late) word(line, "equal", "not-equal");
      if (op == "less" && is_late) swap(line, operands, 0, 1);
      if (op == "minimum") word(line, "minimum", "maximum");
      if (!is_late) continue;
      if (op == "select") word(line, "select", "select", 0);
      if (op == "sgd" || op == "momentum" || op == "adam") repeat(line, operands, 0, 1);
      if (op == "and" || op == "add") {
        repeat(line, operands, 0, 1);
        repeat(line, operands, 1, 0);
      }
      if (op == "div" || op == "sub") swap(line, operands, 0, 1);
      if (op == "constant") {
        number(line, 2);
        number(line, 0.5);
      }
    }
    return std::move(changed_);
  }

  // The new value of a state is cast to another type and back.
  std::vector<ChangedPlan> round_trips(std::string_view type) {
    for_each_output([&](const std::string& name, const std::string& value) {
      add_before_return({fmt::format("cast {} {{to={}}}", value, type), "cast %last {to=f32}"}, name, value,
                        fmt::format("{} rounded to {}", name, type));
    });
    return std::move(changed_);
  }

  // The same through a codec. `rows`: the first size and name of an index of a matrix, "p=4".
  std::vector<ChangedPlan> codecs() {
    for_each_output([&](const std::string& name, const std::string& value) {
      const std::string type = type_of(value);
      const std::size_t open = type.find('['), close = type.find(']');
      if (!type.starts_with("f32") || open == std::string::npos || close == open + 1) return;
      const std::string first = type.substr(open + 1, type.find_first_of(",]", open) - open - 1);
      const std::string steps = first.substr(first.find('=') + 1);
      add_before_return(
          {fmt::format("encode {} {{codec=int8, block=8, segment={}, keep=[], into=code}}", value, steps),
           fmt::format("decode %last {{codec=int8, block=8, segment={}, type={}}}", steps, type)},
          name, value, fmt::format("{} coded", name));
    });
    return std::move(changed_);
  }

  // Gradients are summed only every few steps: one of them, or each with its own period.
  std::vector<ChangedPlan> periods() {
    std::string different = {};
    std::vector<std::string> all = lines_;
    int period = 2;
    for (std::size_t line = 1; line + 1 < lines_.size(); ++line) {
      if (operator_of(line) != "all-reduce") continue;
      const std::string now = with_period(lines_[line], 8);
      put(line, now, fmt::format("{} every 8 steps", lines_[line]));
      all[line] = with_period(lines_[line], period++);
    }
    changed_.push_back({"every sum by another period", joined(all)});
    return std::move(changed_);
  }

 private:
  static std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }
  static std::string with_period(std::string line, int steps) {
    return line.insert(line.find('}'), fmt::format(", every={}", steps));
  }

  std::string operator_of(std::size_t line) const {
    const std::size_t equals = lines_[line].find(" = ");
    if (equals == std::string::npos) return {};
    return lines_[line].substr(equals + 3, lines_[line].find(' ', equals + 3) - equals - 3);
  }
  std::vector<std::string> operands_of(std::size_t line) const {
    std::vector<std::string> found;
    const std::string& text = lines_[line];
    for (std::size_t at = text.find('%', text.find(" = ")); at != std::string::npos && at < text.find('{');
         at = text.find('%', at + 1))
      found.push_back(text.substr(at, text.find_first_not_of("0123456789", at + 1) - at));
    return found;
  }
  // "%1, %2" and "f32[a=2,b=3], f32[a=2] in update": the items between commas and spaces.
  static std::vector<std::string> listed(const std::string& text) {
    std::vector<std::string> found;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find(", ", at), text.size());
      found.push_back(text.substr(at, std::min(end, text.find(' ', at)) - at));
      at = end + 2;
    }
    return found;
  }
  std::string type_of(const std::string& value) const {
    for (const std::string& line : lines_) {
      const std::size_t equals = line.find(" = "), colon = line.find(" : ");
      if (equals == std::string::npos || colon == std::string::npos) continue;
      const std::vector<std::string> results = listed(line.substr(0, equals)),
                                     types = listed(line.substr(colon + 3));
      const auto result = static_cast<std::size_t>(std::ranges::find(results, value) - results.begin());
      if (result < results.size() && result < types.size()) return types[result];
    }
    return {};
  }

  void put(std::size_t line, std::string now, std::string what) {
    if (now == lines_[line]) return;
    std::vector<std::string> lines = lines_;
    lines[line] = std::move(now);
    changed_.push_back({std::move(what), joined(lines)});
  }

  // With these operands instead of the node's own.
  void with_operands(std::size_t line, const std::vector<std::string>& was,
                     const std::vector<std::string>& now) {
    if (was == now) return;
    const std::string& text = lines_[line];
    const std::size_t begin = text.find(was.front(), text.find(" = "));
    const std::size_t end = text.find(was.back(), text.rfind("%")) + was.back().size();
    put(line, text.substr(0, begin) + fmt::format("{}", fmt::join(now, ", ")) + text.substr(end),
        fmt::format("{} of {}", text, fmt::join(now, ", ")));
  }
  void swap(std::size_t line, std::vector<std::string> operands, std::size_t a, std::size_t b) {
    const std::vector<std::string> was = operands;
    std::swap(operands[a], operands[b]);
    with_operands(line, was, operands);
  }
  // Operand `from` replaces operand `to`.
  void repeat(std::size_t line, std::vector<std::string> operands, std::size_t from, std::size_t to) {
    const std::vector<std::string> was = operands;
    operands[to] = operands[from];
    with_operands(line, was, operands);
  }
  void word(std::size_t line, const std::string& was, const std::string& now) {
    std::string text = lines_[line];
    text.replace(text.find(" = ") + 3, was.size(), now);
    put(line, text, fmt::format("{} as {}", lines_[line], now));
  }
  // The flag of another select replaces this one's.
  void word(std::size_t line, const std::string&, const std::string&, std::size_t operand) {
    const std::vector<std::string> was = operands_of(line);
    for (std::size_t other = 1; other + 1 < lines_.size(); ++other) {
      if (operator_of(other) != "select" || !lines_[other].ends_with("in update")) continue;
      std::vector<std::string> now = was;
      now[operand] = operands_of(other)[operand];
      if (now == was) continue;
      with_operands(line, was, now);
      return;
    }
  }
  void number(std::size_t line, double times) {
    const std::string& text = lines_[line];
    const std::size_t at = text.find("value=");
    if (at == std::string::npos) return;
    const std::size_t end = text.find_first_of(",}", at);
    const double was = std::stod(text.substr(at + 6, end - at - 6));
    if (was == 0 || (times < 1 && was == 1)) return;
    put(line, fmt::format("{}value={}{}", text.substr(0, at), was * times, text.substr(end)),
        fmt::format("{} times {}", text, times));
  }

  void for_each_output(const std::function<void(const std::string&, const std::string&)>& visit) const {
    const std::string& text = lines_.back();
    for (std::size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at + 1)) {
      const std::size_t begin = text.rfind(at > 0 && text[at - 2] == '"' ? '"' : ' ', at - 3) + 1;
      visit(text.substr(begin, at - begin - 1), text.substr(at, text.find(',', at) - at));
    }
  }
  // Adds two nodes, the second of which becomes this output.
  void add_before_return(const std::vector<std::string>& nodes, const std::string& name,
                         const std::string& value, std::string what) {
    std::vector<std::string> lines(lines_.begin(), lines_.end() - 1);
    const std::string& above = lines.back();
    std::int64_t next = std::stoll(above.substr(above.rfind('%', above.find(" = ")) + 1)) + 1;
    for (std::string node : nodes) {
      if (const std::size_t at = node.find("%last"); at != std::string::npos)
        node.replace(at, 5, fmt::format("%{}", next - 1));
      lines.push_back(fmt::format("%{} = {} in update", next++, node));
    }
    std::string outputs = lines_.back();
    const std::string was = fmt::format("{}={}", name, value), now = fmt::format("{}=%{}", name, next - 1);
    outputs.replace(outputs.find(was), was.size(), now);
    lines.push_back(outputs);
    changed_.push_back({std::move(what), joined(lines)});
  }

  std::vector<std::string> lines_;
  std::vector<ChangedPlan> changed_;
};

}  // namespace weft::distribute
