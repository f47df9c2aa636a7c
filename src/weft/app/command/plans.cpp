#include "weft/app/command/plans.h"

#include <chrono>
#include <functional>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/plan_with_layouts.h"
#include "weft/app/explain/lines.h"
#include "weft/app/session/command_catalog.h"
#include "weft/app/session/reply.h"
#include "weft/app/session/state.h"
#include "weft/base/units.h"
#include "weft/language/print.h"
#include "weft/parallel/distribute/delayed.h"
#include "weft/parallel/distribute/local_steps.h"
#include "weft/parallel/distribute/without_codecs.h"
#include "weft/parallel/pipeline/prove_pipelined.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/communication.h"
#include "weft/planner/proof/prove_plan.h"
#include "weft/planner/statement/prepare.h"
#include "weft/planner/step/plan_for.h"
#include "weft/planner/step/plan_pipeline.h"
#include "weft/planner/step/plan_step.h"
#include "weft/planner/step/written_plan.h"

namespace weft::command {
namespace {

using language::syntax::StatementKind;
using Json = nlohmann::ordered_json;

// Executes a script's definitions and settings, and passes each TRAIN and INFER to `take` instead
// of running it.
Status for_each_run(
    const std::string& text,
    const std::function<Status(const session::Session::State&, const language::syntax::Run&)>& take) {
  auto source = language::parse_and_keep(text);
  if (!source.ok()) return session::in_text(text, std::move(source).error());
  session::Session::State state;
  session::load_known(state.catalog);
  session::Context context;
  context.source = *source;
  const auto one = [&](const language::syntax::Statement& statement) -> Status {
    switch (statement.kind) {
      case StatementKind::run_file:
        return user_error("RUN is not supported here", "pass the file itself to weft plan", statement.span);
      case StatementKind::run: return take(state, statement.as<language::syntax::Run>());
      case StatementKind::explain: return take(state, *statement.as<language::syntax::Explain>().run);
      case StatementKind::set:
        WEFT_TRY_STATUS(session::run_set(state, context, statement.as<language::syntax::Set>()));
        return {};
      case StatementKind::hint:
        WEFT_TRY_STATUS(session::run_hint(state, context, statement.as<language::syntax::Hint>()));
        return {};
      case StatementKind::create_device:
      case StatementKind::create_cluster:
      case StatementKind::create_stack:
      case StatementKind::create_function:
      case StatementKind::create_layer:
      case StatementKind::create_model:
      case StatementKind::drop: WEFT_TRY_STATUS(session::run_create(state, context, statement)); return {};
      default: return {};
    }
  };
  for (const language::syntax::Statement* statement : (*source)->script.statements)
    if (Status status = one(*statement); !status.ok())
      return session::in_text(text, std::move(status).error());
  return {};
}

struct PlanVerdict {
  std::string of;            // "TRAIN char_gpt ON LOCAL 4" or the file
  std::string distribution;  // if the plan was found by a search
  planner::SmallProof proof;
};

std::string describe_verdict(const PlanVerdict& verdict, const PlanProve& request) {
  if (request.format == session::Format::json) {
    Json json = {{"plan", verdict.of}};
    if (!verdict.distribution.empty()) json["distribution"] = verdict.distribution;
    json.update({{"proven", verdict.proof.proof.is_proven()},
                 {"sizes", verdict.proof.sizes},
                 {"elements", verdict.proof.proof.elements},
                 {"seconds", verdict.proof.seconds}});
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return fmt::format("{}\n{}{}", verdict.of, verdict.distribution, verdict.distribution.empty() ? "" : "\n") +
         explain::wrap(fmt::format("{}, in {}", verdict.proof.text(), print_seconds(verdict.proof.seconds)),
                       request.width);
}

Result<PlanVerdict> judged(PlanVerdict verdict) {
  const distribute::PlanProof& proof = verdict.proof.proof;
  if (proof.is_proven()) return verdict;
  return user_error(fmt::format("{} is {}", verdict.of, verdict.proof.text()),
                    proof.holds()
                        ? "a proof needs values for which each condition holds, and for which it fails"
                        : "this is the first node whose value differs; its inputs are correct");
}

Result<PlanVerdict> prove_found(const session::Session::State& state, const language::syntax::Run& run) {
  WEFT_TRY(prepared, planner::prepare(state, run, planner::Purpose::plan));
  WEFT_TRY(in_time, planner::requested_pipeline(prepared.settings, prepared.run->span));
  if (prepared.ranks < 2 && !in_time)
    return user_error("a single-device plan has nothing to compare with",
                      "name a cluster: ON pod or ON LOCAL 4", run.span);
  WEFT_TRY(choice, planner::plan_to_run(state, nullptr, prepared));
  WEFT_TRY(proof, planner::prove_plan(state, prepared, prepared.plan.graph, choice));
  return judged({language::print(run), distribute::print(choice.spread->distribution), std::move(proof)});
}

Result<planner::SmallProof> prove_as_it_is(const plan::Graph& one_device,
                                           const distribute::DistributedPlan& plan) {
  if (!distribute::find_delayed(plan.graph).empty()) {
    WEFT_TRY(at_once, distribute::without_delay(plan));
    WEFT_TRY(proof, prove_as_it_is(one_device, at_once));
    proof.but_for_delay = true;
    return proof;
  }
  if (distribute::has_codecs(plan.graph)) {
    WEFT_TRY(exact, distribute::without_codecs(plan));
    WEFT_TRY(proof, prove_as_it_is(one_device, exact));
    proof.up_to_codecs = true;
    return proof;
  }
  const auto began = std::chrono::steady_clock::now();
  WEFT_TRY(proof, distribute::prove(one_device, plan));
  planner::SmallProof small{std::move(proof), fmt::format("its own sizes on {}", print(plan.mesh)),
                            std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()};
  small.steps_between_averages = distribute::steps_between_sums(plan.graph);
  return small;
}

// Proves the plan that every rank runs, stages included, over the finite field.
Result<planner::SmallProof> prove_stages_as_they_are(const plan::Graph& one_device,
                                                     const distribute::DistributedPlan& plan) {
  if (distribute::has_codecs(plan.graph)) {
    WEFT_TRY(exact, distribute::without_codecs(plan));
    WEFT_TRY(proof, prove_stages_as_they_are(one_device, exact));
    proof.up_to_codecs = true;
    return proof;
  }
  const auto began = std::chrono::steady_clock::now();
  WEFT_TRY(proof, pipeline::prove_pipelined(one_device, plan));
  planner::SmallProof small{std::move(proof),
                            fmt::format("its own sizes on {}", distribute::print(plan.time->distribution)),
                            std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()};
  small.in_time = true;
  return small;
}

Result<PlanVerdict> prove_written(const std::string& name, const std::string& text,
                                  const PlanProve& request) {
  const planner::PlanHead head = planner::read_head(text);
  WEFT_TRY(mesh, mesh_of(request.mesh, head));
  std::string model = head.model;
  if (!request.model.empty()) {
    WEFT_TRY(given, given_text(request.model));
    model = std::move(given);
  }
  if (model.empty())
    return user_error("the plan does not name its model",
                      "--model \"TRAIN char_gpt WITH (b = 4)\", or a script that ends in such a statement");
  std::optional<Result<PlanVerdict>> verdict;
  const auto prove = [&](const session::Session::State& state, const language::syntax::Run& run) -> Status {
    WEFT_TRY(prepared, planner::prepare(state, run, planner::Purpose::plan));
    const plan::Graph& one_device = prepared.plan.graph;
    WEFT_TRY(in_time, planner::requested_pipeline(prepared.settings, prepared.run->span));
    auto written = planner::read_written(text, mesh, one_device, in_time);
    if (!written.ok()) {
      verdict = session::in_text(text, std::move(written).error());
      return {};
    }
    auto proof = !planner::is_small(one_device, written->whole_mesh())
                     ? planner::prove_written_plan(state, prepared, *written)
                 : in_time ? prove_stages_as_they_are(one_device, *written)
                           : prove_as_it_is(one_device, *written);
    if (!proof.ok()) return std::move(proof).error();
    verdict = judged({name, {}, std::move(*proof)});
    return {};
  };
  WEFT_TRY_STATUS(for_each_run(model, prove));
  if (!verdict) return user_error("the model's script has no TRAIN and no INFER", "end it with: TRAIN m");
  return std::move(*verdict);
}

}  // namespace

session::Reply run(const PlanProve& request) {
  session::Reply reply;
  const auto say = [&](PlanVerdict verdict) { reply.output += describe_verdict(verdict, request); };
  const auto prove = [&](const std::string& what) -> Status {
    WEFT_TRY(text, given_text(what));
    if (planner::is_plan_text(text)) {
      WEFT_TRY(verdict, prove_written(what, text, request));
      say(std::move(verdict));
      return {};
    }
    bool found = false;
    WEFT_TRY_STATUS(for_each_run(
        text, [&](const session::Session::State& state, const language::syntax::Run& run) -> Status {
          WEFT_TRY(verdict, prove_found(state, run));
          say(std::move(verdict));
          found = true;
          return {};
        }));
    if (!found)
      return user_error(fmt::format("nothing to prove in {}", what), "it has no TRAIN and no INFER");
    return {};
  };
  for (const std::string& what : request.what) {
    const Status proven = prove(what);
    if (proven.ok()) continue;
    session::Reply failed = session::complain(proven.error());
    failed.output = std::move(reply.output);
    return failed;
  }
  return reply;
}

session::Reply run(const PlanShow& request) {
  const auto show = [&]() -> Result<std::string> {
    WEFT_TRY(written, read_plan_with_layouts(request.file, request.mesh));
    std::string shown;
    auto nodes = nlohmann::ordered_json::array();
    for (std::size_t n = 0; n < written.graph.node_count(); ++n) {
      const plan::NodeView node = written.graph.view(plan::NodeId(n));
      const bool communicates = ops::find_communication(node.op()) != nullptr;
      const std::string text = plan::print(written.graph, node.id()),
                        layout = print(written.layouts[node.result(0).value], written.mesh,
                                       written.graph.symbols());
      shown += fmt::format("{} {:<70} {}\n", communicates ? '*' : ' ', text, layout);
      nodes.push_back({{"node", text}, {"layout", layout}, {"communicates", communicates}});
    }
    if (request.format == session::Format::json)
      return nlohmann::ordered_json{{"nodes", std::move(nodes)}}.dump(
                 -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
             "\n";
    return shown;
  };
  return session::to_reply(show());
}

}  // namespace weft::command
