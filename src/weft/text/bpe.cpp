// Byte pair encoding: merges neighbours into larger tokens, the pairs that were learned first first.
//
//   merges: l l, h e, he ll      h e l l o  ->  h e ll o  ->  he ll o  ->  hell o
#include <algorithm>
#include <queue>

#include <fmt/format.h>

#include "weft/formats/value.h"
#include "weft/text/code_points.h"
#include "weft/text/pair_table.h"
#include "weft/text/tokenizer_json.h"
#include "weft/text/word_model.h"

namespace weft::text {
namespace {

struct BpeOptions {
  std::string prefix;  // of tokens that continue a word
  std::string suffix;  // of tokens that end a word
  std::string unknown;
  bool fuse_unknown = false;
  bool bytes = false;        // unknown characters become the tokens of their bytes
  bool whole_words = false;  // words of the vocabulary are not merged
};

class Bpe final : public WordModel {
 public:
  Bpe(Vocabulary vocabulary, PairTable merges, BpeOptions options)
      : WordModel(std::move(vocabulary)), merges_(std::move(merges)), options_(std::move(options)) {}

  Status append(std::string_view word, std::vector<std::int32_t>& ids) const override {
    if (options_.whole_words)
      if (const auto id = vocabulary().find(word)) {
        ids.push_back(*id);
        return {};
      }
    WEFT_TRY(symbols, symbols_of(word));
    merge(symbols);
    for (const Symbol& symbol : symbols)
      if (!symbol.merged) ids.push_back(static_cast<std::int32_t>(symbol.id));
    return {};
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Symbol {
    std::uint32_t id = 0;
    std::uint32_t before = kNone, after = kNone;
    bool merged = false;  // into the symbol before it
  };

  struct Candidate {
    std::uint32_t rank = 0, at = 0, id = 0;

    // The lowest rank first, then the leftmost.
    friend bool operator<(const Candidate& a, const Candidate& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
    }
  };

  Result<std::vector<Symbol>> symbols_of(std::string_view word) const {
    std::vector<Symbol> symbols;
    symbols.reserve(word.size());
    const auto add = [&](std::int32_t id) { symbols.push_back({.id = static_cast<std::uint32_t>(id)}); };
    std::optional<std::int32_t> unknown;  // not yet added, since more may be fused with it
    std::string longer;
    for (std::size_t at = 0; at < word.size();) {
      std::string_view token = word.substr(at, code_point_at(word, at).length);
      const std::size_t next = at + token.size();
      const bool prefixed = at > 0 && !options_.prefix.empty();
      const bool suffixed = next == word.size() && !options_.suffix.empty();
      if (prefixed || suffixed) {
        longer = prefixed ? options_.prefix : "";
        longer += token;
        if (suffixed) longer += options_.suffix;
        token = longer;
      }
      at = next;
      if (const auto id = vocabulary().find(token)) {
        if (unknown) add(*std::exchange(unknown, std::nullopt));
        add(*id);
        continue;
      }
      if (options_.bytes && add_bytes(token, symbols)) continue;
      if (options_.unknown.empty()) continue;  // the character has no token and is dropped
      if (unknown && !options_.fuse_unknown) add(*unknown);
      unknown = vocabulary().find(options_.unknown);
      if (!unknown)
        return user_error(fmt::format("unk_token '{}' is not in the vocabulary", options_.unknown));
    }
    if (unknown) add(*unknown);
    for (std::size_t i = 1; i < symbols.size(); ++i) {
      symbols[i].before = static_cast<std::uint32_t>(i - 1);
      symbols[i - 1].after = static_cast<std::uint32_t>(i);
    }
    return symbols;
  }

  bool add_bytes(std::string_view token, std::vector<Symbol>& symbols) const {
    const std::size_t before = symbols.size();
    for (const char byte : token) {
      const auto id = vocabulary().byte_token(byte);
      if (!id) {
        symbols.resize(before);
        return false;
      }
      symbols.push_back({.id = static_cast<std::uint32_t>(*id)});
    }
    return true;
  }

  void merge(std::vector<Symbol>& symbols) const {
    std::vector<Candidate> first;
    const auto candidate = [&](std::uint32_t at) -> std::optional<Candidate> {
      const Symbol& left = symbols[at];
      if (left.after == kNone) return std::nullopt;
      const PairTable::Value* found = merges_.find(left.id, symbols[left.after].id);
      if (found == nullptr) return std::nullopt;
      return Candidate{found->first, at, found->second};
    };
    for (std::uint32_t at = 0; at + 1 < symbols.size(); ++at)
      if (const auto found = candidate(at)) first.push_back(*found);
    std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(first));
    while (!queue.empty()) {
      const Candidate top = queue.top();
      queue.pop();
      Symbol& left = symbols[top.at];
      if (left.merged || left.after == kNone) continue;
      Symbol& right = symbols[left.after];
      // The pair may have changed since it was queued.
      const PairTable::Value* found = merges_.find(left.id, right.id);
      if (found == nullptr || found->second != top.id) continue;
      left.id = top.id;
      left.after = right.after;
      right.merged = true;
      if (right.after != kNone) symbols[right.after].before = top.at;
      if (left.before != kNone)
        if (const auto pair = candidate(left.before)) queue.push(*pair);
      if (const auto pair = candidate(top.at)) queue.push(*pair);
    }
  }

  PairTable merges_;  // the ids of a pair to its rank and the id of the merged token
  BpeOptions options_;
};

// "a b" or ["a", "b"].
Result<std::pair<std::string_view, std::string_view>> read_pair(const formats::JsonNode& node) {
  const formats::Json& value = node.value();
  if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string())
    return std::pair<std::string_view, std::string_view>(value[0].get_ref<const std::string&>(),
                                                         value[1].get_ref<const std::string&>());
  if (value.is_string()) {
    const std::string_view text = value.get_ref<const std::string&>();
    const std::size_t blank = text.find(' ');
    if (blank != std::string_view::npos && text.find(' ', blank + 1) == std::string_view::npos)
      return std::pair(text.substr(0, blank), text.substr(blank + 1));
  }
  return node.error(fmt::format("expected two tokens, such as \"a b\" or [\"a\", \"b\"], found {}",
                                formats::shown(value.dump())));
}

Result<PairTable> read_merges(const formats::JsonNode& node, const Vocabulary& vocabulary,
                              std::string_view prefix) {
  WEFT_TRY(entries, node.list("merges"));
  PairTable merges;
  std::uint32_t rank = 0;
  for (const formats::JsonNode& entry : entries) {
    if (entry.value().is_string() && entry.value().get_ref<const std::string&>().starts_with("#version"))
      continue;
    WEFT_TRY(pair, read_pair(entry));
    const auto [left, right] = pair;
    const auto a = vocabulary.find(left), b = vocabulary.find(right);
    const bool has_prefix = right.size() >= prefix.size();
    const std::string joined = std::string(left) + std::string(has_prefix ? right.substr(prefix.size()) : "");
    const auto merged = vocabulary.find(joined);
    if (!a || !b || !merged || !has_prefix)
      return entry.error(fmt::format("expected tokens of the vocabulary, found '{}', which is not",
                                     formats::shown(!a   ? left
                                                    : !b ? right
                                                         : joined)),
                         "vocab and merges must come from the same tokenizer");
    // Of equal pairs the last one counts.
    merges.replace(static_cast<std::uint32_t>(*a), static_cast<std::uint32_t>(*b),
                   {rank++, static_cast<std::uint32_t>(*merged)});
  }
  return merges;
}

}  // namespace

Result<std::unique_ptr<WordModel>> read_bpe(const formats::JsonNode& node) {
  WEFT_TRY(dropout, node.sets("dropout") ? node.number("dropout", 0) : Result<double>(0.0));
  if (dropout != 0)
    return node.error(fmt::format("expected no dropout, found {}: ids would differ between runs", dropout),
                      "set \"dropout\": null");
  BpeOptions options;
  WEFT_TRY(prefix, text_or(node, "continuing_subword_prefix", ""));
  WEFT_TRY(suffix, text_or(node, "end_of_word_suffix", ""));
  WEFT_TRY(unknown, text_or(node, "unk_token", ""));
  WEFT_TRY(fuse, truth_or(node, "fuse_unk", false));
  WEFT_TRY(bytes, truth_or(node, "byte_fallback", false));
  WEFT_TRY(whole, truth_or(node, "ignore_merges", false));
  WEFT_TRY(vocabulary_node, node.at("vocab"));
  WEFT_TRY(vocabulary, Vocabulary::read(vocabulary_node));
  WEFT_TRY(merges, read_merges(node, vocabulary, prefix));
  return std::unique_ptr<WordModel>(std::make_unique<Bpe>(
      std::move(vocabulary), std::move(merges), BpeOptions{prefix, suffix, unknown, fuse, bytes, whole}));
}

}  // namespace weft::text
