#include "weft/device/cuda/stored_choice.h"

#include <charconv>

#include <fmt/format.h>

#include "weft/base/hash.h"
#include "weft/base/private_folder.h"
#include "weft/device/cuda/gpu.h"

namespace weft::device::cuda {
namespace {

constexpr std::string_view kChoiceHead = "weft choice 1";

std::string checksum(std::string_view key, const ChoiceWords& words) {
  Hasher hasher;
  hasher.text(key);
  for (const std::uint64_t word : words) hasher.number(word);
  return hasher.digest().hex();
}

std::string choice_file(std::string_view key) { return Hasher().text(key).digest().hex() + ".choice"; }

}  // namespace

std::string print_choice(std::string_view key, const ChoiceWords& words) {
  std::string text = fmt::format("{}\n{}\n", kChoiceHead, key);
  for (const std::uint64_t word : words) text += fmt::format("{:016x}\n", word);
  return text + checksum(key, words) + "\n";
}

std::optional<ChoiceWords> read_choice(std::string_view key, std::string_view text) {
  const auto line = [&]() -> std::string_view {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    const std::string_view found = text.substr(0, end);
    text.remove_prefix(end + 1);
    return found;
  };
  if (line() != kChoiceHead || line() != key) return {};
  ChoiceWords words = {};
  for (std::uint64_t& word : words) {
    const std::string_view digits = line();
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), word, 16);
    if (digits.size() != 16 || read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return {};
  }
  if (line() != checksum(key, words) || !text.empty()) return {};
  return words;
}

std::optional<ChoiceWords> stored_choice(std::string_view key) {
  constexpr std::int64_t kMostBytes = 8192;
  const std::string folder = cache_folder();
  if (folder.empty()) return {};
  const auto cache = PrivateFolder::open(folder);
  if (!cache.ok()) return {};
  const auto text = cache->read(choice_file(key), kMostBytes);
  if (!text.ok() || !text->has_value()) return {};
  return read_choice(key, **text);
}

void keep_choice(std::string_view key, const ChoiceWords& words) {
  const std::string folder = cache_folder();
  if (folder.empty()) return;
  if (const auto cache = PrivateFolder::make(folder); cache.ok())
    (void)cache->write(choice_file(key), print_choice(key, words));
}

}  // namespace weft::device::cuda
