// weft/language/keyword.h -- the keywords of WeftQL, case-insensitive.
//
// A reserved word is never a plain name; quoted, "from" is one. Any other word is a keyword only
// where the grammar expects it, so an index may be called nodes or steps.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::language {

// Alphabetical within each half, like kSpellings.
enum class Keyword : std::uint8_t {
  none,
  // Reserved.
  kw_and,
  kw_as,
  kw_between,
  kw_by,
  kw_case,
  kw_create,
  kw_else,
  kw_end,
  kw_false,
  kw_from,
  kw_group,
  kw_inf,
  kw_init,
  kw_input,
  kw_join,
  kw_not,
  kw_of,
  kw_on,
  kw_or,
  kw_over,
  kw_parameter,
  kw_partition,
  kw_repeat,
  kw_select,
  kw_state,
  kw_then,
  kw_times,
  kw_true,
  kw_when,
  kw_where,
  kw_with,
  // Contextual keywords.
  kw_across,
  kw_analyze,
  kw_cast,
  kw_clear,
  kw_cluster,
  kw_describe,
  kw_device,
  kw_devices,
  kw_drop,
  kw_explain,
  kw_format,
  kw_function,
  kw_generate,
  kw_hint,
  kw_infer,
  kw_into,
  kw_layer,
  kw_link,
  kw_load,
  kw_local,
  kw_minimize,
  kw_model,
  kw_nodes,
  kw_oversubscribed,
  kw_prompt,
  kw_replace,
  kw_replicate,
  kw_run,
  kw_save,
  kw_scaling,
  kw_set,
  kw_shape,
  kw_show,
  kw_slice,
  kw_stack,
  kw_steps,
  kw_synthesize,
  kw_to,
  kw_train,
  kw_update,
  kw_verbose,
  kw_version,
  kw_within
};

// clang-format off
inline constexpr auto kSpellings = std::to_array<std::string_view>({
    "", "AND", "AS", "BETWEEN", "BY", "CASE", "CREATE", "ELSE", "END", "FALSE", "FROM", "GROUP", "INF",
    "INIT", "INPUT", "JOIN", "NOT", "OF", "ON", "OR", "OVER", "PARAMETER", "PARTITION", "REPEAT",
    "SELECT", "STATE", "THEN", "TIMES", "TRUE", "WHEN", "WHERE", "WITH", "ACROSS", "ANALYZE", "CAST",
    "CLEAR", "CLUSTER", "DESCRIBE", "DEVICE", "DEVICES", "DROP", "EXPLAIN", "FORMAT", "FUNCTION", "GENERATE", "HINT", "INFER",
    "INTO", "LAYER", "LINK", "LOAD", "LOCAL", "MINIMIZE", "MODEL", "NODES", "OVERSUBSCRIBED", "PROMPT", "REPLACE",
    "REPLICATE", "RUN", "SAVE", "SCALING", "SET", "SHAPE", "SHOW", "SLICE", "STACK", "STEPS", "SYNTHESIZE", "TO", "TRAIN",
    "UPDATE", "VERBOSE", "VERSION", "WITHIN"});
// clang-format on
static_assert(kSpellings.size() == static_cast<std::size_t>(Keyword::kw_within) + 1);

constexpr std::string_view spelling(Keyword keyword) { return kSpellings[static_cast<std::size_t>(keyword)]; }

constexpr bool is_reserved(Keyword keyword) {
  return keyword != Keyword::none && keyword <= Keyword::kw_with;
}

// The keyword that `word` spells, or none. `readable` is the number of readable bytes from its
// first letter on, if the caller knows; it makes the lookup faster.
Keyword find_keyword(std::string_view word, std::size_t readable = 0);

}  // namespace weft::language
