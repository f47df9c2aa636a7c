// weft/planner/target/find_target.h -- resolve the target of an ON clause.
#pragma once
#include <optional>
#include <string_view>

#include "weft/base/result.h"
#include "weft/language/catalog.h"
#include "weft/language/syntax.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/settings/settings.h"
#include "weft/planner/target/target.h"

namespace weft::planner {

// Without ON: this machine, or if the statement only plans, the setting `device`. `at`: the
// statement.
enum class Intent : std::uint8_t { plan, run };
Result<Target> find_target(const language::Catalog& catalog,
                           const std::optional<language::syntax::Target>& on, const Settings& settings,
                           Intent intent, Span at);

// Whether ON names several ranks of this machine or of a job.
bool asks_for_ranks(const language::Catalog& catalog, const std::optional<language::syntax::Target>& on);

// The named cluster or device; LOCAL n as a cluster of n processors; LOCAL 1 without ON.
Result<cluster::Cluster> target_of(const language::Catalog& catalog,
                                   const std::optional<language::syntax::Target>& target);

// The syntax of ON with this name.
language::syntax::Target named_target(std::string_view name, Span span);

// A cluster of one such device, which is not this machine.
cluster::Cluster one_of(const cluster::Device& device);

}  // namespace weft::planner
