#include "weft/translate/recipe/model_form.h"

#include <algorithm>
#include <string>
#include <vector>

#include "weft/plan/ops/operators.h"

namespace weft::recipe {
namespace {

constexpr std::size_t kTopKCount = 2;  // its attribute

bool is_of_size(const plan::Type& type, std::int64_t size) {
  return std::ranges::any_of(type.dims, [&](const plan::Dim& dim) { return dim.size == size; });
}

}  // namespace

ModelForm model_form(const plan::Graph& graph, const distribute::IndexRoles& roles, const ModelShape& shape) {
  ModelForm form;
  if (shape.layers == 0) return form;
  std::int64_t inner_matrices = 0, vocabularies = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    const std::string_view op = node.op().name();
    form.rms_norm = form.rms_norm || op == "rms-norm";
    form.rotary = form.rotary || op == "rotary";
    if (op == "top-k" && shape.experts > 0)
      form.chosen_experts = std::max(form.chosen_experts, node.integer(kTopKCount));
    if (&node.op() != &ops::parameter()) continue;
    const plan::Type type = node.result_type(0);
    const bool has_hidden = is_of_size(type, shape.hidden);
    const bool has_positions = std::ranges::any_of(type.dims, [&](const plan::Dim& dim) {
      return std::ranges::count(roles.sequence, std::string(graph.text(dim.index))) > 0;
    });
    if (has_hidden && is_of_size(type, shape.inner) && type.dims.size() >= 2) ++inner_matrices;
    // A table of positions may have as many rows as the vocabulary.
    if (has_hidden && shape.words > 0 && is_of_size(type, shape.words) && type.dims.size() == 2 &&
        !has_positions)
      ++vocabularies;
    if (type.dims.size() == 1 && type.dims[0].size == shape.inner && shape.inner != shape.hidden)
      form.biases = true;
    form.learned_positions = form.learned_positions || has_positions;
    // wq[d, h, e] or wq[d, h, g, e]: the last index is the head's own.
    const std::int64_t groups = shape.key_heads > 0 ? shape.key_heads : shape.heads;
    if (type.dims.size() >= 3 && type.dims[0].size == shape.hidden && type.dims[1].size == groups)
      form.head_size = type.dims.back().size;
    // bq[h, e]
    if (type.dims.size() == 2 && !has_hidden && type.dims[0].size == groups && groups > 0)
      form.query_biases = true;
  }
  form.gated = inner_matrices >= 3 * shape.layers;
  form.tied_output = vocabularies < 2;
  return form;
}

Settings megatron_form_flags(const ModelForm& form, const ModelShape& shape) {
  Settings flags;
  const auto put = [&](std::string_view flag, std::string value = {}) {
    flags.push_back({std::string(flag), std::move(value)});
  };
  if (form.head_size > 0 && shape.heads > 0 && form.head_size * shape.heads != shape.hidden)
    put("kv-channels", std::to_string(form.head_size));
  put("normalization", form.rms_norm ? "RMSNorm" : "LayerNorm");
  put("position-embedding-type", form.rotary ? "rope" : form.learned_positions ? "learned_absolute" : "none");
  if (form.gated) put("swiglu");
  if (!form.biases) put("disable-bias-linear");
  if (!form.biases && form.query_biases) put("add-qkv-bias");
  if (!form.tied_output) put("untie-embeddings-and-output-weights");
  if (form.chosen_experts > 0) {
    put("moe-router-topk", std::to_string(form.chosen_experts));
    put("moe-token-dispatcher-type", "alltoall");
    put("moe-grouped-gemm");
  }
  return flags;
}

}  // namespace weft::recipe
