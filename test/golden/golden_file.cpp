#include "golden_file.h"

#include <charconv>

#include <fmt/format.h>

namespace weft::golden {
namespace {

constexpr std::string_view kDelimiter = "----";

// Returns lines with their newline, which the last line may lack.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}

  bool done() const { return at_ == text_.size(); }
  std::size_t number() const { return number_; }  // of the line that next() returns
  std::string_view peek() const {
    const std::size_t end = text_.find('\n', at_);
    return text_.substr(at_, end == std::string_view::npos ? end : end + 1 - at_);
  }
  std::string_view next() {
    const std::string_view line = peek();
    at_ += line.size();
    ++number_;
    return line;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0, number_ = 1;
};

std::string_view bare(std::string_view line) {
  const std::size_t end = line.find_last_not_of(" \t\r\n");
  return end == std::string_view::npos ? std::string_view() : line.substr(0, end + 1);
}

void read_command(std::string_view line, Case& current) {
  line = bare(line);
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(word.size());
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (current.command.empty()) {
      current.command = word;
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
    current.flags.emplace(word.substr(0, equals), value);
  }
}

Status read_expected(Lines& lines, Case& current) {
  if (lines.done() || bare(lines.peek()) != kDelimiter) {
    while (!lines.done() && !bare(lines.peek()).empty()) current.expected += lines.next();
  } else {
    lines.next();
    for (;;) {
      if (lines.done()) {
        return user_error(fmt::format("line {}: the output after the doubled ---- has no end", current.line));
      }
      const std::string_view line = lines.next();
      if (bare(line) == kDelimiter && bare(lines.peek()) == kDelimiter) break;
      current.expected += line;
    }
    lines.next();
  }
  if (!current.expected.empty() && current.expected.back() != '\n') current.expected += '\n';
  return {};
}

}  // namespace

std::string Case::flag(std::string_view name, std::string_view otherwise) const {
  const auto found = flags.find(name);
  return found == flags.end() ? std::string(otherwise) : found->second;
}

std::int64_t Case::number(std::string_view name, std::int64_t otherwise) const {
  const std::string text = flag(name);
  std::int64_t value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Result<GoldenFile> read_golden(std::string_view text) {
  GoldenFile file;
  file.between.emplace_back();
  Lines lines(text);
  while (!lines.done()) {
    const std::string_view line = lines.peek();
    const std::size_t number = lines.number();
    file.between.back() += lines.next();
    if (bare(line).empty() || line.starts_with('#')) continue;

    Case current;
    current.line = number;
    read_command(line, current);
    for (;;) {
      if (lines.done()) return user_error(fmt::format("line {}: {} has no ----", number, current.command));
      const std::string_view input = lines.next();
      file.between.back() += input;
      if (bare(input) == kDelimiter) break;
      current.input += input;
    }
    WEFT_TRY_STATUS(read_expected(lines, current));
    file.cases.push_back(std::move(current));
    file.between.emplace_back();
  }
  return file;
}

std::string write_golden(const GoldenFile& file, const std::vector<std::string>& outputs) {
  WEFT_CHECK(outputs.size() == file.cases.size());
  std::string text;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    text += file.between[i];
    if (!text.ends_with('\n')) text += '\n';
    const std::string& output = outputs[i];
    // The plain form would end at a blank line, and a delimiter would start the doubled form.
    bool doubled = output.starts_with(kDelimiter);
    for (Lines lines(output); !lines.done() && !doubled;) doubled = bare(lines.next()).empty();
    text += doubled ? fmt::format("{}\n{}{}\n{}\n", kDelimiter, output, kDelimiter, kDelimiter) : output;
  }
  return text + file.between.back();
}

}  // namespace weft::golden
