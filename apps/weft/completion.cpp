#include "completion.h"

#include <algorithm>

#include <fmt/format.h>

namespace weft {
namespace {

std::size_t common_length(const std::string& a, const std::string& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

Completion choose_completion(const session::Completions& found) {
  Completion completion{.replaced = found.replaced, .insert = {}, .choices = {}};
  const std::vector<std::string>& words = found.words;
  if (words.empty()) return completion;
  if (words.size() == 1) {
    completion.insert = words.front();
    if (!completion.insert.ends_with('/')) completion.insert += found.after;
    return completion;
  }
  std::size_t shared = words.front().size();
  for (const std::string& word : words) shared = std::min(shared, common_length(words.front(), word));
  if (shared > completion.replaced) {
    completion.insert = words.front().substr(0, shared);
  } else {
    completion.choices = words;
  }
  return completion;
}

std::string in_columns(const std::vector<std::string>& words, std::size_t width) {
  std::size_t widest = 0;
  for (const std::string& word : words) widest = std::max(widest, word.size());
  const std::size_t columns = std::max<std::size_t>(1, width / (widest + 2));
  const std::size_t rows = (words.size() + columns - 1) / columns;
  std::string text;
  for (std::size_t row = 0; row < rows; ++row) {
    std::string line;
    for (std::size_t i = row; i < words.size(); i += rows)
      line += fmt::format("{:<{}}", words[i], widest + 2);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace weft
