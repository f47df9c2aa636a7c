// weft/language/binder.h -- the implementation of bind(); included by the bind_*.cpp files only.
//
// A Binder binds one model. Its files:
//   bind_model.cpp       frames: a model's or layer's sizes, tensors, parameters; WITH and REPEAT
//   bind_scan.cpp        SCAN
//   bind_size.cpp        arithmetic on sizes
//   bind_layer.cpp       layer calls; bind_arguments.cpp: their tensor arguments
//   bind_select.cpp      one SELECT: its sources, joins, GROUP BY and items
//   bind_indices.cpp     renamed, split and merged indices; bind_where.cpp: WHERE
//   bind_expression.cpp  names, arithmetic, comparison, CASE, CAST
//   bind_aggregate.cpp   sum, mean, max, min: the origin of contractions
//   bind_function.cpp    all other functions: windows, convolutions, routing
//   bind_convolution.cpp, bind_ranking.cpp, bind_sequence.cpp: functions composed of other operators
//   bind_update.cpp      UPDATE
//
// Names are symbols of the graph under construction. Tables indexed by symbol hold the current
// meanings of tensor and size names. Leaving a layer or a nested query undoes its changes.
#pragma once
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "weft/base/inline_vector.h"
#include "weft/language/bind.h"
#include "weft/language/functions.h"
#include "weft/language/user_function.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/ops/build.h"

namespace weft::language {

// The result of binding an expression: a constant number, or a value of the plan.
struct Bound {
  plan::ValueId value;  // invalid for a number
  double number = 0;

  bool is_number() const { return !value.valid(); }
  static Bound of(double number) { return Bound{{}, number}; }
  static Bound of(plan::ValueId value) { return Bound{value, 0}; }
};

class Binder {
 public:
  Binder(const Catalog& catalog, const BindOptions& options) : catalog_(catalog), options_(options) {}

  Result<BoundModel> bind_model(const ModelDefinition& model);
  Status try_layer(const LayerDefinition& layer);

 private:
  // -- bind_model.cpp
  struct Frame {
    std::uint32_t id = 0;
    const syntax::Statement* definition = nullptr;
    std::string_view name;
    std::shared_ptr<const std::string> text;
    std::size_t undo_mark = 0;
    bool shipped = false;  // calls resolve to shipped layers, even if shadowed
  };
  // The current iteration, used by layer calls directly inside REPEAT.
  struct Repeat {
    plan::ScopeId outer;
    std::int32_t iteration = 0;
    std::vector<Symbol> call_names;  // chosen in iteration 0, in order of the calls
    std::size_t next_call = 0;
  };
  struct TensorSlot {
    std::uint32_t frame = 0;
    plan::ValueId value;
  };
  struct SizeSlot {
    std::uint32_t frame = 0;
    std::int64_t size = 0;
  };
  struct Undo {
    Symbol name;
    TensorSlot tensor;
    SizeSlot size;
  };

  void enter_frame(const syntax::Statement& definition, std::string_view name,
                   std::shared_ptr<const std::string> text, bool shipped);
  void leave_frame();
  void undo_to(std::size_t mark);
  void remember(Symbol name);
  void set_tensor(Symbol name, plan::ValueId value);
  void set_size(Symbol name, std::int64_t size);
  plan::ValueId find_tensor(Symbol name) const;  // invalid if there is none
  const std::int64_t* find_size(Symbol name) const;
  std::vector<std::string_view> tensor_names() const;
  std::vector<std::string_view> size_names() const;

  Result<std::int64_t> evaluate_size(const syntax::SizeExpression& expression);
  Result<std::int64_t> evaluate_size_chain(const syntax::Chain& chain, bool rounds_up = false);
  Status declare_sizes(const syntax::Body& body, std::span<const SizeOverride> overrides);
  Result<plan::TypeId> declared_type(const syntax::Tensor& tensor);
  Status declare_parameters(std::span<const syntax::Parameter> parameters);
  Status check_source_names(const syntax::CreateModel& model);
  Status unknown_index(const syntax::Name& index);

  Status bind_with(std::span<const syntax::Binding> bindings);
  Status bind_repeat(const syntax::Binding& binding);
  // -- bind_scan.cpp
  Status bind_scan(const syntax::Binding& binding);
  Result<plan::ValueId> bind_scan_step(const syntax::Binding& binding, plan::Dim over, std::int64_t step);
  Result<plan::ValueId> bind_query(const syntax::Query& query);  // REQUIRES: one item

  using SymbolList = InlineVector<Symbol, 8>;

  // -- bind_layer.cpp, bind_arguments.cpp
  Result<plan::ValueId> call_layer(const syntax::Source& source);
  struct LayerInput {  // a tensor argument of a layer call
    plan::ValueId value;
    std::string_view name;
    bool order_is_stated = true;  // whether the caller fixed its index order
    const syntax::LayerArgument* written = nullptr;
  };
  struct IndexNames {  // an index's names in the layer and at the caller, and its tensor
    Symbol inner, outer;
    std::string_view tensor;
  };
  Status bind_arguments(const syntax::Source& source, const syntax::CreateLayer& layer,
                        std::span<const LayerInput> inputs, std::vector<IndexNames>& names);
  Result<plan::ValueId> fit_argument(const LayerInput& given, const syntax::Tensor& formal,
                                     const syntax::CreateLayer& layer, const syntax::Source& source);
  // For each index of an argument, the position of the matching index in the layer's declaration.
  using Meaning = InlineVector<std::size_t, 8>;
  bool fits(const LayerInput& given, std::span<const Symbol> wanted);
  SymbolList own_names(const LayerInput& given);
  Meaning meaning_of_fit(const plan::Type& type, std::span<const Symbol> wanted);
  std::vector<Meaning> likely_meanings(const LayerInput& given, std::span<const Symbol> wanted,
                                       std::span<const IndexNames> tied);
  std::optional<std::string> as_call_argument(const LayerInput& given, std::span<const Symbol> names);
  std::vector<std::string> candidate_calls(const syntax::Source& source, const syntax::CreateLayer& layer,
                                           std::span<const LayerInput> inputs);
  bool binds(const std::string& call);
  std::string suggest_call(const syntax::Source& source, const syntax::CreateLayer& layer,
                           std::span<const LayerInput> inputs);
  plan::ScopeId scope_of_call(const syntax::Source& source);
  Symbol unique_scope_name(plan::ScopeId parent, std::string_view name);
  Status count_step(Span span);  // fails when the plan exceeds its limit or is cancelled

  // -- bind_select.cpp
  using DimList = InlineVector<plan::Dim, 8>;
  struct RowSource {
    Symbol label;
    plan::ValueId value;
  };
  struct ValueGroup {  // GROUP BY slot AS n
    plan::ValueId positions;
    plan::Dim into;
  };
  struct RowRange {  // the positions that WHERE keeps
    syntax::Name index;
    std::int64_t begin = 0, end = 0;
    bool drop = false;  // a single position: drop the index
  };
  struct FunctionScope {
    const FunctionDefinition* definition = nullptr;
    InlineVector<Bound, 4> arguments;
    std::size_t depth = 1;  // nesting of calls
  };
  struct SelectScope {
    InlineVector<RowSource, 6> sources;
    DimList rows;    // the indices of all sources
    DimList groups;  // GROUP BY, in order
    bool grouped = false;
    bool aggregated = false;    // some item has an aggregate
    bool concatenates = false;  // some item has concat: an index's size may then differ between sources
    bool in_aggregate = false;  // currently binding an aggregate's argument
    bool in_number = false;     // currently binding `stride => ...`: a name is a size, not positions
    const FunctionScope* function = nullptr;  // inside a CREATE FUNCTION, only its arguments are visible
    const ValueGroup* scatter = nullptr;
    ValueGroup scatter_storage;
  };
  Result<plan::ValueId> bind_select(const syntax::Select& select);
  Status bind_outputs(const syntax::Select& select);
  Status open_select(const syntax::Select& select, SelectScope& scope);
  Result<plan::ValueId> bind_item(const syntax::Item& item, const syntax::Select& select, SelectScope& scope);
  bool order_is_open(plan::ValueId value);  // its index order was never stated
  Result<plan::ValueId> bind_source(const syntax::Source& source);
  Result<plan::ValueId> use_indices(plan::ValueId value, std::string_view name,
                                    std::span<const syntax::IndexUse> uses, Span span);
  Result<plan::ValueId> split_index(plan::ValueId value, const syntax::IndexUse& use);
  Result<plan::ValueId> merge_indices(plan::ValueId value, const syntax::IndexUse& use);
  Status join(const syntax::Source& source, plan::ValueId table, SelectScope& scope);
  Status apply_where(const syntax::Expression& condition, SelectScope& scope);
  Status read_condition(const syntax::Expression& condition, const SelectScope& scope,
                        std::vector<RowRange>& ranges);
  static void narrow(std::vector<RowRange>& ranges, const RowRange& by);
  Status slice_rows(const RowRange& range, SelectScope& scope);
  Status collect_rows(SelectScope& scope, const syntax::Select& select);
  Status bind_groups(const syntax::Select& select, SelectScope& scope);
  static void note_calls(const syntax::Expression& expression, SelectScope& scope);

  // -- bind_expression.cpp
  Result<Bound> bind_expression(const syntax::Expression& expression, SelectScope& scope);
  Result<Bound> bind_name(const syntax::NameUse& use, SelectScope& scope);
  Error unknown_name(const syntax::NameUse& use, const SelectScope& scope);
  Result<Bound> bind_chain(const syntax::Chain& chain, SelectScope& scope);
  Result<Bound> arithmetic(syntax::Operator op, Bound left, Bound right, Span span);
  Result<Bound> bind_comparison(const syntax::Comparison& comparison, SelectScope& scope);
  Result<Bound> compare(syntax::Operator op, Bound left, Bound right, Span span);
  Result<Bound> bind_between(const syntax::Between& between, SelectScope& scope);
  Result<Bound> bind_choice(const syntax::Choice& choice, SelectScope& scope);
  Result<Bound> bind_cast(const syntax::Cast& cast, SelectScope& scope);
  Result<plan::ValueId> bind_condition(const syntax::Expression& expression, SelectScope& scope);
  // Converts both to values of one dtype. REQUIRES: at most one of them is a number
  Status unify(Bound& left, Bound& right);
  Result<plan::ValueId> as_value(const Bound& bound, plan::DType dtype);  // numbers become constants
  Result<plan::ValueId> as_value(const Bound& bound) { return as_value(bound, options_.precision); }
  Result<plan::ValueId> as_real(const Bound& bound);
  Result<plan::ValueId> cast_to(plan::ValueId value, plan::DType dtype);
  bool is_literal_choice(plan::ValueId value) const;  // a CASE of constants only
  plan::DType wider(plan::DType a, plan::DType b) const;
  const DimList& visible_rows(const SelectScope& scope) const;

  // -- bind_aggregate.cpp
  struct Product {
    InlineVector<plan::ValueId, 4> factors;
    double coefficient = 1;
  };
  Result<Bound> bind_aggregate(const syntax::Call& call, const FunctionSpec& spec, SelectScope& scope);
  Status multiply_out(const syntax::Expression& expression, SelectScope& scope, Product& product);
  Result<plan::ValueId> sum_of_product(Product& product, std::span<const Symbol> kept);
  Result<plan::ValueId> sum_of_many(std::span<const plan::ValueId> factors, std::span<const Symbol> kept);
  Result<plan::ValueId> multiply_factors(std::span<const plan::ValueId> factors);
  Result<plan::ValueId> scale(plan::ValueId value, double factor);
  // If a factor is a cross-entropy whose rows are not all kept: a mask with 1 for each row that
  // counts and 0 otherwise. Else invalid.
  Result<plan::ValueId> rows_that_count(const Product& product, std::span<const Symbol> kept);
  Result<plan::ValueId> mean_of_rows(Product& product, plan::ValueId counted, std::span<const Symbol> kept);
  Status same_dtype(Product& product);

  // -- bind_function.cpp
  Result<Bound> bind_call(const syntax::Call& call, SelectScope& scope);
  Result<Bound> bind_own_call(const syntax::Call& call, const FunctionDefinition& own, SelectScope& scope);
  Result<Bound> bind_known_call(const syntax::Call& call, const FunctionSpec& spec, SelectScope& scope);
  Result<Bound> bind_pointwise(const syntax::Call& call, const FunctionSpec& spec, SelectScope& scope);
  Result<Bound> bind_window(const syntax::Call& call, const FunctionSpec& spec, SelectScope& scope);
  Result<Bound> bind_image(const syntax::Call& call, const FunctionSpec& spec, SelectScope& scope);
  Result<Bound> bind_routing(const syntax::Call& call, const FunctionSpec& spec, SelectScope& scope);
  Result<Bound> bind_other(const syntax::Call& call, const FunctionSpec& spec, SelectScope& scope);
  const syntax::Argument* named_argument(const syntax::Call& call, std::string_view label) const;
  Result<double> number_argument(const syntax::Call& call, std::string_view label, double otherwise,
                                 SelectScope& scope);
  Result<std::int64_t> whole_argument(const syntax::Call& call, std::string_view label, std::int64_t least,
                                      std::int64_t otherwise, SelectScope& scope);
  Result<Symbol> index_argument(const syntax::Call& call, std::string_view label, const plan::Type& type);
  Result<plan::Dim> size_argument(const syntax::Expression& argument, std::string_view function);
  // The indices of `type` outside the call's PARTITION BY, in the type's order.
  Result<SymbolList> window_over(const syntax::Call& call, const plan::Type& type);
  Result<SymbolList> partition_symbols(const syntax::Call& call, const plan::Type& type);
  // -- bind_convolution.cpp
  Result<ops::ConvWindow> conv_window(const syntax::Call& call, SelectScope& scope);
  Result<plan::ValueId> convolve_line(plan::ValueId x, plan::ValueId w, const ops::ConvWindow& window,
                                      Span span);
  Result<Bound> bind_line_or_transpose(const syntax::Call& call, const FunctionSpec& spec, plan::ValueId x,
                                       SelectScope& scope);
  // -- bind_ranking.cpp
  Result<Bound> bind_ranking(const syntax::Call& call, const FunctionSpec& spec, plan::ValueId x,
                             Symbol over);
  Result<Bound> bind_one_hot(const syntax::Call& call, SelectScope& scope);
  Result<plan::ValueId> drop_single(plan::ValueId value, Symbol index);
  // -- bind_sequence.cpp
  Symbol new_index(std::string_view like, std::span<const plan::ValueId> values);
  Result<Symbol> concat_index(const syntax::Call& call, std::span<const plan::ValueId> parts);
  Result<DimList> concat_dims(const syntax::Call& call, std::span<const plan::ValueId> parts, Symbol along);
  Result<Bound> bind_concat(const syntax::Call& call, SelectScope& scope);
  Result<plan::ValueId> spread_to(plan::ValueId value, std::span<const plan::Dim> to, Symbol along);
  Result<plan::ValueId> concat_all(std::vector<plan::ValueId> parts, Symbol along);
  Result<Bound> bind_recurrence(const syntax::Call& call, const FunctionSpec& spec, SelectScope& scope);
  Result<Bound> bind_zeros(const syntax::Call& call);

  // -- bind_update.cpp
  Result<plan::ValueId> bind_body(const syntax::Body& body);  // a layer's
  Status bind_updates(std::span<const syntax::Binding> updates);
  Status add_update(plan::ValueId state, plan::ValueId next, Span span);

  Result<plan::ValueId> step();  // the number of the training step, created on first use

  struct TopKNode {
    plan::ValueId x;
    Symbol over;
    plan::Dim into;
    plan::ValueId values, positions;
  };

  // Adds the source position to an error of the plan, and the hint if it has none.
  template <class T>
  Result<T> at(Span span, Result<T> result, std::string_view hint = {}) const {
    if (!result.ok() && !result.error().span.known()) {
      Error error = std::move(result).error();
      error.span = span;
      if (error.hint.empty()) error.hint = hint;
      return error;
    }
    return result;
  }
  std::string indices_text(std::span<const plan::Dim> dims) const {
    return plan::print_indices(dims, graph_.symbols());
  }

  const Catalog& catalog_;
  const BindOptions& options_;
  plan::Graph graph_;
  std::vector<Frame> frames_;
  std::uint32_t last_frame_ = 0;
  std::vector<TensorSlot> tensors_;  // by symbol
  std::vector<SizeSlot> sizes_;      // by symbol
  std::vector<Undo> undo_;
  Repeat* repeat_ = nullptr;
  std::unordered_map<std::uint64_t, std::uint32_t> scope_names_;  // (parent, name) -> uses so far
  std::unordered_set<std::uint32_t> stated_orders_;               // values with a stated index order
  std::vector<StateUpdate> updates_;
  std::vector<TopKNode> top_ks_;
  plan::ValueId step_;
  std::int64_t steps_taken_ = 0;
  std::int64_t dropouts_ = 0;
  bool tries_ = false;  // currently trying replacements for a failed call
};

}  // namespace weft::language
