// weft/translate/imports/parallel_block.h -- transformer blocks of GPT-NeoX and Falcon.
//
// Attention and feed-forward are parallel (both read x) or sequential. Queries, keys and values
// come from one map.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/translate/imports/architectures.h"
#include "weft/translate/imports/heads.h"
#include "weft/translate/imports/rotary.h"

namespace weft::imports {

struct ParallelModel {
  std::int64_t features = 0, layers = 0, heads = 0, groups = 1, head_size = 0, inner = 0, words = 0,
               positions = 0;
  std::string activation = {};
  double epsilon = 1e-5, range = 0.02;
  double attention_dropout = 0;  // on attention probabilities
  double first_dropout = 0;      // on attention's output
  double second_dropout = 0;     // on the feed-forward's output, or on the sum if `added_first`
  double embedding_dropout = 0;
  bool attention_bias = false, mlp_bias = false, tied = false;
  bool parallel = true, added_first = false;
  bool two_norms = true;  // the feed-forward has its own norm
  bool alibi = false;     // ALiBi slopes instead of rotary positions
  Rotary rotary = {};
  // Names of tensors.
  std::string prefix = {}, attention = {}, first_norm = {}, second_norm = {}, embedding = {}, last_norm = {};

  std::int64_t text_words() const;
};

Result<Imported> parallel_model(Request& request, const ParallelModel& model, HeadClass head,
                                const Task& task, const std::string& title, std::vector<std::string> notes);

}  // namespace weft::imports
