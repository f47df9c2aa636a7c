// weft/language/printer.h -- the implementation of print(): appends nodes to a text.
//
// write() puts a node on the current line; lay_out() may break it into several lines.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/language/level.h"
#include "weft/language/print.h"
#include "weft/language/syntax.h"

namespace weft::language {

class Printer {
 public:
  explicit Printer(Parentheses parentheses) : parentheses_(parentheses) {}

  void lay_out(const syntax::Statement& statement);
  void write(const syntax::Query& query);
  void write(const syntax::HintItem& item);
  void write(const syntax::Expression& expression, Level loosest = Level::logical_or);

  std::string take() && { return std::move(out_); }
  void append(std::string_view text) { out_ += text; }

 private:
  // print_expression.cpp
  void write(const syntax::Name& name);
  void write(const syntax::Number& number);
  void write_number(double value, std::int64_t whole, bool is_whole);
  void write_string(std::string_view text);
  void write(const syntax::Value& value);
  void write(const syntax::Setting& setting);
  void write(const syntax::Chain& chain);
  void write(const syntax::Choice& choice);
  void write(const syntax::Call& call);
  void write_argument(const syntax::Argument& argument, bool first);

  // print_query.cpp
  void write(const syntax::Select& select);
  void write(const syntax::Item& item);
  void write(const syntax::Source& source);
  void write_tail(const syntax::Source& source);  // [indices] AS alias
  void write(const syntax::LayerArgument& argument);
  void write(const syntax::IndexUse& use);
  void write(const syntax::Group& group);
  void write_label(const syntax::Binding& binding);
  void lay_out(const syntax::Query& query, std::size_t indent);
  void lay_out(const syntax::Binding& binding, std::size_t indent, std::size_t width);
  void lay_out(const syntax::Select& select, std::size_t indent);
  void lay_out(const syntax::Source& source, std::size_t indent);

  // print.cpp
  void create(std::string_view what, bool replace, const syntax::Name& name);
  void write(const syntax::Link& link);
  void write(const syntax::Tensor& tensor);
  void write(const syntax::Size& size);
  void write(const syntax::Parameter& parameter);
  void write(const syntax::Run& run);
  void write(const syntax::Goal& goal);
  void write(const syntax::Explain& explain);
  void write_with(std::span<const syntax::Setting> settings);
  void lay_out(const syntax::Body& body);

  // item {", " item}
  template <class T>
  void list(std::span<const T> items) {
    for (const T& item : items) {
      if (&item != items.data()) out_ += ", ";
      write(item);
    }
  }
  // The same, with line breaks between items when a line is full.
  template <class T>
  void fill(std::span<const T> items, std::size_t indent) {
    for (const T& item : items) {
      const std::string text = flat(item);
      if (&item != items.data()) {
        out_ += ',';
        if (fits(text, 2))
          out_ += ' ';
        else
          start_line(indent);
      }
      out_ += text;
    }
  }

  template <class T>
  std::string flat(const T& node) {
    Printer inner(parentheses_);
    inner.write(node);
    return std::move(inner.out_);
  }
  // Whether `text` and `more` columns fit on the rest of the line.
  bool fits(std::string_view text, std::size_t more) const;
  void start_line(std::size_t indent) { (out_ += '\n').append(indent, ' '); }

  std::string out_;
  Parentheses parentheses_;
};

}  // namespace weft::language
