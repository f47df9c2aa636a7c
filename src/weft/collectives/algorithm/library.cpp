#include "weft/collectives/algorithm/library.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/letters.h"
#include "weft/base/nearest.h"
#include "weft/base/token_reader.h"
#include "weft/collectives/chunks/lexicon.h"

namespace weft {
std::span<const EmbeddedFile> embedded_algorithms();
}  // namespace weft

namespace weft::collective {
namespace {

// "algorithms/all_gather_ring.algorithm" holds all_gather_ring.
std::string_view stem(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash != path.npos) path.remove_prefix(slash + 1);
  return path.substr(0, path.find('.'));
}

Argument read_argument(TokenReader& reader) {
  if (reader.at(TokenKind::string)) return reader.string("a word");
  if (reader.at(TokenKind::word)) return lower(reader.name("a word"));
  if (!reader.take(TokenKind::left_bracket)) return reader.wide_number("a number, a word or a list");
  std::vector<std::int64_t> items;
  if (!reader.at(TokenKind::right_bracket)) {
    do items.push_back(reader.wide_number("a number"));
    while (reader.take(TokenKind::comma));
  }
  reader.expect(TokenKind::right_bracket);
  return items;
}

std::string print_argument(const Argument& argument) {
  if (const auto* number = std::get_if<std::int64_t>(&argument)) return fmt::format("{}", *number);
  // An unquoted word is read in lower case.
  if (const auto* word = std::get_if<std::string>(&argument))
    return lower(*word) == *word ? print_name(*word) : quote(*word);
  return fmt::format("[{}]", fmt::join(std::get<std::vector<std::int64_t>>(argument), ", "));
}

}  // namespace

const AlgorithmLibrary& shipped_algorithms() {
  static const AlgorithmLibrary library = [] {
    auto parsed = parse_library(embedded_algorithms());
    WEFT_CHECK(parsed.ok(), parsed.error().message);
    return std::move(parsed).value();
  }();
  return library;
}

void AlgorithmLibrary::add(Algorithm algorithm) {
  std::string name = algorithm.name();
  algorithms_.insert_or_assign(std::move(name), std::move(algorithm));
}

const Algorithm* AlgorithmLibrary::find(std::string_view name) const {
  const auto found = algorithms_.find(name);
  return found == algorithms_.end() ? nullptr : &found->second;
}

std::vector<std::string_view> AlgorithmLibrary::names() const {
  std::vector<std::string_view> result;
  for (const auto& [name, algorithm] : algorithms_) result.push_back(name);
  return result;
}

Result<AlgorithmLibrary> parse_library(std::span<const EmbeddedFile> files) {
  AlgorithmLibrary library;
  for (const EmbeddedFile& file : files) {
    auto algorithm = parse_algorithm(file.text);
    if (!algorithm.ok()) {
      Error error = std::move(algorithm).error();
      error.message = fmt::format("{}: {}", file.path, error.message);
      error.text = std::make_shared<const std::string>(file.text);
      return error;
    }
    if (algorithm->name() != stem(file.path))
      return user_error(fmt::format("{} defines a different algorithm: {}", file.path, algorithm->name()),
                        "a file must be named after its algorithm");
    library.add(std::move(algorithm).value());
  }
  return library;
}

Result<AlgorithmReference> parse_reference(std::string_view text) {
  TokenReader reader(kLexicon, text);
  AlgorithmReference result;
  result.name = lower(reader.name("the name of an algorithm"));
  if (reader.take(TokenKind::left_paren) && !reader.take(TokenKind::right_paren)) {
    do {
      const Token start = reader.token();
      std::string name = lower(reader.name("the name of a parameter"));
      if (!reader.take(TokenKind::arrow)) reader.expect(TokenKind::equal);
      Argument value = read_argument(reader);
      if (!reader.failed() && !result.arguments.emplace(name, std::move(value)).second)
        reader.fail_at(start.span, fmt::format("given twice: {}", name));
    } while (reader.take(TokenKind::comma));
    reader.expect(TokenKind::right_paren);
  }
  if (!reader.at_end()) reader.fail_expected(reader.name(TokenKind::end));
  if (reader.failed()) return reader.error();
  return result;
}

std::string print(const AlgorithmReference& reference) {
  std::vector<std::string> arguments;
  // `ranks`, which nearly all have, comes first; the rest follows by name.
  if (const auto ranks = reference.arguments.find("ranks"); ranks != reference.arguments.end())
    arguments.push_back(fmt::format("ranks={}", print_argument(ranks->second)));
  for (const auto& [name, value] : reference.arguments)
    if (name != "ranks") arguments.push_back(fmt::format("{}={}", name, print_argument(value)));
  return fmt::format("{}({})", reference.name, fmt::join(arguments, ", "));
}

Result<Algorithm> find_algorithm(const AlgorithmLibrary& library, std::string_view name) {
  if (const Algorithm* const found = library.find(name)) return *found;
  return user_error(fmt::format("unknown algorithm: {}", name), did_you_mean(name, library.names()));
}

}  // namespace weft::collective
