#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "weft/base/hash.h"
#include "weft/base/letters.h"
#include "weft/base/number.h"
#include "weft/runtime/measure/fit_rates.h"

namespace weft::measure {
namespace {

using cluster::RateKind;

constexpr std::size_t kMostRateRows = 2'000'000, kMostRateColumns = 100;

std::vector<std::string_view> split_row(std::string_view line) {
  std::vector<std::string_view> values;
  if (line.ends_with('\r')) line.remove_suffix(1);
  for (;;) {
    const std::size_t end = std::min(line.find(','), line.size());
    std::string_view value = line.substr(0, end);
    while (value.starts_with(' ') || value.starts_with('"')) value.remove_prefix(1);
    while (value.ends_with(' ') || value.ends_with('"')) value.remove_suffix(1);
    values.push_back(value);
    if (end == line.size()) return values;
    line.remove_prefix(end + 1);
  }
}

std::string variant_of(RateKind kind, std::string_view text) {
  if (kind == RateKind::collective) return text == "alltoall" ? "all_to_all" : std::string(text);
  if (text == "bfloat16") return "bf16";
  if (text == "half" || text == "float16") return "f16";
  if (text == "float32" || text == "float") return "f32";
  return std::string(text);
}

double width_of(std::string_view dtype) {
  if (dtype == "int8" || dtype == "fp8" || dtype == "uint8") return 1;
  return dtype == "float" || dtype == "float32" || dtype == "f32" || dtype == "int32" ? 4 : 2;
}

class RowsReader {
 public:
  RowsReader(std::string_view path, std::string_view device) : path_(path), device_(device) {}

  Result<std::vector<RateRow>> read(std::string_view text) {
    std::vector<RateRow> rows;
    while (!text.empty()) {
      ++line_;
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      if (columns_.empty()) {
        WEFT_TRY_STATUS(read_header(line));
        continue;
      }
      if (rows.size() == kMostRateRows) return error(fmt::format("more than {} rows", kMostRateRows));
      WEFT_TRY(row, read_row(split_row(line)));
      if (!row.device.empty()) rows.push_back(std::move(row));
    }
    if (columns_.empty())
      return error("expected a header with the names of columns, found nothing",
                   "weft help profile lists the columns");
    if (rows.empty()) return error("expected rows below the header, found none");
    return rows;
  }

 private:
  Error error(std::string message, std::string hint = {}) const {
    return user_error(fmt::format("{}:{}: {}", path_, line_, message), std::move(hint));
  }
  bool has(std::string_view column) const { return columns_.contains(column); }

  Status read_header(std::string_view line) {
    const auto names = split_row(line);
    if (names.size() > kMostRateColumns) return error(fmt::format("more than {} columns", kMostRateColumns));
    for (std::size_t c = 0; c < names.size(); ++c)
      if (!columns_.emplace(names[c], c).second)
        return error(fmt::format("the column {} is given twice", names[c]));
    if (has("collective")) {
      kind_ = RateKind::collective;
      variant_ = "collective";
    } else if (has("d_model")) {
      kind_ = RateKind::mamba2;
      variant_ = "kernel";
    } else if (has("experts")) {
      kind_ = RateKind::experts;
      variant_ = "dtype";
    } else if (has("cached_tokens")) {
      kind_ = RateKind::decode;
    } else if (has("heads")) {
      kind_ = RateKind::prefill;
    } else {
      kind_ = RateKind::product;
      variant_ = "dtype";
    }
    std::vector<std::string> needed = {"us"};
    if (device_.empty()) needed.emplace_back("gpu");
    if (!variant_.empty()) needed.emplace_back(variant_);
    for (const std::string_view size : cluster::rate_sizes(kind_)) {
      if (size == "skew") continue;
      if (size == "bytes" && !has("bytes")) {
        needed.insert(needed.end(), {"elements", "dtype"});
        continue;
      }
      needed.emplace_back(size);
    }
    for (const std::string& column : needed)
      if (!has(column))
        return error(fmt::format("expected a column {} in a table of {}, found {}", column, name_of_kind(),
                                 fmt::join(names, ", ")),
                     "weft help profile lists the columns");
    count_ = names.size();
    return {};
  }

  std::string_view name_of_kind() const {
    return kind_ == RateKind::product      ? "products"
           : kind_ == RateKind::collective ? "collectives"
                                           : cluster::name(kind_);
  }

  Result<double> number(const std::vector<std::string_view>& values, std::string_view column,
                        double low) const {
    const std::string_view text = values[columns_.find(column)->second];
    constexpr double kMost = 1e15;
    if (const auto value = read_number<double>(text, low, kMost)) return *value;
    return error(fmt::format("expected {} of at least {}, found {:?}", column, low, text));
  }

  // The exponent of an uneven distribution: "power_law_1.2" is 1.2, "balanced" 0.
  double skew(const std::vector<std::string_view>& values) const {
    const auto column = columns_.find("distribution");
    if (column == columns_.end()) return 0;
    const std::string_view text = values[column->second];
    return read_number<double>(text.substr(text.rfind('_') + 1), 0, 10).value_or(0);
  }

  Result<RateRow> read_row(const std::vector<std::string_view>& values) const {
    if (values.size() != count_)
      return error(fmt::format("expected {} values, found {}", count_, values.size()));
    RateRow row;
    row.kind = kind_;
    row.device = has("gpu") ? std::string(values[columns_.find("gpu")->second]) : std::string(device_);
    if (row.device.empty()) return error("expected the name of a gpu, found nothing");
    row.variant = variant_.empty() ? "bf16" : variant_of(kind_, values[columns_.find(variant_)->second]);
    if (row.variant.empty() || row.variant.find(' ') != std::string::npos)
      return error(fmt::format("expected a {} of one word, found {:?}", variant_, row.variant));
    // Half's all-reduce uses NVLink SHARP where there is NVSwitch. Integers' does not, and no training uses it.
    if (kind_ == RateKind::collective && has("dtype") && values[columns_.find("dtype")->second] == "int8")
      return RateRow{};
    for (const std::string_view size : cluster::rate_sizes(kind_)) {
      if (size == "skew") {
        row.sizes.push_back(skew(values));
      } else if (size == "bytes" && !has("bytes")) {
        WEFT_TRY(elements, number(values, "elements", 1));
        row.sizes.push_back(elements * width_of(values[columns_.find("dtype")->second]));
      } else if (kind_ == RateKind::mamba2 && values[columns_.find(size)->second].empty()) {
        row.sizes.push_back(1);  // one token per sequence in decoding, and no chunks
      } else {
        WEFT_TRY(value, number(values, size, 1));
        row.sizes.push_back(value);
      }
    }
    WEFT_TRY(microseconds, number(values, "us", 1e-6));
    row.seconds = microseconds * 1e-6;
    return row;
  }

  const std::string_view path_, device_;
  int line_ = 0;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::size_t count_ = 0;
  RateKind kind_ = RateKind::product;
  std::string variant_;
};

}  // namespace

Result<std::vector<RateRow>> read_rate_rows(std::string_view text, std::string_view path,
                                            std::string_view device) {
  return RowsReader(path, device).read(text);
}

bool is_fitted(const RateRow& row) {
  std::vector<std::size_t> shape;
  switch (row.kind) {
    case RateKind::product: shape = {1, 2}; break;
    case RateKind::prefill:
    case RateKind::decode: shape = {2, 3, 4}; break;
    case RateKind::experts: shape = {1, 2, 3, 4}; break;
    case RateKind::mamba2: shape = {2, 3, 4, 5, 6, 7}; break;
    case RateKind::collective: shape = {0}; break;
  }
  Hasher hasher;
  if (row.kind == RateKind::collective) hasher.text(row.device).text(row.variant);
  for (const std::size_t size : shape) hasher.real(row.sizes[size]);
  return (hasher.digest().low & 1) == 0;
}

}  // namespace weft::measure
