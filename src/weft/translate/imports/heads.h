// weft/translate/imports/heads.h -- what stands on the blocks of a model, as `architectures` names it, and its loss.
//
//   WEFT_TRY(head, head_of(request, kClasses));   {"LlamaForCausalLM", Head::words}, {"LlamaModel", Head::base}
//   WEFT_TRY(task, read_task(request, head, {.pad = 0}));
//   ModelText text(name, text_inputs(head, task), ..);
//   add_text_head(text.body(), head, task, "n");      after the last norm, n[b, s, d]
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/translate/imports/architectures.h"

namespace weft::imports {

enum class Head : std::uint8_t {
  base,         // none: the model's outputs are the blocks'
  words,        // the next word, or a hidden one
  sequence,     // a label for a text or an image
  tokens,       // a label for each word
  question,     // where an answer begins and ends
  pretraining,  // BERT's two tasks
  next,         // whether a text follows another
  encoder,      // the half that reads, alone
};

struct HeadClass {
  std::string_view name;
  Head head;
};
// What the class of the file is; the first where the file names none.
Result<HeadClass> head_of(const Request& request, std::span<const HeadClass> known);

enum class Problem : std::uint8_t { one_label, several_labels, regression };

struct Task {
  std::int64_t labels = 0;
  Problem problem = Problem::one_label;
  double dropout = 0;               // before a classifier of words
  std::optional<std::int64_t> pad;  // a sequence's label is read at the last word that is another
};
struct TaskDefaults {
  std::optional<std::int64_t> pad = {};
  double dropout = 0.1;        // before a classifier of words
  bool hidden_dropout = true;  // which hidden_dropout may replace, and classifier_dropout does
};
// The labels of a class that has some: id2label or num_labels, problem_type.
Status read_labels(Config& config, Head head, Task& task);
// The same, and what decoders read for their heads.
Result<Task> read_task(Request& request, Head head, const TaskDefaults& defaults,
                       std::vector<std::string>& notes);

// ", label[b] OF int32"
std::string label_input(const Task& task);
// The inputs of a model of words and its labels.
std::string text_inputs(Head head, const Task& task);
// The loss of logits[b, classes] and the label.
void select_label_loss(LayerText& body, const Task& task);
// A classifier of the index `from` of `of`, [b, from]: parameters class and class_bias of these tensors, then the loss.
void add_label_head(LayerText& body, const Task& task, std::string_view of, std::string_view from,
                    const std::string& init, const std::string& tensor, bool biased);
// All of these but `words`, `pretraining` and `next`, on x[b, s, d]; `classifier` is the tensors' name.
void add_text_head(LayerText& body, Head head, const Task& task, std::string_view x, const std::string& init,
                   std::string_view classifier);

}  // namespace weft::imports
