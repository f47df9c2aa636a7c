// weft/planner/target/find_target.h -- where ON says that a plan is to run.
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

// Without ON it is this machine, or, of what is only planned, what the setting `device` names. `at`: the statement.
enum class Intent : std::uint8_t { plan, run };
Result<Target> find_target(const language::Catalog& catalog,
                           const std::optional<language::syntax::Target>& on, const Settings& settings,
                           Intent intent, Span at);

// Whether ON asks for several ranks of this machine or of a job.
bool asks_for_ranks(const language::Catalog& catalog, const std::optional<language::syntax::Target>& on);

// The cluster or device that it names, LOCAL n as one of processors; LOCAL 1 without ON.
Result<cluster::Cluster> target_of(const language::Catalog& catalog,
                                   const std::optional<language::syntax::Target>& target);

// As ON names it.
language::syntax::Target named_target(std::string_view name, Span span);

// One of these devices by itself, which is not this machine.
cluster::Cluster one_of(const cluster::Device& device);

}  // namespace weft::planner
