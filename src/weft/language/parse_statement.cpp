// statement  = create | drop | explain | run | generate | set | hint | show | clear | describe
//            | save | load | include | synthesize
// drop       = DROP ( DEVICE | CLUSTER | STACK | FUNCTION | LAYER | MODEL ) name
// explain    = EXPLAIN [ ANALYZE ] [ VERBOSE ] [ "(" option {"," option} ")" ] run
// option     = ANALYZE | VERBOSE
//            | FORMAT ( text | json | plan | megatron | deepspeed | torchtitan | nemo | bridge
//                     | accelerate | maxtext | torch | torchtitan_toml )
//            | name [ value ]
// run        = ( TRAIN | INFER ) name { ON target | FROM data | STEPS count | INTO string | WITH
// settings }
//              Each clause at most once; STEPS with TRAIN only, INTO not with TRAIN.
// data       = string | name "=" string {"," name "=" string} generate   = GENERATE name { ON
// target | PROMPT string | STEPS count | INTO string | WITH settings } target     = LOCAL [ count ]
// | name [ RANKS count ] set        = SET name ( "=" | TO ) value hint       = HINT item {"," item}
// item       = SLICE name [ OF name ] ACROSS name | REPLICATE name ACROSS name | ZERO count
//            | ( DP | TP | PP | EP | CP ) count [ ( WITHIN | ON ) name ]
// show       = SHOW name
// clear      = CLEAR name
// describe   = DESCRIBE name [ WITH settings ]
// save       = SAVE name TO string
// load       = LOAD name FROM string
// include    = RUN string
// synthesize = SYNTHESIZE name ON name [ USING SKETCH string ] [ WITH settings ]
//              The sketch is a setting of this name.
#include <array>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/base/nearest.h"
#include "weft/language/grammar.h"

namespace weft::language {

using namespace syntax;

const Statement* Grammar::statement() {
  switch (token_.keyword) {
    case Keyword::kw_create: return create();
    case Keyword::kw_drop: return drop();
    case Keyword::kw_explain: return explain();
    case Keyword::kw_train:
    case Keyword::kw_infer:
    case Keyword::kw_generate: return run();
    case Keyword::kw_set: return set();
    case Keyword::kw_hint: return hint();
    case Keyword::kw_show: return show();
    case Keyword::kw_clear: return clear();
    case Keyword::kw_describe: return describe();
    case Keyword::kw_save: return save();
    case Keyword::kw_load: return load();
    case Keyword::kw_run: return run_file();
    case Keyword::kw_synthesize: return synthesize();
    default: fail_statement(); return nullptr;
  }
}

const Statement* Grammar::drop() {
  const std::uint32_t start = here();
  advance();
  ObjectKind object{};
  if (accept(Keyword::kw_device))
    object = ObjectKind::device;
  else if (accept(Keyword::kw_cluster))
    object = ObjectKind::cluster;
  else if (accept(Keyword::kw_stack))
    object = ObjectKind::stack;
  else if (accept(Keyword::kw_function))
    object = ObjectKind::function;
  else if (accept(Keyword::kw_layer))
    object = ObjectKind::layer;
  else if (accept(Keyword::kw_model))
    object = ObjectKind::model;
  else
    fail_object("after DROP");
  const Name dropped = name("what to drop");
  expect_end({});
  return make<Drop>(start, object, dropped);
}

const Statement* Grammar::explain() {
  const std::uint32_t start = here();
  advance();
  bool analyze = accept(Keyword::kw_analyze);
  bool verbose = accept(Keyword::kw_verbose);
  Format shape = Format::text;
  Gather<Option> options(*this);
  if (at(Kind::left_paren)) {
    const Span open = token_.span;
    advance();
    bool formatted = false;
    const auto once = [&](bool& flag) {
      if (flag) fail_here(fmt::format("{} is given twice", spelling(token_.keyword)), "give it once");
      advance();
      flag = true;
    };
    do {
      if (at(Keyword::kw_analyze)) {
        once(analyze);
      } else if (at(Keyword::kw_verbose)) {
        once(verbose);
      } else if (at(Keyword::kw_format)) {
        once(formatted);
        shape = format();
      } else {
        Option option{name("an option such as FORMAT json"), {}};
        if (!at(Kind::comma) && !at(Kind::right_paren)) option.value = value();
        options.add(option);
      }
    } while (accept(Kind::comma));
    close_paren(open);
  }
  if (!at(Keyword::kw_train) && !at(Keyword::kw_infer)) {
    static constexpr auto kNext = std::to_array<std::string_view>({"TRAIN", "INFER", "ANALYZE", "VERBOSE"});
    fail_expected("TRAIN or INFER", remedy(kNext));
  }
  const Run* subject = run();
  return make<Explain>(start, analyze, verbose, shape, options.finish(), subject);
}

Format Grammar::format() {
  static constexpr auto kFormats =
      std::to_array<std::string_view>({"text", "json", "plan", "megatron", "deepspeed", "torchtitan", "nemo",
                                       "bridge", "accelerate", "maxtext", "torch", "torchtitan_toml"});
  const std::string_view word = lexeme(token_.span);
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    if (!same_word(word, kFormats[i])) continue;
    advance();
    return static_cast<Format>(i);
  }
  fail_expected(
      "text, json, plan, megatron, deepspeed, torchtitan, nemo, bridge, accelerate, maxtext, torch "
      "or torchtitan_toml after FORMAT",
      did_you_mean(word, kFormats));
  return {};
}

// TRAIN, INFER and GENERATE. Clauses may be in any order, each at most once.
const Run* Grammar::run() {
  const std::uint32_t start = here();
  const Task task = at(Keyword::kw_infer)      ? Task::infer
                    : at(Keyword::kw_generate) ? Task::generate
                                               : Task::train;
  advance();
  const Name model = name("a model name");
  std::optional<Target> on;
  std::span<const DataFile> data;
  std::optional<Number> steps;
  std::optional<Text> into, prompt;
  std::span<const Setting> with;
  std::span<const Goal> goals;
  for (;;) {
    const bool twice = (at(Keyword::kw_on) && on) || (at(Keyword::kw_from) && !data.empty()) ||
                       (at(Keyword::kw_steps) && steps) || (at(Keyword::kw_into) && into) ||
                       (at(Keyword::kw_prompt) && prompt) || (at(Keyword::kw_with) && !with.empty()) ||
                       (at(Keyword::kw_minimize) && !goals.empty());
    if (twice) fail_here(fmt::format("{} is given twice", spelling(token_.keyword)), "give it once");
    if (at(Keyword::kw_steps) && task == Task::infer)
      fail_here("INFER has no STEPS", "it runs once over the rows of FROM");
    if (at(Keyword::kw_into) && task == Task::train)
      fail_here("TRAIN has no INTO",
                "SAVE writes the trained parameters; log = 'file.csv' logs the training");
    if (at(Keyword::kw_from) && task == Task::generate)
      fail_here("GENERATE has no FROM",
                "write PROMPT 'a text': GENERATE continues the text itself, not a file");
    if (at(Keyword::kw_minimize) && task != Task::train)
      fail_here("only TRAIN has MINIMIZE", "INFER does not change the model");
    if (accept(Keyword::kw_on))
      on = target();
    else if (accept(Keyword::kw_from))
      data = data_files();
    else if (accept(Keyword::kw_steps))
      steps = whole_number("a number of steps", 0);
    else if (task != Task::train && accept(Keyword::kw_into))
      into = text("a file name in quotes after INTO");
    else if (task == Task::generate && accept(Keyword::kw_prompt))
      prompt = text("a text in quotes after PROMPT");
    else if (accept(Keyword::kw_minimize))
      goals = list<Goal>([&] { return goal(); });
    else if (at(Keyword::kw_with))
      with = with_settings();
    else
      break;
  }
  using enum Keyword;
  if (task == Task::infer)
    expect_end({kw_on, kw_from, kw_into, kw_with});
  else if (task == Task::generate)
    expect_end({kw_prompt, kw_steps, kw_with});
  else
    expect_end({kw_on, kw_from, kw_steps, kw_minimize, kw_with});
  return make<Run>(start, task, model, on, data, steps, into, prompt, goals, with);
}

// loss [ OVER "(" name {"," name} ")" ] [ BY optimizer [ settings ] ]
Goal Grammar::goal() {
  const std::uint32_t start = here();
  Goal result;
  result.loss = name("an output to minimize");
  if (accept(Keyword::kw_over))
    result.over = parens<Name>("'(' and the parameters to train", [&] { return name("a parameter"); });
  if (accept(Keyword::kw_by)) {
    result.optimizer = name("an optimizer, such as adam");
    if (at(Kind::left_paren)) result.options = settings();
  }
  result.span = since(start);
  return result;
}

// One file with everything, or one per input.
std::span<const DataFile> Grammar::data_files() {
  const auto files = list<DataFile>([&] {
    DataFile file;
    if (at_name() && next_.kind == Kind::equal) {
      file.input = name("an input");
      advance();
    }
    file.file = text("a file name in quotes after FROM");
    return file;
  });
  if (files.size() > 1)
    for (const DataFile& file : files)
      if (!file.input.given())
        fail(user_error("with several files, each must name its input", "write FROM x = 'a.npy', y = 'b.npy'",
                        file.file.span));
  return files;
}

Target Grammar::target() {
  const std::uint32_t start = here();
  Target result;
  result.local = accept(Keyword::kw_local);
  bool counts = at(Kind::number);
  if (!result.local) {
    result.cluster = name("LOCAL or a cluster name after ON");
    counts = at(Kind::word) && same_word(lexeme(token_.span), "RANKS");
    if (counts) advance();
  }
  if (counts) result.ranks = whole_number("a number of ranks", 1);
  result.span = since(start);
  return result;
}

const Statement* Grammar::set() {
  const std::uint32_t start = here();
  advance();
  const Name key = name("a setting");
  if (!accept(Kind::equal) && !accept(Keyword::kw_to)) fail_expected("= or TO after the setting's name");
  const Value to = value();
  expect_end({});
  return make<Set>(start, key, to);
}

const Statement* Grammar::hint() {
  const std::uint32_t start = here();
  advance();
  const auto items = list<HintItem>([&] { return hint_item(); });
  expect_end({});
  return make<Hint>(start, items);
}

HintItem Grammar::hint_item() {
  const std::uint32_t start = here();
  HintItem result{};
  if (accept(Keyword::kw_slice)) {
    result.subject = name("an index after SLICE");
    if (accept(Keyword::kw_of)) result.tensor = name("a tensor after OF");
  } else if (accept(Keyword::kw_replicate)) {
    result.kind = HintKind::replicate;
    result.subject = name("a tensor after REPLICATE");
  } else {
    const auto* const word = std::ranges::find_if(
        kParallelisms, [&](std::string_view name) { return same_word(lexeme(token_.span), name); });
    if (word == std::end(kParallelisms)) {
      static constexpr auto kHints =
          std::to_array<std::string_view>({"SLICE", "REPLICATE", "TP", "DP", "PP", "EP", "CP", "ZERO"});
      fail_expected("SLICE, REPLICATE, DP, TP, PP, EP, CP or ZERO", remedy(kHints));
      return result;
    }
    const auto kind = static_cast<std::size_t>(word - std::begin(kParallelisms));
    result.kind = static_cast<HintKind>(static_cast<std::size_t>(HintKind::data) + kind);
    advance();
    const bool is_zero = result.kind == HintKind::zero;
    result.degree =
        whole_number(is_zero ? "the stage of ZeRO, 0, 1 or 3" : "a number of ranks", is_zero ? 0 : 1);
    result.within = !is_zero && accept(Keyword::kw_within);
    if (result.within || (!is_zero && accept(Keyword::kw_on)))
      result.axis = name("an axis of the cluster, such as node");
    result.span = since(start);
    return result;
  }
  expect(Keyword::kw_across, "and an axis of the cluster");
  result.axis = name("an axis of the cluster, such as node");
  result.span = since(start);
  return result;
}

const Statement* Grammar::show() {
  const std::uint32_t start = here();
  advance();
  const Name what = name("what to show, such as MODELS");
  expect_end({});
  return make<Show>(start, what);
}

const Statement* Grammar::clear() {
  const std::uint32_t start = here();
  advance();
  const Name what = name("what to clear, such as STATISTICS");
  expect_end({});
  return make<Clear>(start, what);
}

const Statement* Grammar::describe() {
  const std::uint32_t start = here();
  advance();
  const Name described = name("what to describe");
  const auto with = with_settings();
  expect_end({Keyword::kw_with});
  return make<Describe>(start, described, with);
}

const Statement* Grammar::save() {
  const std::uint32_t start = here();
  advance();
  const Name saved = name("a model name");
  expect(Keyword::kw_to, "and a file name");
  const Text file = text("a file name in quotes after TO");
  expect_end({});
  return make<Save>(start, saved, file);
}

const Statement* Grammar::load() {
  const std::uint32_t start = here();
  advance();
  const Name loaded = name("a model name");
  expect(Keyword::kw_from, "and a file name");
  const Text file = text("a file name in quotes after FROM");
  expect_end({});
  return make<Load>(start, loaded, file);
}

const Statement* Grammar::run_file() {
  const std::uint32_t start = here();
  advance();
  const Text file = text("a script's name in quotes after RUN");
  expect_end({});
  return make<RunFile>(start, file);
}

const Statement* Grammar::synthesize() {
  const std::uint32_t start = here();
  advance();
  const Name collective = name("a collective, such as ALLGATHER");
  expect(Keyword::kw_on, "and a cluster");
  const Name on = name("a cluster name");
  std::optional<Setting> sketch;
  if (at(Kind::word) && same_word(lexeme(token_.span), "USING")) {
    advance();
    const Span word = token_.span;
    if (!at(Kind::word) || !same_word(lexeme(word), "SKETCH"))
      fail_expected("SKETCH after USING", "write USING SKETCH 'sketch.json'");
    else
      advance();
    const Text file = text("a sketch's file name in quotes");
    sketch = Setting{{"sketch", word}, {}};
    sketch->value.kind = ValueKind::text;
    sketch->value.text = file.text;
    sketch->value.span = file.span;
  }
  auto with = with_settings();
  if (sketch) {
    std::vector<Setting> both(with.begin(), with.end());
    both.insert(both.begin(), *sketch);
    with = arena_.copy(std::span<const Setting>(both));
  }
  expect_end({Keyword::kw_with});
  return make<Synthesize>(start, collective, on, with);
}

}  // namespace weft::language
