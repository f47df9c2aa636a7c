// weft/text/word_model.h -- the models that turn a word into ids.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/json_node.h"
#include "weft/text/vocabulary.h"

namespace weft::text {

class WordModel {
 public:
  virtual ~WordModel() = default;

  // Appends the ids of the word, which is not empty.
  virtual Status append(std::string_view word, std::vector<std::int32_t>& ids) const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  explicit WordModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

 private:
  Vocabulary vocabulary_;
};

// Reads the value of "model".
Result<std::unique_ptr<WordModel>> read_word_model(const formats::JsonNode& node);

Result<std::unique_ptr<WordModel>> read_bpe(const formats::JsonNode& node);
Result<std::unique_ptr<WordModel>> read_unigram(const formats::JsonNode& node);
Result<std::unique_ptr<WordModel>> read_word_piece(const formats::JsonNode& node);
Result<std::unique_ptr<WordModel>> read_word_level(const formats::JsonNode& node);

}  // namespace weft::text
