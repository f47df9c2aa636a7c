// weft/collectives/algorithm/evaluation.h -- evaluates the expressions of an algorithm.
//
// The first failure (overflow, division by zero, index out of range) is kept. Everything evaluated
// after it is 0, so callers check failed() before they use a value.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/collectives/algorithm/algorithm.h"
#include "weft/collectives/algorithm/algorithm_syntax.h"

namespace weft::collective {

// The remaining TraceLimits::work and the first failure; shared by a whole trace.
struct Progress {
  std::int64_t work_left = 0;
  std::optional<Error> error;
};

class Evaluation {
 public:
  // No variable has a value yet; bind() sets the parameters.
  Evaluation(const AlgorithmSyntax& syntax, Progress& progress);

  // Sets the parameters to their arguments or defaults, and rejects those that violate WHERE.
  bool bind(const Arguments& arguments);

  std::int64_t number(ExpressionId id);
  std::int64_t number_or(ExpressionId id, std::int64_t otherwise) {
    return id == kNoExpression ? otherwise : number(id);
  }
  std::string word(ExpressionId id);
  std::vector<std::int64_t> list(ExpressionId id);
  Argument argument(ExpressionId id, ParameterType type);

  std::int64_t ranks() const { return slots_[syntax_.parameter_places[0]]; }
  void set(std::int32_t slot, std::int64_t value) { slots_[slot] = value; }

  const AlgorithmSyntax& syntax() const { return syntax_; }
  bool failed() const { return progress_.error.has_value(); }
  // Always returns false, so that callers can return its result.
  bool fail(Span span, std::string message, std::string hint = {});
  // The values of the variables in the expressions: "block = 2, ranks = 4".
  std::string variables(std::initializer_list<ExpressionId> ids) const;
  Span span(ExpressionId id) const { return syntax_.expressions[id].span; }
  std::string_view source(ExpressionId id) const;
  // Deducts `amount` from the work left; false if it does not suffice.
  bool spend(Span span, std::int64_t amount = 1) {
    if ((progress_.work_left -= amount) >= 0) [[likely]]
      return true;
    return out_of_work(span);
  }

 private:
  // A list parameter with its prefix sums.
  struct List {
    std::vector<std::int64_t> items, sums;

    bool set(std::vector<std::int64_t> numbers);  // false: a sum overflows
  };

  bool bind_one(std::size_t parameter, const Argument& value);
  std::int64_t call(const Expression& expression);
  std::int64_t extreme(const Expression& expression);
  std::int64_t of_list(const Expression& expression);
  std::int64_t of_bits(const Expression& expression);
  std::int64_t overflow(const Expression& expression);
  std::int64_t refuse(const Expression& expression, std::string_view what, std::int64_t value);
  bool out_of_work(Span span);
  void find_variables(ExpressionId id, std::vector<std::string>& found) const;

  const AlgorithmSyntax& syntax_;
  Progress& progress_;
  std::vector<std::int64_t> slots_;
  std::vector<std::string> words_;
  std::vector<List> lists_;
  const std::int64_t* arguments_ = nullptr;  // of the function being evaluated
  std::int32_t depth_ = 0;                   // depth of function calls
};

}  // namespace weft::collective
