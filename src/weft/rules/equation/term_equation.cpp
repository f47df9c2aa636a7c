#include "weft/rules/equation/term_equation.h"

#include <fmt/format.h>

#include <map>
#include <string>

namespace weft::equation {
namespace {

class EquationWriter {
 public:
  explicit EquationWriter(const TermTable& terms) : terms_(terms) {}

  Operand write(TermId id, std::vector<Operation>& side, std::map<TermId, std::int32_t>& placed) {
    const Term& term = terms_[id];
    if (terms_.is_input(term.head)) return input(term.head);
    const TermId node = id - term.result;
    if (const auto found = placed.find(node); found != placed.end()) return {found->second, term.result};
    const OperationKind& kind = terms_.operation(term.head);
    Operation operation{kind.verb, {}, kind.details};
    for (std::size_t i = 0; i < term.operand_count(); ++i)
      operation.operands.push_back(write(term.operands[i], side, placed));
    side.push_back(std::move(operation));
    const auto place = static_cast<std::int32_t>(side.size()) - 1;
    placed.emplace(node, place);
    return {place, term.result};
  }

  std::vector<EquationInput> inputs;

 private:
  Operand input(std::uint16_t head) {
    const auto [found, fresh] = numbers_.emplace(head, static_cast<std::int32_t>(inputs.size()));
    if (fresh) {
      // Number inputs in order of first use, so that graphs that differ only in names give equal
      // equations.
      const InputKind& kind = terms_.kind_of(head);
      inputs.push_back({fmt::format("{}{}", kind.letter, ++of_kind_[kind.letter]), kind.sizes, kind.holding,
                        kind.sharded_dim});
    }
    return {-1, found->second};
  }

  const TermTable& terms_;
  std::map<std::uint16_t, std::int32_t> numbers_;
  std::map<std::string, std::int32_t> of_kind_;
};

}  // namespace

Equation equation_of(const TermTable& terms, std::span<const std::array<TermId, 2>> outputs) {
  Equation equation;
  EquationWriter writer(terms);
  std::map<TermId, std::int32_t> in_source, in_target;
  for (const auto& [source, target] : outputs) {
    const Operand left = writer.write(source, equation.source, in_source);
    const Operand right = writer.write(target, equation.target, in_target);
    equation.outputs.push_back({left, right});
  }
  equation.inputs = std::move(writer.inputs);
  equation.ranks = terms.set().ranks;
  return equation;
}

}  // namespace weft::equation
