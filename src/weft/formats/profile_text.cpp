#include "weft/formats/profile_text.h"

#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/formats/graph_json.h"
#include "weft/formats/value.h"

namespace weft::formats {
namespace {

// A line of the text, with its location.
struct ProfileLine {
  std::string_view text;
  std::size_t number = 0, offset = 0;

  Error error(std::string_view expected, std::string_view found) const {
    return user_error(fmt::format("line {}: expected {}, found '{}'", number, expected, shown(found)), {},
                      Span{static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(text.size())});
  }
};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string_view> parts_of(std::string_view text, std::string_view between) {
  std::vector<std::string_view> parts;
  for (std::size_t next = 0; next != std::string_view::npos; text.remove_prefix(next + between.size())) {
    next = text.find(between);
    parts.push_back(trimmed(text.substr(0, next)));
    if (next == std::string_view::npos) break;
  }
  return parts;
}

Result<double> profile_number(const ProfileLine& line, std::string_view text) {
  if (const auto number = read_number(text, 0.0, 1e200)) return *number;
  return line.error("a number that is not negative", text);
}

// A number, or the sum of [a; b; c].
Result<double> profile_size(const ProfileLine& line, std::string_view text) {
  if (!text.starts_with('[')) return profile_number(line, text);
  if (!text.ends_with(']')) return line.error("a list that ends with ]", text);
  double sum = 0;
  for (const std::string_view part : parts_of(text.substr(1, text.size() - 2), ";")) {
    WEFT_TRY(number, profile_number(line, part));
    sum += number;
  }
  return sum;
}

Result<partition::ProfileNode> profile_node(const ProfileLine& line) {
  const std::vector<std::string_view> parts = parts_of(line.text, " -- ");
  if (parts.size() < 3 || parts.size() > 4) return line.error("id -- description -- numbers", line.text);
  if (parts.size() == 4 && !parts[3].starts_with("stage_id=")) return line.error("stage_id=", parts[3]);
  partition::ProfileNode node;
  node.id = parts[0];
  node.description = parts[1];
  constexpr std::string_view kNames[] = {
      "forward_compute_time=", "backward_compute_time=", "activation_size=", "parameter_size="};
  double* const values[] = {&node.forward, &node.backward, &node.activations, &node.parameters};
  const std::vector<std::string_view> fields = parts_of(parts[2], ",");
  if (fields.size() != std::size(kNames)) return line.error("four numbers", parts[2]);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!fields[i].starts_with(kNames[i])) return line.error(kNames[i], fields[i]);
    WEFT_TRY(value, profile_size(line, fields[i].substr(kNames[i].size())));
    *values[i] = value;
  }
  return node;
}

}  // namespace

bool looks_like_profile(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  return first.find(" -- ") != std::string_view::npos;
}

Result<partition::Profile> read_profile(std::string_view text) {
  partition::Profile profile;
  std::unordered_map<std::string, std::int32_t> places;
  std::vector<ProfileLine> edges;
  ProfileLine line;
  for (std::size_t begin = 0; begin < text.size(); begin += line.text.size() + 1) {
    line = {text.substr(begin, text.find('\n', begin) - begin), line.number + 1, begin};
    if (trimmed(line.text).empty()) continue;
    if (line.text.starts_with('\t')) {
      edges.push_back(line);
      if (edges.size() > kMostGraphEdges)
        return line.error(fmt::format("at most {} edges", kMostGraphEdges), "more");
      continue;
    }
    WEFT_TRY(node, profile_node(line));
    if (!places.emplace(node.id, static_cast<std::int32_t>(profile.nodes.size())).second)
      return line.error("a node of its own", node.id);
    profile.nodes.push_back(std::move(node));
    if (profile.nodes.size() > kMostGraphNodes)
      return line.error(fmt::format("at most {} nodes", kMostGraphNodes), "more");
  }
  if (profile.nodes.empty()) return user_error("expected a node, found none");
  for (const ProfileLine& edge : edges) {
    const std::vector<std::string_view> ends = parts_of(edge.text, " -- ");
    if (ends.size() != 2) return edge.error("node -- node", trimmed(edge.text));
    for (const std::string_view end : ends)
      if (!places.contains(std::string(end))) return edge.error("a node that has a line", end);
    profile.edges.emplace_back(places[std::string(ends[0])], places[std::string(ends[1])]);
  }
  return profile;
}

}  // namespace weft::formats
