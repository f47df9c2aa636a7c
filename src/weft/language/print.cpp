#include "weft/language/print.h"

#include <array>

#include <fmt/format.h>

#include "weft/language/keyword.h"
#include "weft/language/printer.h"

namespace weft::language {

using namespace syntax;

namespace {

constexpr std::size_t kWidth = 100;  // maximum columns per line

constexpr auto kObjects =
    std::to_array<std::string_view>({"DEVICE", "CLUSTER", "FUNCTION", "LAYER", "MODEL", "STACK"});
constexpr auto kFormats =
    std::to_array<std::string_view>({"text", "json", "plan", "megatron", "deepspeed", "torchtitan", "nemo",
                                     "bridge", "accelerate", "maxtext", "torch", "torchtitan_toml"});

// An EXPLAIN option with the name of a built-in one must be quoted.
bool is_builtin_option(std::string_view name) {
  const Keyword keyword = find_keyword(name);
  return keyword == Keyword::kw_analyze || keyword == Keyword::kw_verbose || keyword == Keyword::kw_format;
}

}  // namespace

bool Printer::fits(std::string_view text, std::size_t more) const {
  const std::size_t newline = out_.rfind('\n');
  const std::size_t column = newline == out_.npos ? out_.size() : out_.size() - newline - 1;
  return column + text.size() + more <= kWidth;
}

void Printer::lay_out(const Statement& statement) {
  switch (statement.kind) {
    case StatementKind::create_device: {
      const auto& device = statement.as<CreateDevice>();
      create("DEVICE", device.replace, device.name);
      out_ += " (";
      fill(device.settings, 2);
      out_ += ')';
      break;
    }
    case StatementKind::create_stack: {
      const auto& stack = statement.as<CreateStack>();
      create("STACK", stack.replace, stack.name);
      if (stack.version) {
        out_ += " VERSION ";
        write_string(stack.version->text);
      }
      out_ += " (";
      fill(stack.settings, 2);
      out_ += ')';
      break;
    }
    case StatementKind::create_cluster: {
      const auto& cluster = statement.as<CreateCluster>();
      create("CLUSTER", cluster.replace, cluster.name);
      for (std::size_t i = 0; i < cluster.logs.size(); ++i) {
        out_ += i == 0 ? " FROM " : ", ";
        write_string(cluster.logs[i].text);
      }
      if (cluster.device.given()) {
        out_ += fmt::format(" AS\n  {} NODES OF {} DEVICES ", cluster.nodes.whole, cluster.devices.whole);
        write(cluster.device);
      }
      for (const NodesOf& more : cluster.more) {
        out_ += fmt::format(",\n  {} NODES OF {} DEVICES ", more.nodes.whole, more.devices.whole);
        write(more.device);
      }
      for (const Link& link : cluster.links) write(link);
      break;
    }
    case StatementKind::create_function: {
      const auto& function = statement.as<CreateFunction>();
      create("FUNCTION", function.replace, function.name);
      out_ += '(';
      list(function.parameters);
      out_ += ") AS";
      const std::string body = flat(*function.body);
      if (fits(body, 2))
        out_ += ' ';
      else
        start_line(2);
      out_ += body;
      break;
    }
    case StatementKind::create_layer: {
      const auto& layer = statement.as<CreateLayer>();
      create("LAYER", layer.replace, layer.name);
      out_ += '(';
      fill(layer.arguments, 4);
      out_ += ')';
      lay_out(layer.body);
      break;
    }
    case StatementKind::create_model: {
      const auto& model = statement.as<CreateModel>();
      create("MODEL", model.replace, model.name);
      lay_out(model.body);
      break;
    }
    case StatementKind::drop: {
      const auto& drop = statement.as<Drop>();
      out_ += fmt::format("DROP {} {}", kObjects[static_cast<std::size_t>(drop.object)],
                          print_name(drop.name.text));
      break;
    }
    case StatementKind::explain: write(statement.as<Explain>()); break;
    case StatementKind::run: write(statement.as<Run>()); break;
    case StatementKind::set: {
      const auto& set = statement.as<Set>();
      out_ += "SET ";
      write(Setting{set.name, set.value});
      break;
    }
    case StatementKind::hint:
      out_ += "HINT ";
      fill(statement.as<Hint>().items, 2);
      break;
    case StatementKind::show:
      out_ += "SHOW ";
      write(statement.as<Show>().what);
      break;
    case StatementKind::clear:
      out_ += "CLEAR ";
      write(statement.as<Clear>().what);
      break;
    case StatementKind::describe: {
      const auto& describe = statement.as<Describe>();
      out_ += "DESCRIBE ";
      write(describe.name);
      write_with(describe.settings);
      break;
    }
    case StatementKind::save: {
      const auto& save = statement.as<Save>();
      out_ += fmt::format("SAVE {} TO ", print_name(save.name.text));
      write_string(save.file.text);
      break;
    }
    case StatementKind::load: {
      const auto& load = statement.as<Load>();
      out_ += fmt::format("LOAD {} FROM ", print_name(load.name.text));
      write_string(load.file.text);
      break;
    }
    case StatementKind::run_file:
      out_ += "RUN ";
      write_string(statement.as<RunFile>().file.text);
      break;
    case StatementKind::synthesize: {
      const auto& synthesize = statement.as<Synthesize>();
      out_ += fmt::format("SYNTHESIZE {} ON {}", print_name(synthesize.collective.text),
                          print_name(synthesize.cluster.text));
      write_with(synthesize.settings);
      break;
    }
  }
}

void Printer::create(std::string_view what, bool replace, const Name& name) {
  out_ += fmt::format("CREATE {}{} {}", replace ? "OR REPLACE " : "", what, print_name(name.text));
}

void Printer::write(const Link& link) {
  out_ += fmt::format("\n  LINK {} {} {} (", print_name(link.name.text),
                      link.kind == LinkKind::within ? "WITHIN" : "ACROSS", print_name(link.level.text));
  write(link.bandwidth);
  out_ += ", ";
  write(link.latency);
  out_ += ')';
  if (link.shape.given()) {
    out_ += " SHAPE ";
    write(link.shape);
    if (!link.sides.empty()) {
      out_ += '(';
      list(link.sides);
      out_ += ')';
    }
  }
  if (link.oversubscribed) {
    out_ += " OVERSUBSCRIBED ";
    write(*link.oversubscribed);
  }
  for (const LinkShare& share : link.scaling) {
    out_ += &share == link.scaling.data() ? " SCALING (" : ", ";
    write(share.nodes);
    out_ += " NODES ";
    write(share.share);
  }
  if (!link.scaling.empty()) out_ += ')';
}

void Printer::lay_out(const Body& body) {
  if (!body.sizes.empty()) {
    out_ += "\n  (";
    fill(body.sizes, 3);
    out_ += ')';
  }
  constexpr std::size_t kColumn = 12;  // after "  PARAMETER "
  if (!body.inputs.empty()) {
    out_ += "\n  INPUT     ";
    fill(body.inputs, kColumn);
  }
  for (std::size_t first = 0, last; first < body.parameters.size(); first = last) {
    const ParameterKind kind = body.parameters[first].kind;
    for (last = first; last < body.parameters.size() && body.parameters[last].kind == kind;) ++last;
    out_ += kind == ParameterKind::parameter ? "\n  PARAMETER " : "\n  STATE     ";
    fill(body.parameters.subspan(first, last - first), kColumn);
  }
  out_ += "\nAS ";
  lay_out(*body.query, 0);
  for (const Binding& update : body.updates) {
    out_ += &update == body.updates.data() ? "\nUPDATE" : ",";
    start_line(2);
    lay_out(update, 2, 0);
  }
}

void Printer::write(const Tensor& tensor) {
  write(tensor.name);
  if (!tensor.indices.empty()) {
    out_ += '[';
    list(tensor.indices);
    out_ += ']';
  }
  if (!tensor.dtype.given()) return;
  out_ += " OF ";
  write(tensor.dtype);
}

void Printer::write(const Size& size) {
  write(size.name);
  if (!size.value) return;
  out_ += " = ";
  write(*size.value);
}

void Printer::write(const Parameter& parameter) {
  write(parameter.tensor);
  if (!parameter.init) return;
  out_ += " INIT ";
  write(parameter.init->name);
  if (parameter.init->arguments.empty()) return;
  out_ += '(';
  list(parameter.init->arguments);
  out_ += ')';
}

void Printer::write(const HintItem& item) {
  if (item.kind >= HintKind::data) {
    const auto kind = static_cast<std::size_t>(item.kind) - static_cast<std::size_t>(HintKind::data);
    out_ += fmt::format("{} {}", syntax::kParallelisms[kind], item.degree.whole);
    if (!item.axis.given()) return;
    out_ += item.within ? " WITHIN " : " ON ";
    return write(item.axis);
  }
  out_ += item.kind == HintKind::slice ? "SLICE " : "REPLICATE ";
  write(item.subject);
  if (item.tensor.given()) {
    out_ += " OF ";
    write(item.tensor);
  }
  out_ += " ACROSS ";
  write(item.axis);
}

void Printer::write(const Run& run) {
  constexpr auto kTasks = std::to_array<std::string_view>({"TRAIN ", "INFER ", "GENERATE "});
  out_ += kTasks[static_cast<std::size_t>(run.task)];
  write(run.model);
  if (run.target) {
    out_ += " ON ";
    const std::string_view cluster = run.target->cluster.text;
    // A cluster may be named "local", in quotes.
    if (run.target->local)
      out_ += "LOCAL";
    else if (find_keyword(cluster) == Keyword::kw_local)
      out_ += fmt::format("\"{}\"", cluster);
    else
      write(run.target->cluster);
    if (run.target->ranks)
      out_ += fmt::format("{} {}", run.target->local ? "" : " RANKS", run.target->ranks->whole);
  }
  for (std::size_t i = 0; i < run.data.size(); ++i) {
    out_ += i == 0 ? " FROM " : ", ";
    if (run.data[i].input.given()) {
      write(run.data[i].input);
      out_ += " = ";
    }
    write_string(run.data[i].file.text);
  }
  if (run.prompt) {
    out_ += " PROMPT ";
    write_string(run.prompt->text);
  }
  if (run.steps) out_ += fmt::format(" STEPS {}", run.steps->whole);
  if (!run.goals.empty()) {
    out_ += " MINIMIZE ";
    list(run.goals);
  }
  if (run.into) {
    out_ += " INTO ";
    write_string(run.into->text);
  }
  write_with(run.settings);
}

void Printer::write(const Goal& goal) {
  write(goal.loss);
  if (!goal.over.empty()) {
    out_ += " OVER (";
    list(goal.over);
    out_ += ')';
  }
  if (!goal.optimizer.given()) return;
  out_ += " BY ";
  write(goal.optimizer);
  if (goal.options.empty()) return;
  out_ += '(';
  list(goal.options);
  out_ += ')';
}

void Printer::write(const Explain& explain) {
  out_ += "EXPLAIN ";
  if (explain.analyze) out_ += "ANALYZE ";
  if (explain.verbose) out_ += "VERBOSE ";
  std::string options;
  if (explain.format != Format::text)
    options = fmt::format("FORMAT {}", kFormats[static_cast<std::size_t>(explain.format)]);
  for (const Option& option : explain.options) {
    const std::string_view name = option.name.text;
    if (!options.empty()) options += ", ";
    options += is_builtin_option(name) ? fmt::format("\"{}\"", name) : print_name(name);
    if (option.value) options += ' ' + flat(*option.value);
  }
  if (!options.empty()) out_ += fmt::format("({}) ", options);
  write(*explain.run);
}

void Printer::write_with(std::span<const Setting> settings) {
  if (settings.empty()) return;
  out_ += " WITH (";
  fill(settings, 2);
  out_ += ')';
}

std::string print(const Statement& statement, Parentheses parentheses) {
  Printer printer(parentheses);
  printer.lay_out(statement);
  return std::move(printer).take();
}

std::string print(const Script& script, Parentheses parentheses) {
  std::string result;
  bool was_long = false;
  for (const Statement* statement : script.statements) {
    const std::string text = print(*statement, parentheses);
    const bool is_long = text.find('\n') != text.npos;
    if (!result.empty() && (was_long || is_long)) result += '\n';
    result += text;
    result += ";\n";
    was_long = is_long;
  }
  return result;
}

std::string print(const HintItem& item) {
  Printer printer(Parentheses::needed);
  printer.write(item);
  return std::move(printer).take();
}

std::string print(const Query& query, Parentheses parentheses) {
  Printer printer(parentheses);
  printer.write(query);
  return std::move(printer).take();
}

std::string print(const Expression& expression, Parentheses parentheses) {
  Printer printer(parentheses);
  printer.write(expression);
  return std::move(printer).take();
}

}  // namespace weft::language
