// WordPiece, the model of BERT: the longest token that begins the rest of the word, again and again.
// WordLevel, which has whole words only.
#include <fmt/format.h>

#include "weft/text/code_points.h"
#include "weft/text/tokenizer_json.h"
#include "weft/text/word_model.h"

namespace weft::text {
namespace {

Error unknown_missing(const formats::JsonNode& node, std::string_view token) {
  return node.error(fmt::format("unk_token '{}' is not in the vocabulary", token));
}

class WordPiece final : public WordModel {
 public:
  WordPiece(Vocabulary vocabulary, std::int32_t unknown, std::string prefix, std::uint64_t most)
      : WordModel(std::move(vocabulary)), unknown_(unknown), prefix_(std::move(prefix)), most_(most) {}

  Status append(std::string_view word, std::vector<std::int32_t>& ids) const override {
    const std::size_t before = ids.size();
    if (count_code_points(word) > most_ || !append_pieces(word, ids)) {
      ids.resize(before);
      ids.push_back(unknown_);
    }
    return {};
  }

 private:
  bool append_pieces(std::string_view word, std::vector<std::int32_t>& ids) const {
    std::string with_prefix;
    for (std::size_t begin = 0; begin < word.size();) {
      std::size_t end = word.size();
      std::optional<std::int32_t> id;
      for (; end > begin; end -= code_point_before(word, end).length) {
        with_prefix = begin == 0 ? "" : prefix_;
        with_prefix += word.substr(begin, end - begin);
        if ((id = vocabulary().find(with_prefix))) break;
      }
      if (!id) return false;
      ids.push_back(*id);
      begin = end;
    }
    return true;
  }

  std::int32_t unknown_;
  std::string prefix_;
  std::uint64_t most_;  // longer words, in code points, are unknown
};

class WordLevel final : public WordModel {
 public:
  WordLevel(Vocabulary vocabulary, std::int32_t unknown)
      : WordModel(std::move(vocabulary)), unknown_(unknown) {}

  Status append(std::string_view word, std::vector<std::int32_t>& ids) const override {
    ids.push_back(vocabulary().find(word).value_or(unknown_));
    return {};
  }

 private:
  std::int32_t unknown_;
};

}  // namespace

Result<std::unique_ptr<WordModel>> read_word_piece(const formats::JsonNode& node) {
  WEFT_TRY(vocabulary_node, node.at("vocab"));
  WEFT_TRY(vocabulary, Vocabulary::read(vocabulary_node));
  WEFT_TRY(unknown, text_or(node, "unk_token", "[UNK]"));
  WEFT_TRY(prefix, text_or(node, "continuing_subword_prefix", "##"));
  WEFT_TRY(most, node.size("max_input_chars_per_word", 100));
  const auto id = vocabulary.find(unknown);
  if (!id) return unknown_missing(node, unknown);
  return std::unique_ptr<WordModel>(
      std::make_unique<WordPiece>(std::move(vocabulary), *id, std::move(prefix), most));
}

Result<std::unique_ptr<WordModel>> read_word_level(const formats::JsonNode& node) {
  WEFT_TRY(vocabulary_node, node.at("vocab"));
  WEFT_TRY(vocabulary, Vocabulary::read(vocabulary_node));
  WEFT_TRY(unknown, text_or(node, "unk_token", "<unk>"));
  const auto id = vocabulary.find(unknown);
  if (!id) return unknown_missing(node, unknown);
  return std::unique_ptr<WordModel>(std::make_unique<WordLevel>(std::move(vocabulary), *id));
}

}  // namespace weft::text
