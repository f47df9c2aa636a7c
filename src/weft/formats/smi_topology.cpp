#include "weft/formats/smi_topology.h"

#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/formats/value.h"

namespace weft::formats {
namespace {

constexpr std::int32_t kMostNvlinks = 1024;

// On a terminal, and in text copied from one, the header is underlined by escape sequences.
std::string without_escapes(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && !(line[i] >= '@' && line[i] <= '~')) ++i;
    } else if (line[i] != '\r') {
      plain += line[i];
    }
  }
  return plain;
}

std::vector<std::string> smi_words(std::string_view line) {
  std::vector<std::string> words;
  const std::string plain = without_escapes(line);
  std::size_t at = 0;
  while ((at = plain.find_first_not_of(" \t", at)) != std::string::npos) {
    const std::size_t end = std::min(plain.find_first_of(" \t", at), plain.size());
    words.push_back(plain.substr(at, end - at));
    at = end;
  }
  return words;
}

// GPU7 is 7.
std::optional<std::size_t> gpu_number(std::string_view word) {
  if (!word.starts_with("GPU") || word.size() < 4 || word.size() > 7) return std::nullopt;
  return read_number<std::size_t>(word.substr(3));
}

struct SmiCell {
  std::int32_t nvlinks = 0, distance = 0;
};

// Nothing if it is neither NVLinks nor a PCIe path.
std::optional<SmiCell> read_cell(std::string_view cell) {
  struct Path {
    std::string_view name;
    std::int32_t distance;
  };
  static constexpr Path kPaths[] = {{"PIX", 1},  {"PXB", 1}, {"PSB", 1}, {"PHB", 2},
                                    {"NODE", 2}, {"SYS", 3}, {"SOC", 3}};
  for (const Path& path : kPaths)
    if (cell == path.name) return SmiCell{0, path.distance};
  if (!cell.starts_with("NV") || cell.size() < 3) return std::nullopt;
  const auto count = read_number<std::int32_t>(cell.substr(2), 1, kMostNvlinks);
  if (!count) return std::nullopt;
  return SmiCell{*count, 0};
}

bool is_smi_header(const std::vector<std::string>& words) {
  return words.size() >= 2 && words[0] == "GPU0" && (gpu_number(words[1]) == 1u || words[1] != "X");
}

std::vector<std::string_view> smi_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

std::int32_t SmiTopology::nvlinks_per_gpu(std::int32_t most) const {
  std::int32_t fewest = most;
  for (std::size_t i = 0; i < nvlinks.size(); ++i) {
    std::int64_t sum = 0;
    std::int32_t largest = 0;
    for (const std::int32_t count : nvlinks[i]) {
      sum += count;
      largest = std::max(largest, count);
    }
    fewest = std::min(fewest, sum <= most ? static_cast<std::int32_t>(sum) : largest);
  }
  return fewest;
}

bool looks_like_smi_topology(std::string_view text) {
  for (const std::string_view line : smi_lines(text.substr(0, std::min<std::size_t>(text.size(), 1 << 16)))) {
    const std::vector<std::string> words = smi_words(line);
    if (words.empty()) continue;
    if (is_smi_header(words)) return true;
  }
  return false;
}

Result<SmiTopology> read_smi_topology(std::string_view text) {
  SmiTopology topology;
  std::size_t gpus = 0, read = 0, number = 0;
  for (const std::string_view line : smi_lines(text)) {
    ++number;
    const std::vector<std::string> words = smi_words(line);
    if (words.empty()) continue;
    if (gpus == 0) {
      if (!is_smi_header(words)) continue;
      while (gpus < words.size() && gpu_number(words[gpus]) == gpus) ++gpus;
      if (gpus > kMostSmiGpus)
        return user_error(
            fmt::format("line {}: expected at most {} GPUs, found {}", number, kMostSmiGpus, gpus));
      for (std::size_t w = gpus; w < words.size() && words[w] != "CPU"; ++w) ++topology.network_cards;
      topology.nvlinks.assign(gpus, std::vector<std::int32_t>(gpus));
      topology.distance = topology.nvlinks;
      continue;
    }
    if (gpu_number(words[0]) != read || read == gpus) continue;
    if (words.size() < gpus + 1)
      return user_error(fmt::format("line {}: expected {} columns for GPU{}, found {}", number, gpus, read,
                                    words.size() - 1));
    for (std::size_t g = 0; g < gpus; ++g) {
      const std::string& cell = words[g + 1];
      if (g == read && cell == "X") continue;
      const auto found = read_cell(cell);
      if (g == read || !found)
        return user_error(fmt::format("line {}: expected {} between GPU{} and GPU{}, found '{}'", number,
                                      g == read ? "X" : "NV18, PIX or the like", read, g, shown(cell)));
      topology.nvlinks[read][g] = found->nvlinks;
      topology.distance[read][g] = found->distance;
    }
    ++read;
  }
  if (gpus == 0)
    return user_error("expected a line that begins with GPU0, found none", "nvidia-smi topo -m prints it");
  if (read < gpus) return user_error(fmt::format("expected one line per GPU of {}, found {}", gpus, read));
  for (std::size_t a = 0; a < gpus; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      if (topology.distance[a][b] != topology.distance[b][a])
        return user_error(fmt::format("the connection of GPU{} and GPU{} differs by direction", b, a));
      if (topology.nvlinks[a][b] != topology.nvlinks[b][a])
        return user_error(fmt::format("links are not symmetric: NV{} from GPU{} to GPU{}, NV{} back",
                                      topology.nvlinks[a][b], a, b, topology.nvlinks[b][a]));
    }
  return topology;
}

}  // namespace weft::formats
