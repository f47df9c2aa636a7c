// weft/planner/target/find_target.h -- what ON names.
#pragma once
#include <optional>
#include <string_view>

#include "weft/base/result.h"
#include "weft/language/catalog.h"
#include "weft/language/syntax.h"
#include "weft/plan/cluster/cluster.h"

namespace weft::planner {

// The cluster or device a statement is ON; LOCAL 1 without ON.
Result<cluster::Cluster> target_of(const language::Catalog& catalog,
                                   const std::optional<language::syntax::Target>& target);

// As ON names it.
language::syntax::Target named_target(std::string_view name, Span span);

// One of these devices by itself, which is not this machine.
cluster::Cluster one_of(const cluster::Device& device);

}  // namespace weft::planner
