#include "weft/translate/imports/heads.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "weft/formats/value.h"

namespace weft::imports {

Result<HeadClass> head_of(const Request& request, std::span<const HeadClass> known) {
  if (request.head.empty()) return known.front();
  for (const HeadClass& one : known)
    if (one.name == request.head) return one;
  std::vector<std::string_view> names;
  for (const HeadClass& one : known) names.push_back(one.name);
  return user_error(fmt::format("architectures[0]: unknown class '{}'", formats::shown(request.head)),
                    fmt::format("known are {}", fmt::join(names, ", ")));
}

Status read_labels(Config& config, Head head, Task& task) {
  WEFT_TRY(named, config.entries("id2label"));
  WEFT_TRY(counted, config.size_or("num_labels", named > 0 ? named : 2));
  if (named > 0 && counted != named)
    return config.refuse("num_labels", fmt::format("expected {}, the entries of id2label", named));
  task.labels = counted;
  if (head != Head::sequence) return {};
  WEFT_TRY(problem,
           config.word_or("problem_type", counted == 1 ? "regression" : "single_label_classification"));
  if (problem == "regression")
    task.problem = Problem::regression;
  else if (problem == "multi_label_classification")
    task.problem = Problem::several_labels;
  else if (problem != "single_label_classification")
    return config.refuse("problem_type",
                         "expected regression, single_label_classification or multi_label_classification");
  else if (counted < 2)
    return config.refuse("problem_type", "expected two labels or more, or regression");
  return {};
}

Result<Task> read_task(Request& request, Head head, const TaskDefaults& defaults,
                       std::vector<std::string>& notes) {
  Config& config = request.config;
  Task task;
  if (head == Head::sequence || head == Head::tokens) WEFT_TRY_STATUS(read_labels(config, head, task));
  if (head == Head::tokens) {
    double otherwise = defaults.dropout;
    if (defaults.hidden_dropout) {
      WEFT_TRY(hidden, config.rate_or("hidden_dropout", otherwise));
      otherwise = hidden;
    }
    WEFT_TRY(dropout, config.rate_or("classifier_dropout", otherwise));
    task.dropout = dropout;
  }
  if (head == Head::sequence) {
    task.pad = defaults.pad;
    if (config.is_null("pad_token_id")) task.pad.reset();
    if (config.has("pad_token_id")) {
      WEFT_TRY(pad, config.integer_or("pad_token_id", 0));
      task.pad = pad;
    }
    notes.push_back(
        task.pad ? fmt::format("the classifier reads the last token that is not padding ({})", *task.pad)
                 : "no pad_token_id: the classifier reads the last token of each sequence");
  }
  return task;
}

std::string label_input(const Task& task) {
  if (task.problem == Problem::one_label) return ", label[b] OF int32";
  return task.labels == 1 && task.problem == Problem::regression ? ", label[b]" : ", label[b, classes]";
}

std::string text_inputs(Head head, const Task& task) {
  const std::string tokens = "tokens[b, s] OF int32";
  switch (head) {
    case Head::words: return tokens + ", targets[b, s] OF int32";
    case Head::sequence: return tokens + label_input(task);
    case Head::tokens: return tokens + ", labels[b, s] OF int32";
    case Head::question: return tokens + ", start_positions[b] OF int32, end_positions[b] OF int32";
    default: return tokens;
  }
}

void select_label_loss(LayerText& body, const Task& task) {
  switch (task.problem) {
    case Problem::one_label:
      return body.select(
          "SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss, logits FROM logits, "
          "label");
    case Problem::regression:
      body.with("gap", "SELECT logits - label FROM logits, label");
      return body.select("SELECT mean(gap * gap) AS loss, logits FROM gap, logits");
    case Problem::several_labels:
      // Binary cross entropy: -log of sigmoid(logits) if the label is 1, of 1 - sigmoid(logits) if
      // it is 0.
      body.with("missed",
                "SELECT relu(logits) - logits * label + log(1 + exp(-abs(logits))) FROM logits, label");
      return body.select("SELECT mean(missed) AS loss, logits FROM missed, logits");
  }
}

void add_label_head(LayerText& body, const Task& task, std::string_view of, std::string_view from,
                    const std::string& init, const std::string& tensor, bool biased) {
  body.size("classes", task.labels);
  body.parameter("class", {std::string(from), "classes"}, init, turned(tensor + ".weight"));
  if (biased) body.parameter("class_bias", {"classes"}, "", same(tensor + ".bias"));
  body.with("logits", fmt::format("SELECT sum({0} * class){1} FROM {0}, class{2} GROUP BY b, classes", of,
                                  biased ? " + class_bias" : "", biased ? ", class_bias" : ""));
  select_label_loss(body, task);
}

namespace {

void add_sequence_head(LayerText& body, const Task& task, std::string_view x, const std::string& init) {
  if (task.pad) {
    body.with("place",
              fmt::format("SELECT max(CASE WHEN tokens <> {} THEN s ELSE 0 END) FROM tokens GROUP BY b",
                          *task.pad));
    body.with("last", fmt::format("SELECT {0} FROM place JOIN {0} ON s = place GROUP BY b, d", x));
  } else {
    body.with("last", fmt::format("SELECT {0} FROM {0} WHERE s = size(s) - 1", x));
  }
  add_label_head(body, task, "last", "d", init, "score", false);
}

void add_question_head(LayerText& body, std::string_view x, const std::string& init) {
  body.size("ends", 2);
  body.parameter("answer", {"d", "ends"}, init, turned("qa_outputs.weight"));
  body.parameter("answer_bias", {"ends"}, "", same("qa_outputs.bias"));
  body.with("spans", fmt::format("SELECT sum({0} * answer) + answer_bias FROM {0}, answer, answer_bias "
                                 "GROUP BY b, ends, s",
                                 x));
  body.with("start_logits", "SELECT spans FROM spans WHERE ends = 0");
  body.with("end_logits", "SELECT spans FROM spans WHERE ends = 1");
  body.with("first", "SELECT greatest(start_positions, 0) FROM start_positions");
  body.with("final", "SELECT greatest(end_positions, 0) FROM end_positions");
  body.select(
      "SELECT (mean(cross_entropy(start_logits, first) OVER (PARTITION BY b)) + "
      "mean(cross_entropy(end_logits, final) OVER (PARTITION BY b))) / 2 AS loss,\n"
      "       start_logits, end_logits\n"
      "FROM start_logits, first, end_logits, final");
}

}  // namespace

void add_text_head(LayerText& body, Head head, const Task& task, std::string_view x, const std::string& init,
                   std::string_view classifier) {
  if (head == Head::sequence) return add_sequence_head(body, task, x, init);
  if (head == Head::question) return add_question_head(body, x, init);
  if (head != Head::tokens) return body.select(fmt::format("SELECT {0} AS hidden FROM {0}", x));
  body.size("classes", task.labels);
  body.parameter("class", {"d", "classes"}, init, turned(fmt::format("{}.weight", classifier)));
  body.parameter("class_bias", {"classes"}, "", same(fmt::format("{}.bias", classifier)));
  body.with("seen", fmt::format("SELECT {} FROM {}", dropped(std::string(x), task.dropout), x));
  body.with("logits",
            "SELECT sum(seen * class) + class_bias FROM seen, class, class_bias GROUP BY b, s, classes");
  body.select(
      "SELECT mean(cross_entropy(logits, labels) OVER (PARTITION BY b, s)) AS loss, logits FROM logits, "
      "labels");
}

}  // namespace weft::imports
