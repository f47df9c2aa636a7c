// Queries, on one line or on several.
#include <algorithm>

#include "weft/language/printer.h"

namespace weft::language {

using namespace syntax;

void Printer::write(const Query& query) {
  if (!query.bindings.empty()) out_ += "WITH ";
  for (const Binding& binding : query.bindings) {
    if (&binding != query.bindings.data()) out_ += ", ";
    write_label(binding);
    out_ += " AS (";
    write(*binding.query);
    out_ += ')';
  }
  if (!query.bindings.empty()) out_ += ' ';
  write(query.select);
}

void Printer::write_label(const Binding& binding) {
  if (binding.repeat) {
    out_ += "REPEAT ";
    write(*binding.repeat);
    out_ += " TIMES ";
  }
  if (binding.over.given()) {
    out_ += "SCAN OVER ";
    write(binding.over);
    out_ += ' ';
  }
  write(binding.name);
}

void Printer::write(const Select& select) {
  out_ += "SELECT ";
  list(select.items);
  out_ += " FROM ";
  for (const Source& source : select.sources) {
    if (&source != select.sources.data()) out_ += source.on ? " JOIN " : ", ";
    write(source);
  }
  if (select.where) {
    out_ += " WHERE ";
    write(*select.where);
  }
  if (!select.groups.empty()) out_ += " GROUP BY ";
  list(select.groups);
}

void Printer::write(const Item& item) {
  if (!item.value) {
    out_ += '*';
    return;
  }
  write(*item.value);
  if (!item.alias.given()) return;
  out_ += " AS ";
  write(item.alias);
}

void Printer::write(const Source& source) {
  if (source.kind == SourceKind::query) {
    out_ += '(';
    write(*source.query);
    out_ += ')';
  } else {
    write(source.name);
  }
  if (source.kind == SourceKind::call) {
    out_ += '(';
    list(source.arguments);
    out_ += ')';
  }
  write_tail(source);
}

void Printer::write_tail(const Source& source) {
  if (!source.indices.empty()) {
    out_ += '[';
    list(source.indices);
    out_ += ']';
  }
  if (source.alias.given()) {
    out_ += " AS ";
    write(source.alias);
  }
  if (source.on) {
    out_ += " ON ";
    write(*source.on);
  }
}

void Printer::write(const LayerArgument& argument) {
  write(argument.name);
  if (argument.size) {
    out_ += " = ";
    write(*argument.size);
  } else if (!argument.indices.empty()) {
    out_ += '[';
    list(argument.indices);
    out_ += ']';
  }
}

void Printer::write(const IndexUse& use) {
  const auto parts = [&] {
    out_ += '(';
    list(use.parts);
    out_ += ')';
  };
  if (use.kind == IndexUseKind::merge)
    parts();
  else
    write(use.from);
  if (use.kind == IndexUseKind::plain) return;
  out_ += " AS ";
  if (use.kind == IndexUseKind::split)
    parts();
  else
    write(use.to);
}

void Printer::write(const Group& group) {
  write(group.name);
  if (!group.alias.given()) return;
  out_ += " AS ";
  write(group.alias);
}

// The first line continues the current one; further lines begin at `indent`.
void Printer::lay_out(const Query& query, std::size_t indent) {
  if (!query.bindings.empty()) {
    constexpr std::size_t kWidest = 16;  // longer names are not aligned
    std::size_t width = 0;
    for (const Binding& binding : query.bindings) {
      const std::size_t length = binding.name.text.size();
      if (!binding.repeat && !binding.over.given() && length <= kWidest) width = std::max(width, length);
    }
    out_ += "WITH";
    for (const Binding& binding : query.bindings) {
      if (&binding != query.bindings.data()) out_ += ',';
      start_line(indent + 2);
      lay_out(binding, indent + 2, width);
    }
    start_line(indent);
  }
  lay_out(query.select, indent);
}

void Printer::lay_out(const Binding& binding, std::size_t indent, std::size_t width) {
  const std::size_t start = out_.size();
  write_label(binding);
  const std::size_t length = out_.size() - start;
  if (length < width) out_.append(width - length, ' ');
  out_ += " AS (";
  const std::string text = flat(*binding.query);
  if (fits(text, 2)) {
    out_ += text;
  } else {
    start_line(indent + 2);
    lay_out(*binding.query, indent + 2);
  }
  out_ += ')';
}

void Printer::lay_out(const Select& select, std::size_t indent) {
  if (const std::string text = flat(select); fits(text, 2)) {
    out_ += text;
    return;
  }
  out_ += "SELECT ";
  fill(select.items, indent + 2);
  start_line(indent);
  out_ += "FROM ";
  for (const Source& source : select.sources) {
    if (&source != select.sources.data()) {
      if (source.on) start_line(indent);
      out_ += source.on ? "JOIN " : ", ";
    }
    lay_out(source, indent);
  }
  if (select.where) {
    start_line(indent);
    out_ += "WHERE ";
    write(*select.where);
  }
  if (select.groups.empty()) return;
  start_line(indent);
  out_ += "GROUP BY ";
  fill(select.groups, indent + 2);
}

void Printer::lay_out(const Source& source, std::size_t indent) {
  const std::string text = flat(source);
  if (source.kind != SourceKind::query || fits(text, 2)) {
    out_ += text;
    return;
  }
  out_ += '(';
  start_line(indent + 2);
  lay_out(*source.query, indent + 2);
  out_ += ')';
  write_tail(source);
}

}  // namespace weft::language
