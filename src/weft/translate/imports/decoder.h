// weft/translate/imports/decoder.h -- Llama-like decoders, with the options of each family.
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
  rms,          // x * gain
  rms_around,   // x * (1 + gain), gain initialized to 0
  mean,         // layer norm without parameters
  mean_around,  // layer norm, * (1 + gain) + bias, gain initialized to 0
};

// Properties that may differ between layers.
struct LayerKind {
  std::int64_t window = 0;  // attention window in tokens; 0: unlimited
  bool local = false;       // uses local_rotary
  bool operator==(const LayerKind&) const = default;
};

struct Decoder {
  std::int64_t features = 0, layers = 0, heads = 0, groups = 0, head_size = 0, inner = 0, words = 0,
               positions = 0;
  std::int64_t experts = 0, chosen = 0;
  bool experts_in_mlp = false;         // tensors are named mlp.experts, not block_sparse_moe.experts
  bool weights_sum_to_one = true;      // of the chosen experts; else those of a softmax over all experts
  bool gated = true, squared = false;  // the feed-forward: gate(x) * up(x), or up(x); its activation, squared
  std::string activation = {};
  double epsilon = 1e-6, range = 0.02, dropout = 0, residual_dropout = 0;
  bool tied = false, query_bias = false, output_bias = false, mlp_bias = false;
  NormKind norm = NormKind::rms;
  bool norm_before = true, norm_after = false;    // norms before and after attention and feed-forward
  bool norm_heads = false, norm_queries = false;  // QK norm: per head, or over all heads
  bool fused = false;                             // has qkv_proj and gate_up_proj
  bool scaled_embedding = false;                  // by sqrt(features)
  double score_size = 0;                          // scores are divided by its square root; 0: head_size
  double score_cap = 0, logit_cap = 0, clip = 0;  // 0: none
  Rotary rotary = {}, local_rotary = {};
  std::vector<LayerKind> kinds = {};  // one per layer

  const Rotary& rotary_of(const LayerKind& kind) const { return kind.local ? local_rotary : rotary; }
  std::int64_t text_words() const;
};

// Reads the fields of config.json. REQUIRES: the class has been checked.
Result<Decoder> read_decoder(Request& request, Head head, std::vector<std::string>& notes);

LayerText decoder_attention(const std::string& name, const Decoder& model, const LayerKind& kind);
LayerText decoder_mlp(const std::string& name, const Decoder& model);
LayerText decoder_experts(const std::string& name, const Decoder& model);
// "rms_norm(x, epsilon => 1e-06) OVER (PARTITION BY b, s) * gain"
std::string decoder_norm(const Decoder& model, std::string_view x, std::string_view gain,
                         std::string_view partition = "b, s");
// ", gain", or empty if the norm has no gain.
std::string norm_source(const Decoder& model, std::string_view gain);
void add_norm(LayerText& layer, const Decoder& model, const std::string& gain,
              std::vector<std::string> indices, const std::string& tensor);

}  // namespace weft::imports
