// Prints plan text. Appends to one string: a plan of millions of nodes prints at memory speed, so
// nothing here allocates temporary strings.
#include <charconv>
#include <cmath>

#include "weft/plan/graph/text.h"
#include "weft/plan/graph/words.h"

namespace weft::plan {
namespace {

class Printer {
 public:
  Printer(const Graph& graph, std::string& out) : graph_(graph), out_(out) {}

  void print_node(NodeId id) {
    const Node& node = graph_.node(id);
    for (std::uint32_t k = 0; k < node.result_count; ++k) {
      if (k != 0) out_ += ", ";
      put_value(graph_.result(id, k));
    }
    out_ += " = ";
    out_ += node.op->name();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      out_ += i == 0 ? " " : ", ";
      put_value(node.inputs[i]);
    }
    put_attributes(node);
    if (!node.inputs.empty()) {
      for (std::uint32_t k = 0; k < node.result_count; ++k) {
        out_ += k == 0 ? " : " : ", ";
        put_type(graph_.type(graph_.result(id, k)));
      }
    }
    if (node.label.valid() || node.scope.valid()) {
      out_ += " @";
      if (put_scope(node.scope) && node.label.valid()) out_ += '.';
      // A scope without a label ends in a dot, so that the reader can distinguish the two.
      if (node.label.valid())
        append_word(out_, graph_.text(node.label));
      else
        out_ += '.';
    }
    if (node.when.phase != Phase::forward) {
      out_ += " in ";
      out_ += name(node.when.phase);
    }
  }

  void put_value(ValueId value) {
    out_ += '%';
    put_integer(value.value);
  }

 private:
  void put_integer(std::int64_t integer) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, integer).ptr;
    out_.append(digits, end);
  }

  void put_real(double real) {
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof digits, real).ptr;
    out_.append(digits, end);
  }

  void put_type(const Type& type) {
    out_ += name(type.dtype);
    out_ += '[';
    for (std::size_t i = 0; i < type.dims.size(); ++i) {
      if (i != 0) out_ += ',';
      append_word(out_, graph_.text(type.dims[i].index));
      out_ += '=';
      put_integer(type.dims[i].size);
    }
    out_ += ']';
  }

  bool is_default(const AttributeSpec& spec, const Attribute& attribute) const {
    if (spec.required) return false;
    switch (spec.kind) {
      case AttributeKind::integer: return attribute.integer == static_cast<std::int64_t>(spec.number);
      case AttributeKind::real: return attribute.real == spec.number;
      case AttributeKind::word: return graph_.text(Symbol(attribute.id)) == spec.word;
      case AttributeKind::indices: return attribute.count == 0;
      default: return false;
    }
  }

  void put_attribute(AttributeKind kind, const Attribute& attribute) {
    switch (kind) {
      case AttributeKind::integer: put_integer(attribute.integer); break;
      case AttributeKind::real: put_real(attribute.real); break;
      case AttributeKind::word:
      case AttributeKind::index: append_word(out_, graph_.text(Symbol(attribute.id))); break;
      case AttributeKind::indices:
        out_ += '[';
        for (std::uint32_t i = 0; i < attribute.count; ++i) {
          if (i != 0) out_ += ',';
          append_word(out_, graph_.text(attribute.indices[i]));
        }
        out_ += ']';
        break;
      case AttributeKind::dtype: out_ += name(static_cast<DType>(attribute.id)); break;
      case AttributeKind::type: put_type(graph_.type(TypeId(attribute.id))); break;
    }
  }

  void put_attributes(const Node& node) {
    const std::span<const AttributeSpec> specs = node.op->attributes();
    bool open = false;
    for (std::size_t k = 0; k < specs.size(); ++k) {
      if (is_default(specs[k], node.attributes[k])) continue;
      out_ += open ? ", " : " {";
      open = true;
      out_ += specs[k].name;
      out_ += '=';
      put_attribute(specs[k].kind, node.attributes[k]);
    }
    if (open) out_ += '}';
  }

  bool put_scope(ScopeId id) {
    if (!id.valid()) return false;
    const Scope& scope = graph_.scope(id);
    if (put_scope(scope.parent)) out_ += '.';
    append_word(out_, graph_.text(scope.name));
    if (scope.iteration >= 0) {
      out_ += '.';
      put_integer(scope.iteration);
    }
    return true;
  }

  const Graph& graph_;
  std::string& out_;
};

}  // namespace

std::string print(const Graph& graph, NodeId id) {
  std::string out;
  Printer(graph, out).print_node(id);
  return out;
}

std::string print(const Graph& graph) {
  std::string out = "plan ";
  append_word(out, graph.name);
  out += '\n';
  Printer printer(graph, out);
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    printer.print_node(NodeId(n));
    out += '\n';
  }
  out += "return";
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    out += i == 0 ? " " : ", ";
    append_word(out, graph.text(graph.outputs()[i].name));
    out += '=';
    printer.put_value(graph.outputs()[i].value);
  }
  out += '\n';
  return out;
}

}  // namespace weft::plan
