#include "weft/plan/ops/terms.h"

#include <algorithm>

#include "weft/base/check.h"

namespace weft::ops {

Term operator+(Term a, Term b) { return a.of->call("add", a, b); }
Term operator-(Term a, Term b) { return a.of->call("sub", a, b); }
Term operator*(Term a, Term b) { return a.of->call("mul", a, b); }
Term operator-(Term a) { return a.of->call("neg", a); }

Term Terms::apply(Function function, Term x) {
  switch (function) {
    case Function::exp: return call("exp", x);
    case Function::log: return call("log", x);
    case Function::tanh: return call("tanh", x);
    case Function::erf: return call("erf", x);
    case Function::sqrt: return call("sqrt", x);
    case Function::rsqrt: return call("rsqrt", x);
    case Function::sin: return call("sin", x);
    case Function::cos: return call("cos", x);
    case Function::truncate: break;
  }
  WEFT_CHECK(false, "a cast is not a pointwise function");
  return x;
}

Term Terms::add(const Step& step) {
  const auto same = [&](const Step& other) {
    return other.function == step.function && other.operands == step.operands &&
           other.operand == step.operand && other.number == step.number;
  };
  const auto found = std::ranges::find_if(steps_, same);
  const auto place = static_cast<std::uint32_t>(found - steps_.begin());
  if (found == steps_.end()) steps_.push_back(step);
  return {this, place};
}

std::vector<Terms::Step> Terms::steps(Term result) const {
  std::vector<Step> ordered;
  std::vector<std::uint32_t> places(steps_.size(), kNone);
  const auto visit = [&](const auto& self, std::uint32_t id) -> std::uint32_t {
    if (places[id] != kNone) return places[id];
    Step step = steps_[id];
    for (std::uint32_t& operand : step.operands)
      if (operand != kNone) operand = self(self, operand);
    ordered.push_back(step);
    return places[id] = static_cast<std::uint32_t>(ordered.size() - 1);
  };
  visit(visit, result.id);
  return ordered;
}

}  // namespace weft::ops
