// weft/translate/runs/published_models.h -- the shapes of mixtures of experts that tables of runs name without them.
//
//   find_published_model("Qwen3_30B_a3B (tokendrop)")->expert_width is 768
//
// Tables state layers and widths, seldom the width of an expert or the ranks of latent attention. Each shape is the
// public config.json of the model.
#pragma once
#include <cstdint>
#include <string_view>

namespace weft::runs {

struct PublishedModel {
  std::string_view name;  // as plain() writes it; models whose name begins with it have this shape
  std::int64_t layers, hidden, heads, key_heads, head_size;
  std::int64_t experts, chosen, expert_width, vocabulary;
  // Layers with a dense feed-forward come first. Shared experts process every token.
  std::int64_t dense_layers = 0, dense_width = 0, shared_experts = 0;
  std::int64_t key_rank = 0,
               query_rank = 0;  // of latent attention; 0: none, and queries that are not compressed
  std::int64_t window = 0;      // of every other layer's attention; 0: none

  bool is_latent() const { return key_rank > 0; }
};

// Null if the name is of none.
const PublishedModel* find_published_model(std::string_view name);

}  // namespace weft::runs
