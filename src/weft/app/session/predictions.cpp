#include "weft/app/session/predictions.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/app/session/learn.h"
#include "weft/device/element_access.h"

namespace weft::session {
namespace {

struct Written {
  const program::Port* port;
  std::string name;
  std::int64_t width;
};

bool is_own(const program::Port& port) { return port.name != kLogits && port.name != kLabels; }

// Compares index names in the types, because places only have sizes.
bool has_row_for_each(const exec::Rank& rank, const program::Port& port) {
  const plan::Graph& graph = *rank.program().graph;
  const plan::Type input = graph.type(rank.program().inputs.front().value), output = graph.type(port.value);
  return output.rank() > 0 && input.rank() > 0 && output.dims[0].index == input.dims[0].index;
}

std::vector<Written> written_of(const exec::Rank& rank, std::int64_t examples) {
  std::vector<Written> written;
  for (const bool own : {true, false}) {
    for (const program::Port& port : rank.program().outputs)
      if (is_own(port) == own && port.name != kLabels && has_row_for_each(rank, port))
        written.push_back({&port, own ? port.name : "logits", port.place.elements() / examples});
    if (!written.empty()) break;
  }
  return written;
}

// The argmax of each row of logits; the first of ties.
std::vector<double> largest(const program::Port& logits, const exec::HostBytes& bytes) {
  const std::int64_t classes = logits.place.axes[logits.place.axes.size() - 1].size;
  std::vector<double> found;
  for (std::int64_t row = 0; row < logits.place.elements() / classes; ++row) {
    std::int64_t best = 0;
    double most = -INFINITY;
    for (std::int64_t c = 0; c < classes; ++c) {
      const double logit = device::load_element(logits.place.dtype, bytes.data(), row * classes + c);
      if (logit > most) most = logit, best = c;
    }
    found.push_back(static_cast<double>(best));
  }
  return found;
}

}  // namespace

Status Predictions::add(const exec::Rank& rank, std::int64_t examples) {
  // When the limit is reached, rows are counted but not read.
  if (width_ > 0 && rows_ + 1 > most_values_ / width_) return left_out_ += examples, Status();
  const std::vector<Written> written = written_of(rank, examples);
  const auto logits = std::ranges::find(rank.program().outputs, kLogits, &program::Port::name);
  const bool predicts = logits != rank.program().outputs.end() && has_row_for_each(rank, *logits);
  std::vector<std::vector<double>> parts;
  std::vector<formats::Column> columns;
  for (const Written& output : written) {
    WEFT_TRY(bytes, rank.read(*output.port));
    std::vector<double>& part = parts.emplace_back();
    for (std::int64_t i = 0; i < output.port->place.elements(); ++i)
      part.push_back(device::load_element(output.port->place.dtype, bytes.data(), i));
    columns.push_back({output.name, output.width});
  }
  if (predicts) {
    WEFT_TRY(bytes, rank.read(*logits));
    parts.push_back(largest(*logits, bytes));
    columns.push_back({"predicted", static_cast<std::int64_t>(parts.back().size()) / examples});
  }
  if (columns_.empty()) {
    columns_ = std::move(columns);
    for (const formats::Column& column : columns_) width_ += column.width;
  }
  for (std::int64_t row = 0; row < examples; ++row) {
    if (width_ == 0 || (rows_ + 1) > most_values_ / width_) {
      ++left_out_;
      continue;
    }
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const auto first = parts[p].begin() + row * columns_[p].width;
      values_.insert(values_.end(), first, first + columns_[p].width);
    }
    ++rows_;
  }
  return {};
}

Status Predictions::write(const std::string& path, std::string_view model) const {
  if (columns_.empty())
    return user_error(fmt::format("{} has no output with a row for each example", model),
                      "name one in its last SELECT, after the loss: SELECT ... AS loss, logits FROM ...");
  return formats::write_rows(path, columns_, values_, rows_);
}

nlohmann::ordered_json Predictions::to_json() const {
  if (columns_.empty()) return nlohmann::ordered_json::object();
  nlohmann::ordered_json columns = nlohmann::ordered_json::array(), rows = nlohmann::ordered_json::array();
  for (const formats::Column& column : columns_)
    columns.push_back({{"name", column.name}, {"values", column.width}});
  for (std::int64_t row = 0; row < rows_; ++row) {
    const auto first = values_.begin() + row * width_;
    rows.push_back(std::vector<double>(first, first + width_));
  }
  nlohmann::ordered_json json = {{"columns", std::move(columns)}, {"rows", std::move(rows)}};
  if (left_out_ > 0) json["rows_left_out"] = left_out_;
  return json;
}

std::string Predictions::what() const {
  std::vector<std::string> names;
  for (const formats::Column& column : columns_) names.push_back(column.name);
  return fmt::format("{}", fmt::join(names, " and "));
}

}  // namespace weft::session
