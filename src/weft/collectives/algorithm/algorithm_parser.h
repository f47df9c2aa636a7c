// weft/collectives/algorithm/algorithm_parser.h -- the parser behind parse_algorithm(); internal.
//
//   parse_algorithm.cpp             the head: parameters, COLLECTIVE, claims, functions
//   parse_algorithm_statement.cpp   FOR, IF, COPY, CALL
//   parse_algorithm_expression.cpp  precedence, names, types
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/token_reader.h"
#include "weft/collectives/algorithm/algorithm_syntax.h"

namespace weft::collective {

// Nesting limits, so that neither parsing nor execution can overflow the stack.
inline constexpr std::int32_t kDeepestExpression = 100;
inline constexpr std::int32_t kDeepestBlock = 32;
inline constexpr std::size_t kMostFunctionParameters = 8;

class AlgorithmParser {
 public:
  explicit AlgorithmParser(std::string_view text);

  Result<Algorithm> parse();

 private:
  enum class NameKind : std::uint8_t { number, word, list, undecided, argument };
  struct Name {
    std::string spelling;  // lower case
    NameKind kind = NameKind::number;
    std::int32_t place = 0;       // slot, or index of the function's parameter
    std::int32_t parameter = -1;  // index of the algorithm's parameter
    bool assignable = false;
  };
  struct FunctionHead {
    std::string name;
    std::int32_t parameters = 0;
  };

  // parse_algorithm.cpp
  void find_functions();
  void parameters();
  void parameter();
  void collective();
  void collective_argument();
  void clauses();
  void scratch();
  void find_rank_variable();
  void function();
  void decide_parameters();

  // parse_algorithm_statement.cpp
  Block block(bool promises);
  bool at_block_end() const;
  Statement statement(bool promises);
  Assignment let();
  Assignment assignment();
  ForLoop for_loop(bool promises);
  WhileLoop while_loop(bool promises);
  Branch branch(bool promises);
  Transfer transfer();
  Call call();
  ExpressionId scheme();
  Call::Mapping mapping();
  Requirement requirement();
  WantClause promise();
  PlaceSyntax place();
  PlaceBuffer place_buffer();

  // parse_algorithm_expression.cpp
  ExpressionId number();          // a numeric expression
  ExpressionId sum_of_numbers();  // a numeric expression without operators looser than +
  ExpressionId word();
  ExpressionId list();
  ExpressionId expression();
  ExpressionId disjunction();
  ExpressionId conjunction();
  ExpressionId negation();
  ExpressionId comparison();
  ExpressionId additive();
  ExpressionId multiplicative();
  ExpressionId unary();
  ExpressionId primary();
  ExpressionId choice();
  ExpressionId list_literal();
  ExpressionId name_use();
  ExpressionId function_call(std::string_view spelling, const Token& start);
  ExpressionId builtin_call(const BuiltinFunction& function, const Token& start);
  ExpressionId name_reference(Name& name, const Token& start);
  ExpressionId unknown_name(std::string_view spelling, Span span, bool is_function);
  std::vector<ExpressionId> operands();

  ExpressionId add(Expression expression, ParameterType type, std::int32_t depth);
  ExpressionId binary(Operator op, ExpressionId first, ExpressionId second);
  ExpressionId many(Operator op, const std::vector<ExpressionId>& operands, Span span,
                    ParameterType type = ParameterType::number);
  void require(ExpressionId id, ParameterType type);
  ParameterType type(ExpressionId id) const;
  std::int32_t depth(ExpressionId id) const;
  Span span(ExpressionId id) const;
  bool deeper();  // enters a nesting level, or fails

  // Names in scope.
  // Reads a name that is not in scope yet. It may hide one of the first `outer` names.
  std::string new_name(std::string_view what, std::size_t outer = 0);
  std::int32_t declare(const std::string& spelling, bool assignable);  // returns its slot
  void close_scope(std::size_t names);
  Name* find(std::string_view spelling);
  std::int32_t intern(const std::string& spelling);
  void decide(Name& name, ParameterType type);

  TokenReader reader_;
  AlgorithmSyntax syntax_;
  std::vector<Name> names_;
  std::vector<FunctionHead> function_heads_;
  std::vector<ParameterType> types_;  // per expression
  std::vector<std::int16_t> depths_;  // per expression
  std::int32_t next_slot_ = 0;
  std::int32_t level_ = 0, block_level_ = 0;
  bool in_defaults_ = false;
};

}  // namespace weft::collective
