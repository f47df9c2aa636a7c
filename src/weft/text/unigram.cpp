// Unigram, the model of SentencePiece: the tokens whose log probabilities have the largest sum, found
// by dynamic programming over the positions of the word.
//
//   hello   scores h -4, he -3, hell -5, llo -4, o -2:   he llo (-7), hell o (-7), ...
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/formats/value.h"
#include "weft/text/code_points.h"
#include "weft/text/pair_table.h"
#include "weft/text/tokenizer_json.h"
#include "weft/text/word_model.h"

namespace weft::text {
namespace {

constexpr double kUnknownPenalty = 10;  // below the lowest score; as in SentencePiece

// The score as tokenizers reads it: its digits as an integer, divided by a power of ten. That may differ
// from the nearest double in the last bit, and which of two paths with the same tokens in another order has
// the larger sum depends on it.
double as_tokenizers_reads(double score) {
  std::array<char, 32> text = {};
  const auto end =
      std::to_chars(text.begin(), text.end(), std::abs(score), std::chars_format::scientific).ptr;
  std::uint64_t digits = 0;
  std::int64_t power = 0;
  const char* at = text.begin();
  for (bool fraction = false; at != end && *at != 'e'; ++at) {
    if (*at == '.') {
      fraction = true;
      continue;
    }
    digits = 10 * digits + static_cast<std::uint64_t>(*at - '0');
    power -= fraction ? 1 : 0;
  }
  power += read_number<std::int64_t>({at + (at[1] == '+' ? 2 : 1), end}).value_or(0);
  const auto ten = read_number<double>(fmt::format("1e{}", std::abs(power)));
  if (at == end || !ten) return score;
  const double size = power < 0 ? static_cast<double>(digits) / *ten : static_cast<double>(digits) * *ten;
  return std::signbit(score) ? -size : size;
}

// The tokens as a trie of bytes. An edge is a pair of a node and a byte.
class TokenTrie {
 public:
  void add(std::string_view token, std::int32_t id) {
    std::uint32_t node = 0;
    for (const char byte : token) {
      const PairTable::Value next{static_cast<std::uint32_t>(tokens_.size()), 0};
      const PairTable::Value found = edges_.insert(node, static_cast<unsigned char>(byte), next);
      node = found.first;
      if (node == tokens_.size()) tokens_.push_back(-1);
    }
    tokens_[node] = id;
  }

  // Calls `visit(length, id)` for each token that `text` begins with, from the shortest.
  template <class Visit>
  void visit_prefixes(std::string_view text, Visit visit) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const PairTable::Value* next = edges_.find(node, static_cast<unsigned char>(text[i]));
      if (next == nullptr) return;
      node = next->first;
      if (tokens_[node] >= 0) visit(i + 1, tokens_[node]);
    }
  }

 private:
  PairTable edges_;
  std::vector<std::int32_t> tokens_ = {-1};  // by node
};

class Unigram final : public WordModel {
 public:
  Unigram(Vocabulary vocabulary, std::vector<double> scores, std::optional<std::int32_t> unknown, bool bytes)
      : WordModel(std::move(vocabulary)), scores_(std::move(scores)), unknown_(unknown), bytes_(bytes) {
    double least = std::numeric_limits<double>::infinity();
    for (std::int32_t id = 0; id < this->vocabulary().end(); ++id) {
      const std::string_view token = *this->vocabulary().token(id);
      least = std::min(least, scores_[static_cast<std::size_t>(id)]);
      // Of equal tokens the last one counts.
      if (!token.empty()) trie_.add(token, id);
    }
    unknown_score_ = least - kUnknownPenalty;
  }

  Status append(std::string_view word, std::vector<std::int32_t>& ids) const override {
    WEFT_TRY(best, best_path(word));
    for (std::size_t begin = 0; begin < word.size();) {
      std::size_t end = best[begin].end;
      // Unknown characters in sequence become one token.
      if (best[begin].id == unknown_)
        while (end < word.size() && best[end].id == unknown_) end = best[end].end;
      WEFT_TRY_STATUS(append_piece(word.substr(begin, end - begin), ids));
      begin = end;
    }
    return {};
  }

 private:
  // The best token that ends (first pass) or begins (result) at a position.
  struct Step {
    std::optional<std::int32_t> id;
    double score = 0;
    std::size_t begin = SIZE_MAX, end = 0;
  };

  Result<std::vector<Step>> best_path(std::string_view word) const {
    std::vector<Step> steps(word.size() + 1);
    for (std::size_t begin = 0; begin < word.size();) {
      const double before = steps[begin].score;
      const std::size_t character = code_point_at(word, begin).length;
      bool covered = false;
      const auto offer = [&](std::size_t length, std::optional<std::int32_t> id, double score) {
        Step& step = steps[begin + length];
        if (step.begin != SIZE_MAX && score + before <= step.score) return;
        step = {.id = id, .score = score + before, .begin = begin};
      };
      trie_.visit_prefixes(word.substr(begin), [&](std::size_t length, std::int32_t id) {
        offer(length, id, scores_[static_cast<std::size_t>(id)]);
        covered = covered || length == character;
      });
      if (!covered) offer(character, unknown_, unknown_score_);
      begin += character;
    }
    for (std::size_t end = word.size(); end > 0; end = steps[end].begin) {
      const Step& step = steps[end];
      if (!step.id)
        return user_error(fmt::format("the tokenizer has no token for '{}' and no unk_id",
                                      formats::shown(word.substr(step.begin, end - step.begin))));
      steps[step.begin].end = end;
    }
    // Shift the ids from the ends of tokens to their begins, from left to right.
    std::vector<Step> path(word.size());
    for (std::size_t begin = 0; begin < word.size();) {
      const std::size_t end = steps[begin].end;
      path[begin] = {.id = steps[end].id, .begin = begin, .end = end};
      begin = end;
    }
    return path;
  }

  Status append_piece(std::string_view piece, std::vector<std::int32_t>& ids) const {
    if (const auto id = vocabulary().find(piece)) {
      ids.push_back(*id);
      return {};
    }
    if (bytes_ && append_bytes(piece, ids)) return {};
    if (!unknown_) return user_error("the tokenizer has no unk_id");
    ids.push_back(*unknown_);
    return {};
  }

  bool append_bytes(std::string_view piece, std::vector<std::int32_t>& ids) const {
    const std::size_t before = ids.size();
    for (const char byte : piece) {
      const auto id = vocabulary().byte_token(byte);
      if (!id) {
        ids.resize(before);
        return false;
      }
      ids.push_back(*id);
    }
    return true;
  }

  TokenTrie trie_;
  std::vector<double> scores_;
  std::optional<std::int32_t> unknown_;
  bool bytes_;  // unknown characters become the tokens of their bytes
  double unknown_score_ = 0;
};

}  // namespace

Result<std::unique_ptr<WordModel>> read_unigram(const formats::JsonNode& node) {
  WEFT_TRY(entries, node.list("vocab"));
  WEFT_TRY(bytes, truth_or(node, "byte_fallback", false));
  if (entries.empty() || entries.size() >= static_cast<std::size_t>(kMostTokens))
    return node.error(
        fmt::format("expected 1 to {} tokens in vocab, found {}", kMostTokens - 1, entries.size()));
  Vocabulary vocabulary;
  std::vector<double> scores;
  for (const formats::JsonNode& entry : entries) {
    const formats::Json& value = entry.value();
    if (!value.is_array() || value.size() != 2 || !value[0].is_string() || !value[1].is_number())
      return entry.error("expected a token and its score, such as [\"a\", -3.5]");
    vocabulary.add(value[0].get<std::string>(), static_cast<std::int32_t>(scores.size()));
    scores.push_back(as_tokenizers_reads(value[1].get<double>()));
  }
  std::optional<std::int32_t> unknown;
  if (node.sets("unk_id")) {
    WEFT_TRY(id, node.whole("unk_id", 0, static_cast<std::int32_t>(scores.size()) - 1));
    unknown = id;
  }
  return std::unique_ptr<WordModel>(
      std::make_unique<Unigram>(std::move(vocabulary), std::move(scores), unknown, bytes));
}

}  // namespace weft::text
