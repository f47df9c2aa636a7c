#include "weft/app/session/session.h"

#include <algorithm>
#include <new>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/session/measured_cluster.h"
#include "weft/app/session/state.h"
#include "weft/base/letters.h"
#include "weft/base/nearest.h"
#include "weft/base/thread_error.h"
#include "weft/language/bind.h"
#include "weft/language/complaint.h"
#include "weft/language/parser.h"
#include "weft/language/print.h"
#include "weft/planner/statement/prepare.h"

namespace weft::session {
namespace {

using language::syntax::Statement;
using language::syntax::StatementKind;

std::string done(Format format, std::string_view verb, std::string_view what, std::string_view name) {
  if (format == Format::json)
    return nlohmann::ordered_json{{verb, what}, {"name", name}}.dump(
               -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
           "\n";
  return fmt::format("{} {} {}\n", verb, what, name);
}

// CREATE, DROP, SET and HINT only confirm what they did.
bool only_confirms(const Statement& statement) {
  switch (statement.kind) {
    case StatementKind::create_device:
    case StatementKind::create_cluster:
    case StatementKind::create_stack:
    case StatementKind::create_function:
    case StatementKind::create_layer:
    case StatementKind::create_model:
    case StatementKind::drop:
    case StatementKind::set:
    case StatementKind::hint: return true;
    default: return false;
  }
}

std::pair<std::string_view, std::string_view> created(const Statement& statement) {
  switch (statement.kind) {
    case StatementKind::create_device:
      return {"device", statement.as<language::syntax::CreateDevice>().name.text};
    case StatementKind::create_cluster:
      return {"cluster", statement.as<language::syntax::CreateCluster>().name.text};
    case StatementKind::create_stack:
      return {"stack", statement.as<language::syntax::CreateStack>().name.text};
    case StatementKind::create_function:
      return {"function", statement.as<language::syntax::CreateFunction>().name.text};
    case StatementKind::create_layer:
      return {"layer", statement.as<language::syntax::CreateLayer>().name.text};
    case StatementKind::create_model:
      return {"model", statement.as<language::syntax::CreateModel>().name.text};
    default: {
      const auto& drop = statement.as<language::syntax::Drop>();
      constexpr std::string_view kObjects[] = {"device", "cluster", "function", "layer", "model", "stack"};
      return {kObjects[static_cast<std::size_t>(drop.object)], drop.name.text};
    }
  }
}

// Reports the progress of a plan search like that of other long tasks.
auto showing_search(const std::function<void(const explain::Progress&)>& show) {
  return [show](std::string_view model, const search::SearchProgress& now, double seconds) {
    explain::Progress progress;
    progress.model = model;
    progress.step = now.looked_at;
    progress.has_loss = false;
    progress.search = explain::SearchProgress{now.best_seconds, now.bound_seconds, seconds};
    show(progress);
  };
}

}  // namespace

Answer run_statement(Session::State& state, const Context& context, const Statement& statement) {
  using enum StatementKind;
  switch (statement.kind) {
    case create_device:
    case create_cluster:
    case create_stack:
    case create_function:
    case create_layer:
    case create_model:
    case drop: return run_create(state, context, statement);
    case explain: return run_explain(state, context, statement.as<language::syntax::Explain>());
    case set: return run_set(state, context, statement.as<language::syntax::Set>());
    case hint: return run_hint(state, context, statement.as<language::syntax::Hint>());
    case show: return run_show(state, context, statement.as<language::syntax::Show>());
    case StatementKind::clear: return run_clear(state, context, statement.as<language::syntax::Clear>());
    case describe: return run_describe(state, context, statement.as<language::syntax::Describe>());
    case save: return run_save(state, context, statement.as<language::syntax::Save>());
    case load: return run_load(state, context, statement.as<language::syntax::Load>());
    case run_file: return run_script(state, context, statement.as<language::syntax::RunFile>());
    case synthesize: return run_synthesize(state, statement.as<language::syntax::Synthesize>());
    case StatementKind::run: {
      const auto& task = statement.as<language::syntax::Run>();
      switch (task.task) {
        case language::syntax::Task::train: return run_train(state, context, task);
        case language::syntax::Task::infer: return run_infer(state, context, task);
        case language::syntax::Task::generate: return run_generate(state, context, task);
      }
    }
  }
  return user_error("unknown statement", {}, statement.span);
}

Answer run_create(Session::State& state, const Context& context, const Statement& statement) {
  language::BindOptions options;
  options.plan_limit = state.settings.plan_limit;
  options.interrupted = context.interrupted;
  const bool shadows = shadows_shipped(state.catalog, statement);
  WEFT_TRY_STATUS(define_object(state.catalog, context.source, statement, options));
  const auto [what, name] = created(statement);
  if (shadows) {
    if (statement.kind == StatementKind::create_model) {  // the shipped model's weights do not apply to it
      state.weights.erase(std::string(name));
      state.loaded.erase(std::string(name));
    }
    state.warnings.note(
        fmt::format("{} {} shadows the shipped {} of that name", what, name, what),
        fmt::format("shipped models keep using the shipped one; DROP {} {} restores it", upper(what), name));
  }
  return done(context.format, statement.kind == StatementKind::drop ? "dropped" : "created", what, name);
}

Answer run_set(Session::State& state, const Context& context, const language::syntax::Set& set) {
  Settings changed = state.settings;
  WEFT_TRY_STATUS(apply(changed, set.name, set.value));
  note_old_names(state, set.name.text, set.value);
  const std::string_view name = current_name(set.name.text);
  // Reports an unknown device now rather than at the next EXPLAIN.
  if (set.name.text == "device" && !changed.device.empty())
    WEFT_TRY_STATUS(target_of(state.catalog, named_target(changed.device, set.value.span)));
  state.settings = changed;
  std::string value;
  for (const SettingSpec& spec : setting_specs())
    if (spec.name == name) value = spec.show(state.settings);
  if (context.format == Format::json)
    return nlohmann::ordered_json{{"set", name}, {"value", value}}.dump() + "\n";
  return fmt::format("{} = {}\n", name, value);
}

// Stores a hint for the planner. The names in it must exist in the catalog, so that a typo is
// reported now.
Answer run_hint(Session::State& state, const Context& context, const language::syntax::Hint& hint) {
  std::vector<std::string_view> indices, tensors, axes = {"rank"};
  const auto add_body = [&](const language::syntax::Body& body) {
    for (const auto& size : body.sizes) indices.push_back(size.name.text);
    for (const auto& tensor : body.inputs) tensors.push_back(tensor.name.text);
    for (const auto& parameter : body.parameters) tensors.push_back(parameter.tensor.name.text);
    for (const auto& binding : body.query->bindings) tensors.push_back(binding.name.text);
  };
  for (const auto& [name, model] : state.catalog.models) add_body(model.statement->body);
  for (const auto& [name, layer] : state.catalog.layers) {
    add_body(layer.statement->body);
    for (const auto& tensor : layer.statement->arguments) {
      tensors.push_back(tensor.name.text);
      for (const auto& index : tensor.indices) indices.push_back(index.text);
    }
  }
  for (const auto& [name, cluster] : state.catalog.clusters)
    for (const cluster::Axis& axis : cluster.axes) axes.push_back(axis.name);
  const auto check = [](const language::syntax::Name& name, std::string_view what,
                        const std::vector<std::string_view>& known) -> Status {
    if (std::ranges::find(known, name.text) != known.end()) return {};
    std::string nearest = did_you_mean(name.text, known);
    if (nearest.empty())
      nearest = known.size() <= 8 ? fmt::format("there is {}", fmt::join(known, ", "))
                                  : "SHOW MODELS and SHOW CLUSTERS list them";
    return user_error(fmt::format("no {} is named {}", what, name.text), std::move(nearest), name.span);
  };
  std::vector<KeptHint> hints;
  for (const language::syntax::HintItem& item : hint.items) {
    if (item.kind >= language::syntax::HintKind::data) {
      if (item.axis.given()) WEFT_TRY_STATUS(check(item.axis, "mesh axis of a cluster", axes));
      if (std::ranges::find(hints, item.kind, &KeptHint::kind) != hints.end())
        return user_error("a degree of parallelism is given twice", "remove one of them", item.span);
      if (item.kind == language::syntax::HintKind::zero && item.degree.whole != 0 && item.degree.whole != 1 &&
          item.degree.whole != 3)
        return user_error(
            fmt::format("expected ZERO 0, 1 or 3, found {}", item.degree.whole),
            "ZERO 1 shards the optimizer, ZERO 3 parameters too; gradients follow the optimizer",
            item.degree.span);
      hints.push_back({item.kind,
                       {},
                       {},
                       std::string(item.axis.text),
                       language::print(item),
                       item.degree.whole,
                       item.within});
      continue;
    }
    const bool slice = item.kind == language::syntax::HintKind::slice;
    WEFT_TRY_STATUS(check(item.subject, slice ? "index of a model or layer" : "tensor of a model or layer",
                          slice ? indices : tensors));
    if (item.tensor.given()) WEFT_TRY_STATUS(check(item.tensor, "tensor of a model or layer", tensors));
    WEFT_TRY_STATUS(check(item.axis, "mesh axis of a cluster", axes));
    hints.push_back({item.kind, std::string(item.subject.text), std::string(item.tensor.text),
                     std::string(item.axis.text), language::print(item)});
  }
  state.hints = std::move(hints);
  if (context.format == Format::json) {
    nlohmann::ordered_json texts = nlohmann::ordered_json::array();
    for (const KeptHint& kept : state.hints) texts.push_back(kept.text);
    return nlohmann::ordered_json{{"hints", std::move(texts)}}.dump() + "\n";
  }
  return fmt::format("{} hint{} kept for the planner\n", state.hints.size(),
                     state.hints.size() == 1 ? "" : "s");
}

Session::Session() : state_(std::make_unique<State>()) { load_shipped(state_->catalog); }
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

bool Session::is_complete(std::string_view text) {
  return language::statement_end(text) != std::string_view::npos;
}

Result<const run::Weights*> Session::weights(std::string_view model) const {
  if (!state_->catalog.models.contains(model)) {
    std::vector<std::string_view> names;
    for (const auto& [name, known] : state_->catalog.models) names.push_back(name);
    std::string hint = did_you_mean(model, names);
    if (hint.empty()) hint = "SHOW MODELS lists them";
    return user_error(fmt::format("unknown model: {}", model), std::move(hint));
  }
  const auto found = state_->weights.find(std::string(model));
  if (found == state_->weights.end())
    return user_error(fmt::format("{} is not trained yet", model), "TRAIN it, or LOAD a checkpoint");
  return &found->second;
}

Reply Session::execute(std::string_view text) {
  Reply reply;
  const auto say = [&](std::string_view output) {
    if (on_output)
      on_output(output);
    else
      reply.output += output;
  };
  const auto fail = [&](const Error& error, std::string_view source) {
    reply.exit_code = state_->stopped              ? ExitCode::stopped
                      : error.fault == Fault::user ? ExitCode::user_error
                                                   : ExitCode::environment_error;
    reply.complaint =
        state_->warnings.take() +
        language::complain(error, error.text != nullptr ? std::string_view(*error.text) : source);
    reply.error = error;
    return reply;
  };
  try {
    auto source = language::parse_and_keep(text);
    if (!source.ok()) return fail(source.error(), text);
    bool answered = false, last_was_long = false, begun = false;
    const auto begin_answer = [&](std::string_view part) {
      if (!begun && answered) say("\n");
      begun = true;
      say(part);
    };
    const auto tell = [&](const Statement& statement, const std::string& answer) {
      if (answer.empty()) return;
      if (on_note && format == Format::text && only_confirms(statement)) return on_note(answer);
      // Separates answers by a blank line, except between one-line answers.
      const bool is_long = begun || std::ranges::count(answer, '\n') > 1;
      if (format == Format::text && answered && !begun && (is_long || last_was_long)) say("\n");
      say(answer);
      answered = true;
      last_was_long = is_long;
      begun = false;
    };
    state_->scripts.clear();
    state_->stopped = false;
    Context context;
    context.interrupted = interrupted;
    context.on_warning = on_warning;
    if (on_progress) context.on_search = showing_search(on_progress);
    context.format = format;
    context.with_report = with_report;
    context.width = width;
    context.source = *source;
    context.on_progress = on_progress;
    context.on_statement_end = on_statement_end;
    context.tell = tell;
    if (on_output && format == Format::text) context.on_text = begin_answer;
    context.terminated = terminated;
    context.on_training = on_training;
    context.goes_on = goes_on;
    for (const Statement* statement : (*source)->script.statements) {
      if (interrupted && interrupted()) return fail(user_error("interrupted"), text);
      state_->stopped = terminated && terminated();
      if (state_->stopped) return fail(user_error("stopped: the process received SIGTERM"), text);
      auto answer = run_statement(*state_, context, *statement);
      if (on_statement_end) on_statement_end();
      if (!answer.ok()) {
        if (begun) say("\n");
        return fail(answer.error(), text);
      }
      tell(*statement, *answer);
    }
    reply.complaint = state_->warnings.take();
  } catch (const InternalError& error) {
    reply.exit_code = ExitCode::internal_error;
    reply.complaint =
        fmt::format("internal error: {}\n  this is a bug in weft, not in your statement; please report it\n",
                    error.what());
    reply.error = environment_error(error.what());
  } catch (const std::bad_alloc&) {
    return fail(
        environment_error("out of memory", "use a smaller batch or model; ulimit -v limits memory, too"),
        text);
  } catch (const std::system_error& error) {
    return fail(thread_error(error), text);
  }
  return reply;
}

}  // namespace weft::session
