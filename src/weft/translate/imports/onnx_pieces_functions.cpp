// Functions that refer to indices, and mixtures of experts, as parts of a query; onnx_functions.cpp and
// onnx_experts.cpp have their operands.
#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/translate/imports/onnx_printer.h"

namespace weft::imports {

OnnxPrinter::Piece OnnxPrinter::function(std::size_t n, const ModelNode& node, Names wanted) {
  const std::string& form = model_.functions.at(n);
  Piece piece;
  piece.alone = true;
  // The names of an operand: those of the result for the labels that it has.
  Names of_label = wanted;
  const auto names = [&](std::size_t i) {
    Names own;
    for (std::size_t d = 0; d < names_[node.operands[i]].size(); ++d) {
      const std::size_t label = node.labels[i][d];
      while (of_label.size() <= label) of_label.emplace_back();
      if (of_label[label].empty()) of_label[label] = free_name({names_[node.operands[i]][d]}, of_label);
      own.push_back(of_label[label]);
    }
    return own;
  };
  const std::size_t last = wanted.size() - 1;
  const std::string argument = form.substr(form.find(' ') + 1);
  if (form.starts_with("rms_norm")) {
    piece.text = fmt::format("rms_norm({}, epsilon => {}){}", source(piece, node.operands[0], names(0)),
                             argument, over(wanted, {wanted[last]}));
  } else if (form.starts_with("rotary")) {
    piece.text =
        fmt::format("rotary({}, along => {}, pairs => {}, base => {})",
                    source(piece, node.operands[0], names(0)), wanted[last - 1], wanted[last], argument);
  } else if (form.starts_with("band")) {
    const std::string x = source(piece, node.operands[0], names(0)), &s = wanted[last - 1], &t = wanted[last];
    std::vector<std::string> conditions;
    for (const std::string_view key : {"lowest ", "highest "})
      if (const auto found = form.find(key); found != std::string::npos) {
        const std::size_t begin = found + key.size();
        const auto bound =
            read_number<std::int64_t>(form.substr(begin, form.find(' ', begin) - begin)).value_or(0);
        if (key == "highest ")
          conditions.push_back(bound == 0 ? fmt::format("{} <= {}", s, t)
                                          : fmt::format("{} - {} <= {}", s, t, bound));
        else
          conditions.push_back(bound == 0 ? fmt::format("{} <= {}", t, s)
                                          : fmt::format("{} - {} <= {}", t, s, -bound));
      }
    piece.text = fmt::format("CASE WHEN {} THEN {} ELSE -inf END", fmt::join(conditions, " AND "), x);
  } else if (form == "number") {
    piece.text = fmt::format("CAST({} AS float32)", source(piece, node.operands[0], names(0)));
  } else if (form.starts_with("top_k")) {
    const std::string x = source(piece, node.operands[0], names(0));
    piece.text = fmt::format("{}({}, {}){}", form, x, wanted.back(), over(wanted, {wanted.back()}));
  } else if (form.starts_with("slot")) {
    const auto space = form.rfind(' ');
    const std::string x = source(piece, node.operands[0], names(0));
    const std::string count =
        sized("x", read_number<std::int64_t>(form.substr(5, space - 5)).value_or(1), wanted);
    const std::string room =
        sized("c", read_number<std::int64_t>(form.substr(space + 1)).value_or(1), wanted);
    piece.text = fmt::format("slot({}, {}, {}) OVER (PARTITION BY {})", x, count, room, wanted[0]);
  } else if (form == "send") {
    const std::string x = source(piece, node.operands[0], names(0)),
                      place = source(piece, node.operands[1], names(1));
    piece.text = fmt::format("sum({})", x);
    piece.joins = fmt::format(" GROUP BY {}, {} AS {}, {}", wanted[0], place, wanted[1], wanted[2]);
  } else {  // mix
    const std::string weight = source(piece, node.operands[0], names(0)),
                      place = source(piece, node.operands[1], names(1));
    Piece joined;
    const Names own = names(2);
    const std::string done = source(joined, node.operands[2], own);
    piece.text = fmt::format("sum({} * {})", weight, done);
    piece.joins = fmt::format(" JOIN {} ON {} = {}", joined.from[0], own[1], place);
    piece.grouped = true;
  }
  return piece;
}

// The query refers to these indices by their sizes' names.
void OnnxPrinter::name_sizes(std::size_t n) {
  const auto form = model_.functions.find(n);
  if (file_.nodes[n].operation != Operation::einsum || form == model_.functions.end()) return;
  Names& names = names_[file_.result(n)];
  const std::size_t d = form->second.starts_with("top_k") ? names.size() - 1
                        : form->second == "send"          ? 1
                                                          : names.size();
  if (d == names.size()) return;
  Names others = names;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(d));
  names[d] = sized(d == 1 && form->second == "send" ? "p" : "k", file_.shape(file_.result(n))[d], others);
}

}  // namespace weft::imports
