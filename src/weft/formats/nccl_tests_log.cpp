#include "weft/formats/nccl_tests_log.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/formats/collective_table_json.h"
#include "weft/formats/value.h"

namespace weft::formats {
namespace {

constexpr std::size_t kMostWords = 32;  // in a line that can be a row

constexpr std::string_view kAlgorithmNote = "# Weft algorithm: ";
constexpr std::string_view kRanksNote = "# Weft ranks: ";
constexpr std::string_view kTestNote = "# Collective test starting: ";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size() && words.size() <= kMostWords;) {
    while (at < line.size() && is_space(line[at])) ++at;
    const std::size_t begin = at;
    while (at < line.size() && !is_space(line[at])) ++at;
    if (at > begin) words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

bool all_digits(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

// The columns of a row; -1: missing.
struct Layout {
  std::size_t words = 0;
  std::int32_t redop = -1, root = -1;
  std::int32_t out_of_place = -1, in_place = -1;  // times
  std::int32_t algorithm_bandwidth = -1, bus_bandwidth = -1;
};

Layout layout_of_header(std::span<const std::string_view> titles, bool in_place_first) {
  Layout layout{.words = titles.size()};
  for (std::size_t i = 0; i < titles.size(); ++i) {
    const auto column = static_cast<std::int32_t>(i);
    if (titles[i] == "redop") layout.redop = column;
    if (titles[i] == "root") layout.root = column;
    if (titles[i] == "time") (layout.out_of_place < 0 ? layout.out_of_place : layout.in_place) = column;
    if (titles[i] == "algbw" && layout.algorithm_bandwidth < 0) layout.algorithm_bandwidth = column;
    if (titles[i] == "busbw" && layout.bus_bandwidth < 0) layout.bus_bandwidth = column;
  }
  if (in_place_first) std::swap(layout.out_of_place, layout.in_place);
  return layout;
}

// Size, count and type, then redop and root as far as the number of words allows, then one or two
// groups of four columns.
std::optional<Layout> layout_of_row(std::size_t words) {
  for (const std::size_t halves : {2, 1}) {
    const std::size_t before = words - 4 * halves;
    if (words < 4 * halves || before < 3 || before > 5) continue;
    const auto time = static_cast<std::int32_t>(before);
    return Layout{.words = words,
                  .redop = before >= 4 ? 3 : -1,
                  .root = before == 5 ? 4 : -1,
                  .out_of_place = time,
                  .in_place = halves == 2 ? time + 4 : -1,
                  .algorithm_bandwidth = time + 1,
                  .bus_bandwidth = time + 2};
  }
  return std::nullopt;
}

// The collective, as far as a row's columns identify it.
std::optional<collective::Kind> kind_of_row(const Layout& layout, std::span<const std::string_view> words) {
  const bool has_root = layout.root >= 0 && !words[static_cast<std::size_t>(layout.root)].starts_with('-');
  const bool sums = layout.redop >= 0 && words[static_cast<std::size_t>(layout.redop)] != "none";
  if (has_root) return sums ? collective::Kind::reduce : collective::Kind::broadcast;
  if (!sums || layout.algorithm_bandwidth < 0 || layout.bus_bandwidth < 0) return std::nullopt;
  const auto algorithm = read_number<double>(words[static_cast<std::size_t>(layout.algorithm_bandwidth)]);
  const auto bus = read_number<double>(words[static_cast<std::size_t>(layout.bus_bandwidth)]);
  // Small bandwidths have too few digits for a ratio.
  if (!algorithm || !bus || *algorithm < 0.5) return std::nullopt;
  return *bus > 0.97 * *algorithm ? collective::Kind::all_reduce : collective::Kind::reduce_scatter;
}

class LogReader {
 public:
  LogReader(std::string_view text, std::string_view path) : rest_(text), path_(path) {}

  Result<CollectiveTable> read() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      std::string_view line = without_tag(rest_.substr(0, end));
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_;
      while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
      if (line.starts_with('#')) {
        read_comment(line);
      } else if (const auto words = words_of(line); !words.empty() && all_digits(words[0])) {
        WEFT_TRY_STATUS(read_row(words));
      }
    }
    if (table_.rows.empty())
      return user_error(
          fmt::format("{} has no rows", path_),
          "a row is a line that nccl-tests prints for a size, such as: 1024 256 float sum -1 11.88 "
          "0.09 0.15 0 11.88 0.09 0.15 0");
    if (table_.ranks == 0) table_.ranks = listed_ranks_;
    table_.hosts = static_cast<std::int32_t>(hosts_.size());
    if (table_.kind == collective::Kind::custom && guess_) table_.kind = *guess_;
    return std::move(table_);
  }

 private:
  // mpirun --tag-output puts "[1,0]<stdout>:" before every line.
  static std::string_view without_tag(std::string_view line) {
    if (!line.starts_with('[')) return line;
    const std::size_t tag = line.find(">:");
    return tag == std::string_view::npos ? line : line.substr(tag + 2);
  }

  void read_comment(std::string_view line) {
    while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
    if (line.starts_with(kAlgorithmNote)) table_.algorithm = line.substr(kAlgorithmNote.size());
    if (line.starts_with(kRanksNote))
      if (const auto ranks = read_number<std::int32_t>(line.substr(kRanksNote.size()));
          ranks && *ranks > 0 && *ranks <= kMostCollectiveRanks)
        table_.ranks = *ranks;
    if (line.starts_with(kTestNote)) {
      std::string_view test = line.substr(kTestNote.size());
      if (test.ends_with("_perf")) test.remove_suffix(5);
      if (const auto kind = collective::find_kind(test)) table_.kind = *kind;
    }
    const std::size_t in = line.find("in-place"), out = line.find("out-of-place");
    if (in != std::string_view::npos && out != std::string_view::npos) in_place_first_ = in < out;
    const auto words = words_of(line.substr(1));
    if (words.size() >= 2 && words[0] == "Rank" && all_digits(words[1]) &&
        listed_ranks_ < kMostCollectiveRanks) {
      ++listed_ranks_;
      read_rank(words);
    }
    if (words.size() >= 2 && words.size() <= kMostWords && words[0] == "size" && words[1] == "count")
      if (const Layout layout = layout_of_header(words, in_place_first_); layout.out_of_place >= 0)
        layout_ = layout;
  }

  // Rank 0 [Group 0] Pid 97083 on node1 device 0 [0x1b] NVIDIA H100 80GB HBM3
  void read_rank(std::span<const std::string_view> words) {
    const auto on = std::ranges::find(words, "on"), device = std::ranges::find(words, "device");
    if (words.end() - on > 1) hosts_.emplace(on[1]);
    if (!table_.device.empty() || words.end() - device < 4) return;
    for (const std::string_view word : std::span(device + 3, words.end()))
      table_.device += (table_.device.empty() ? "" : " ") + std::string(word);
  }

  Status read_row(std::span<const std::string_view> words) {
    const std::optional<Layout> layout = layout_ ? layout_ : layout_of_row(words.size());
    if (!layout) return wrong("7 to 13 columns", fmt::format("{}", words.size()));
    if (words.size() != layout->words)
      return wrong(fmt::format("the {} columns of the header", layout->words),
                   fmt::format("{}", words.size()));
    CollectiveRow row;
    const auto bytes = read_number<std::int64_t>(words[0]);
    if (!bytes || *bytes > kMostCollectiveBytes)
      return wrong(fmt::format("a size of at most {} bytes", kMostCollectiveBytes), quoted(words[0]));
    row.bytes = *bytes;
    WEFT_TRY_STATUS(read_time(words, layout->out_of_place, row.out_of_place_us));
    WEFT_TRY_STATUS(read_time(words, layout->in_place, row.in_place_us));
    // A minimum size below one element per rank produces repeated rows of 0 bytes.
    if (row.bytes == 0) return {};
    if (!table_.rows.empty() && row.bytes <= table_.rows.back().bytes)
      return user_error(fmt::format("{}, line {}: expected ascending sizes, found {} after {}", path_, line_,
                                    row.bytes, table_.rows.back().bytes),
                        "a file holds one run of one type and one operation");
    if (table_.rows.size() == kMostCollectiveRows)
      return wrong(fmt::format("at most {} rows", kMostCollectiveRows), "more");
    table_.rows.push_back(row);
    if (const auto kind = kind_of_row(*layout, words)) guess_ = kind;
    return {};
  }

  Status read_time(std::span<const std::string_view> words, std::int32_t column, double& microseconds) {
    if (column < 0) return {};
    const std::string_view word = words[static_cast<std::size_t>(column)];
    if (word == "N/A") return {};
    const auto time = read_number<double>(word);
    if (!time || !(*time >= 0 && *time <= kMostMicroseconds))
      return wrong("a time in microseconds", quoted(word));
    microseconds = *time;
    return {};
  }

  static std::string quoted(std::string_view word) { return fmt::format("'{}'", shown(word)); }

  Error wrong(std::string_view expected, std::string_view found) const {
    return user_error(fmt::format("{}, line {}: expected {}, found {}", path_, line_, expected, found));
  }

  std::string_view rest_, path_;
  std::int64_t line_ = 0;
  CollectiveTable table_;
  std::optional<Layout> layout_;
  std::optional<collective::Kind> guess_;
  std::int32_t listed_ranks_ = 0;
  std::set<std::string, std::less<>> hosts_;
  bool in_place_first_ = false;
};

// Seven characters if they suffice, as nccl-tests prints; a nonzero time never prints as zero.
std::string print_time(double microseconds) {
  if (microseconds == 0) return "N/A";
  if (microseconds < 0.1) return fmt::format("{:.3g}", microseconds);
  return fmt::format("{:.{}f}", microseconds, microseconds >= 10000 ? 0 : microseconds >= 100 ? 1 : 2);
}

std::string print_half(const CollectiveRow& row, double microseconds, double bus_factor) {
  if (microseconds == 0) return fmt::format("  {:>7}  {:>6}  {:>6}  {:>5}", "N/A", "N/A", "N/A", "N/A");
  const double gigabytes = static_cast<double>(row.bytes) / microseconds / 1e3;
  return fmt::format("  {:>7}  {:6.2f}  {:6.2f}  {:>5}", print_time(microseconds), gigabytes,
                     gigabytes * bus_factor, 0);
}

bool has_root(collective::Kind kind) {
  return kind == collective::Kind::broadcast || kind == collective::Kind::reduce ||
         kind == collective::Kind::gather || kind == collective::Kind::scatter;
}

}  // namespace

Result<CollectiveTable> parse_collective_table(std::string_view text, std::string_view path) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') return parse_collective_table_json(text, path);
  return LogReader(text, path).read();
}

std::string print_nccl_tests_log(const CollectiveTable& table) {
  std::string out;
  // Control characters would break the line.
  std::string algorithm = table.algorithm;
  std::ranges::replace_if(
      algorithm, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  if (!algorithm.empty()) out += fmt::format("{}{}\n", kAlgorithmNote, algorithm);
  if (table.ranks > 0) out += fmt::format("{}{}\n", kRanksNote, table.ranks);
  if (table.kind != collective::Kind::custom)
    out += fmt::format("{}{}_perf\n#\n", kTestNote, collective::name(table.kind));
  constexpr std::string_view kHeader =
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6} {:>6}  {:>7}  "
      "{:>6}  {:>6} {:>6}\n";
  out += fmt::format("#{:>74}{:>31}\n", "out-of-place", "in-place");
  out += fmt::format(kHeader, "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong",
                     "time", "algbw", "busbw", "#wrong");
  out += fmt::format(kHeader, "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)",
                     "(GB/s)", "(GB/s)", "");
  const std::int32_t ranks = std::max(table.ranks, 1);
  const double factor = collective::bus_factor(table.kind, ranks);
  constexpr std::int64_t kFloatBytes = 4;
  for (const CollectiveRow& row : table.rows) {
    const std::int64_t elements = row.bytes / kFloatBytes / (has_block_per_rank(table.kind) ? ranks : 1);
    out +=
        fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", row.bytes, elements, "float",
                    collective::reduces(table.kind) ? "sum" : "none", has_root(table.kind) ? 0 : -1,
                    print_half(row, row.out_of_place_us, factor), print_half(row, row.in_place_us, factor));
  }
  return out;
}

}  // namespace weft::formats
