// weft/translate/imports/heads.h -- a model's head, as named in `architectures`, and its loss.
//
//   WEFT_TRY(head, head_of(request, kClasses));   {"LlamaForCausalLM", Head::words}, ..
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
  base,         // no head: outputs the last hidden state
  words,        // language modeling: the next or a masked token
  sequence,     // classifies a text or an image
  tokens,       // classifies each token
  question,     // answer extraction: start and end
  pretraining,  // BERT's two pretraining tasks
  next,         // next sentence prediction
  encoder,      // the encoder alone
};

struct HeadClass {
  std::string_view name;
  Head head;
};
// The head of the file's class; the first of `known` if the file names no class.
Result<HeadClass> head_of(const Request& request, std::span<const HeadClass> known);

enum class Problem : std::uint8_t { one_label, several_labels, regression };

struct Task {
  std::int64_t labels = 0;
  Problem problem = Problem::one_label;
  double dropout = 0;               // before a token classifier
  std::optional<std::int64_t> pad;  // a sequence is classified at its last token other than this
};
struct TaskDefaults {
  std::optional<std::int64_t> pad = {};
  double dropout = 0.1;        // before a token classifier
  bool hidden_dropout = true;  // hidden_dropout replaces the default; classifier_dropout always does
};
// Reads the labels of a classifier: id2label or num_labels, problem_type.
Status read_labels(Config& config, Head head, Task& task);
// Reads the labels, and the fields that decoders use for their heads.
Result<Task> read_task(Request& request, Head head, const TaskDefaults& defaults,
                       std::vector<std::string>& notes);

// ", label[b] OF int32"
std::string label_input(const Task& task);
// The INPUTs of a text model and its labels.
std::string text_inputs(Head head, const Task& task);
// Selects the loss of logits[b, classes] and the label.
void select_label_loss(LayerText& body, const Task& task);
// Adds a classifier over index `from` of `of`[b, from] and its loss. Its parameters class and
// class_bias are stored as `tensor`.
void add_label_head(LayerText& body, const Task& task, std::string_view of, std::string_view from,
                    const std::string& init, const std::string& tensor, bool biased);
// Adds any head except `words`, `pretraining` and `next` to x[b, s, d]; `classifier` is the name of
// the tensors.
void add_text_head(LayerText& body, Head head, const Task& task, std::string_view x, const std::string& init,
                   std::string_view classifier);

}  // namespace weft::imports
