// weft/translate/imports/decoder.h -- Llama and its kin as one description: a family is what its class does otherwise.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/translate/imports/architectures.h"
#include "weft/translate/imports/heads.h"
#include "weft/translate/imports/rotary.h"

namespace weft::imports {

enum class NormKind : std::uint8_t {
  rms,         // times a gain
  rms_around,  // times 1 + gain, which begins at 0
  mean,        // a layer norm without parameters
};

// What layers may differ in.
struct LayerKind {
  std::int64_t window = 0;  // of tokens that are seen; 0: all
  bool local = false;       // turns by the second angles
  bool operator==(const LayerKind&) const = default;
};

struct Decoder {
  std::int64_t features = 0, layers = 0, heads = 0, groups = 0, head_size = 0, inner = 0, words = 0,
               positions = 0;
  std::int64_t experts = 0, chosen = 0;
  std::string activation = {};
  double epsilon = 1e-6, range = 0.02, dropout = 0, residual_dropout = 0;
  bool tied = false, query_bias = false, output_bias = false, mlp_bias = false;
  NormKind norm = NormKind::rms;
  bool norm_before = true, norm_after = false;    // of attention and of the feed-forward
  bool norm_heads = false, norm_queries = false;  // queries and keys: each head's, or all heads at once
  bool fused = false;                             // qkv_proj and gate_up_proj
  bool scaled_embedding = false;                  // by the root of the features
  double score_size = 0;                          // scores are divided by its root; 0: the head's size
  double score_cap = 0, logit_cap = 0, clip = 0;  // 0: none
  Rotary rotary = {}, local_rotary = {};
  std::vector<LayerKind> kinds = {};  // of each layer

  const Rotary& rotary_of(const LayerKind& kind) const { return kind.local ? local_rotary : rotary; }
  std::int64_t text_words() const;
};

// Of the fields; the class is checked already.
Result<Decoder> read_decoder(Request& request, Head head, std::vector<std::string>& notes);

LayerText decoder_attention(const std::string& name, const Decoder& model, const LayerKind& kind);
LayerText decoder_mlp(const std::string& name, const Decoder& model);
LayerText decoder_experts(const std::string& name, const Decoder& model);
// "rms_norm(x, epsilon => 1e-06) OVER (PARTITION BY b, s) * gain"
std::string decoder_norm(const Decoder& model, std::string_view x, std::string_view gain,
                         std::string_view partition = "b, s");
// ", gain", or nothing where the norm has none.
std::string norm_source(const Decoder& model, std::string_view gain);
void add_norm(LayerText& layer, const Decoder& model, const std::string& gain,
              std::vector<std::string> indices, const std::string& tensor);

}  // namespace weft::imports
