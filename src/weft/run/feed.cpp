#include "weft/run/feed.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/nearest.h"
#include "weft/base/random.h"
#include "weft/base/units.h"
#include "weft/device/element_access.h"
#include "weft/formats/data_file.h"
#include "weft/ops/operators.h"

namespace weft::run {
namespace {

using nlohmann::json;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

struct Input {
  std::string name;
  plan::Type type;
  ValueId value;
  // Whole numbers must be below it: they pick rows of a table or name classes. 0: no limit known.
  std::int64_t limit = 0;
  bool may_be_negative = false;  // a label that says "ignore this row"
};

// What reads a value, looking through views.
void find_limit(const plan::Graph& graph, ValueId value, Input& input) {
  for (std::size_t n = graph.value(value).producer.value + 1; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      if (node.input(i) != value) continue;
      std::int64_t limit = 0;
      if (&node.op() == &ops::gather() && i == 0) limit = node.input_type(1).size_of(node.symbol(0));
      if (&node.op() == &ops::cross_entropy() && i == 1) {
        limit = node.input_type(0).size_of(node.symbol(0));
        input.may_be_negative = true;
      }
      // Where classes are cut the loss is written out; what counts its rows still says that these are labels.
      if (&node.op() == &ops::labelled()) {
        limit = node.integer(0);
        input.may_be_negative = true;
      }
      if (limit > 0) input.limit = input.limit == 0 ? limit : std::min(input.limit, limit);
      if (node.op().is_view()) find_limit(graph, node.result(0), input);
    }
  }
}

std::vector<Input> inputs_of(const plan::Graph& graph) {
  std::vector<Input> inputs;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (&node.op() != &ops::input()) continue;
    inputs.push_back({std::string(node.word(0)), node.result_type(0), node.result(0)});
    if (plan::is_integer(inputs.back().type.dtype)) find_limit(graph, node.result(0), inputs.back());
  }
  return inputs;
}

std::vector<InputMemory> memory_of(exec::Rank& rank) {
  std::vector<InputMemory> inputs;
  for (const program::Port& port : rank.program().inputs)
    inputs.push_back(
        {port.place.dtype, rank.input(port), 0, port.place.axes.empty() ? 1 : port.place.axes[0].size});
  return inputs;
}

// Numbers become the elements of an input, from element `first` on.
template <class T>
void write_numbers(const InputMemory& input, std::int64_t first, std::span<const T> numbers) {
  const plan::DType dtype = input.dtype;
  std::byte* memory = input.bytes.data();
  const bool same = (std::is_same_v<T, float> && dtype == plan::DType::f32) ||
                    (std::is_same_v<T, double> && dtype == plan::DType::f64) ||
                    (std::is_same_v<T, std::int32_t> && dtype == plan::DType::i32) ||
                    (std::is_same_v<T, std::int64_t> && dtype == plan::DType::i64);
  if (same) {
    std::memcpy(memory + first * static_cast<std::int64_t>(sizeof(T)), numbers.data(), numbers.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < numbers.size(); ++i)
    device::store_element(dtype, memory, first + static_cast<std::int64_t>(i),
                          static_cast<double>(numbers[i]));
}

std::string file_recipe(std::span<const DataFile> files, const FeedOptions& options) {
  json list = json::array();
  for (const DataFile& file : files) list.push_back({file.input, file.path});
  return json{{"files", list},
              {"holdout", options.holdout},
              {"seed", options.seed},
              {"partial_batches", options.partial_batches},
              {"holdout_drawn", options.holdout_drawn}}
      .dump();
}

template <class T>
void add_bytes(Hasher& hasher, std::span<const T> values) {
  hasher.text({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

constexpr std::uint64_t kHoldoutStream = ~std::uint64_t{0};  // no epoch's, no step's

class TableFeed final : public Feed {
 public:
  // `parts` is empty where inputs begin with the batch's index; else into how many parts an input's first index
  // cuts its field, and an example is all of them.
  TableFeed(std::span<const DataFile> files, formats::Table table, std::int64_t batch,
            std::vector<std::int64_t> parts, const FeedOptions& options)
      : recipe_(file_recipe(files, options)),
        table_(std::move(table)),
        batch_(batch),
        parts_(std::move(parts)),
        seed_(options.seed),
        train_rows_(table_.rows() - options.holdout),
        test_first_(options.holdout > 0 ? train_rows_ : 0),
        rows_(in_file_order(table_.rows())) {
    order_.resize(static_cast<std::size_t>(train_rows_));
    if (options.holdout > 0 && options.holdout_drawn) draw_holdout();
  }

  std::string recipe() const override { return recipe_; }
  Digest digest() const override {
    Hasher hasher;
    hasher.number(seed_).number(static_cast<std::uint64_t>(batch_));
    for (const std::int64_t row : {table_.rows(), train_rows_})
      hasher.number(static_cast<std::uint64_t>(row));
    for (std::size_t f = 0; f < table_.fields().size(); ++f) {
      const plan::DType dtype = table_.fields()[f].dtype;
      if (dtype == plan::DType::f32) add_bytes(hasher, table_.values<float>(f));
      if (dtype == plan::DType::f64) add_bytes(hasher, table_.values<double>(f));
      if (dtype == plan::DType::i32) add_bytes(hasher, table_.values<std::int32_t>(f));
      if (dtype == plan::DType::i64) add_bytes(hasher, table_.values<std::int64_t>(f));
    }
    return hasher.number(rows_.empty() ? 0 : static_cast<std::uint64_t>(rows_.back())).digest();
  }
  std::string_view example() const override { return "rows"; }
  std::int64_t examples_per_step() const override { return batch_; }
  bool has_batch() const override { return parts_.empty(); }

  void fill(std::span<const InputMemory> inputs, std::int64_t step) const override {
    const std::int64_t batches = train_rows_ / batch_;
    shuffle(step / batches);
    const std::int64_t first = step % batches * batch_;
    for (std::size_t f = 0; f < inputs.size(); ++f) {
      if (!parts_.empty()) write_parts(inputs[f], f, row_at(order_[static_cast<std::size_t>(first)]));
      for (std::int64_t i = 0; parts_.empty() && i < inputs[f].rows; ++i)
        write_field(inputs[f], f, i, row_at(order_[static_cast<std::size_t>(first + inputs[f].first + i)]));
    }
  }

  std::int64_t test_examples() const override { return table_.rows() - test_first_; }

  void fill_test(exec::Rank& rank, std::int64_t first) const override {
    const std::vector<InputMemory> inputs = memory_of(rank);
    for (std::size_t f = 0; f < inputs.size(); ++f) {
      if (!parts_.empty()) write_parts(inputs[f], f, row_at(test_first_ + first));
      for (std::int64_t i = 0; parts_.empty() && i < inputs[f].rows; ++i)
        write_field(inputs[f], f, i, row_at(test_first_ + first + i));
    }
  }

 private:
  static std::vector<std::int64_t> in_file_order(std::int64_t rows) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    return order;
  }

  std::int64_t row_at(std::int64_t place) const { return rows_[static_cast<std::size_t>(place)]; }

  // Which rows are held out goes by the seed; within both parts they stay in the file's order.
  void draw_holdout() {
    Random random(seed_, kHoldoutStream);
    for (std::size_t i = rows_.size(); i > 1; --i) std::swap(rows_[i - 1], rows_[random.below(i)]);
    const auto middle = rows_.begin() + train_rows_;
    std::sort(rows_.begin(), middle);
    std::sort(middle, rows_.end());
  }

  // The order of an epoch: every one is drawn from the rows' own order, so any can be had first. Ranks that are
  // threads share the feed, and begin an epoch together.
  void shuffle(std::int64_t epoch) const {
    const std::lock_guard lock(shuffling_);
    if (epoch == epoch_) return;
    epoch_ = epoch;
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    Random random(seed_, static_cast<std::uint64_t>(epoch));
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
  }

  void write_field(const InputMemory& input, std::size_t f, std::int64_t at, std::int64_t row) const {
    const std::int64_t width = table_.fields()[f].width;
    write_run(input, f, row, at * width, 0, width);
  }

  // Those of the parts of an example that an input takes.
  void write_parts(const InputMemory& input, std::size_t f, std::int64_t row) const {
    const std::int64_t width = table_.fields()[f].width / parts_[f];
    write_run(input, f, row, 0, input.first * width, input.rows * width);
  }

  // `count` elements of a row's field, from `begin` on, to the input's elements from `at` on.
  void write_run(const InputMemory& input, std::size_t f, std::int64_t row, std::int64_t at,
                 std::int64_t begin, std::int64_t count) const {
    const auto from = static_cast<std::size_t>(begin), n = static_cast<std::size_t>(count);
    const plan::DType dtype = table_.fields()[f].dtype;
    if (dtype == plan::DType::f32)
      write_numbers(input, at, table_.row<float>(f, row).subspan(from, n));
    else if (dtype == plan::DType::f64)
      write_numbers(input, at, table_.row<double>(f, row).subspan(from, n));
    else if (dtype == plan::DType::i32)
      write_numbers(input, at, table_.row<std::int32_t>(f, row).subspan(from, n));
    else
      write_numbers(input, at, table_.row<std::int64_t>(f, row).subspan(from, n));
  }

  const std::string recipe_;
  const formats::Table table_;
  const std::int64_t batch_;
  const std::vector<std::int64_t> parts_;
  const std::uint64_t seed_;
  const std::int64_t train_rows_, test_first_;
  std::vector<std::int64_t> rows_;  // of the file: those to train on, then those held out
  mutable std::vector<std::int64_t> order_;
  mutable std::int64_t epoch_ = -1;
  mutable std::mutex shuffling_;
};

// Tokens are bytes; the second input, where there is one, is what comes next.
class TextFeed final : public Feed {
 public:
  TextFeed(const DataFile& file, std::string text, std::int64_t batch, std::int64_t length,
           const FeedOptions& options)
      : recipe_(file_recipe({&file, 1}, options)),
        text_(std::move(text)),
        batch_(batch),
        length_(length),
        seed_(options.seed),
        train_bytes_(static_cast<std::int64_t>(text_.size()) - options.holdout),
        held_out_(options.holdout),
        test_first_(options.holdout == 0    ? 0
                    : options.holdout_drawn ? drawn_place()
                                            : train_bytes_) {}

  std::string recipe() const override { return recipe_; }
  Digest digest() const override {
    Hasher hasher;
    for (const std::int64_t number : {batch_, length_, train_bytes_, test_first_})
      hasher.number(static_cast<std::uint64_t>(number));
    return hasher.number(seed_).text(text_).digest();
  }
  std::string_view example() const override { return "tokens"; }
  std::int64_t examples_per_step() const override { return batch_ * length_; }

  void fill(std::span<const InputMemory> inputs, std::int64_t step) const override {
    Random random(seed_, static_cast<std::uint64_t>(step));
    for (std::int64_t i = 0; i < batch_; ++i) write_window(inputs, i, window_at(random));
  }

  std::int64_t test_examples() const override {
    const std::int64_t bytes = held_out_ > 0 ? held_out_ : static_cast<std::int64_t>(text_.size());
    return (bytes - 1) / length_;
  }

  void fill_test(exec::Rank& rank, std::int64_t first) const override {
    const std::vector<InputMemory> inputs = memory_of(rank);
    const std::int64_t batch = rank.program().inputs[0].place.axes[0].size;
    for (std::int64_t i = 0; i < batch; ++i) write_window(inputs, i, test_first_ + (first + i) * length_);
  }

 private:
  // Where a stretch of that length is held out: before or behind it there is room to train.
  std::int64_t drawn_place() const {
    const std::int64_t longer = length_ + 1, last = train_bytes_;
    if (last < 2 * longer) return last;  // no room on both sides: at the end
    return longer +
           static_cast<std::int64_t>(
               Random(seed_, kHoldoutStream).below(static_cast<std::uint64_t>(last - 2 * longer + 1)));
  }

  // Anywhere, but not over what is held out.
  std::int64_t window_at(Random& random) const {
    if (held_out_ == 0 || test_first_ == train_bytes_)
      return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(train_bytes_ - length_)));
    const std::int64_t before = test_first_ - length_, after = train_bytes_ - test_first_ - length_;
    const auto drawn = static_cast<std::int64_t>(
        random.below(static_cast<std::uint64_t>(before + std::max<std::int64_t>(after, 0))));
    return drawn < before ? drawn : test_first_ + held_out_ + drawn - before;
  }

  // The batch's row `at`, for those that take it.
  void write_window(std::span<const InputMemory> inputs, std::int64_t at, std::int64_t begin) const {
    for (std::size_t further = 0; further < inputs.size(); ++further) {
      const InputMemory& input = inputs[further];
      const std::int64_t row = at - input.first;
      if (row < 0 || row >= input.rows) continue;
      for (std::int64_t i = 0; i < length_; ++i) {
        const auto byte = static_cast<unsigned char>(text_[static_cast<std::size_t>(begin + i) + further]);
        device::store_element(input.dtype, input.bytes.data(), row * length_ + i, byte);
      }
    }
  }

  const std::string recipe_, text_;
  const std::int64_t batch_, length_;
  const std::uint64_t seed_;
  const std::int64_t train_bytes_, held_out_, test_first_;
};

// To be measured with, so making them up must cost no more than reading: all come from one supply, which
// every input of every step reads from another place on.
class MadeUpFeed final : public Feed {
 public:
  MadeUpFeed(std::vector<Input> inputs, std::uint64_t seed) : inputs_(std::move(inputs)), seed_(seed) {
    for (std::size_t i = 0; i < kSupply; ++i) supply_.push_back(uniform_at(seed, 0, i));
  }

  // With the limits of its own plan: another plan of the same inputs may read them otherwise.
  std::string recipe() const override {
    json limits = json::array();
    for (const Input& input : inputs_) limits.push_back(input.limit);
    return json{{"made_up", seed_}, {"limits", limits}}.dump();
  }
  Digest digest() const override { return Hasher().text(recipe()).digest(); }
  std::string_view example() const override { return "rows"; }
  std::int64_t examples_per_step() const override {
    return inputs_.empty() || inputs_[0].type.rank() == 0 ? 1 : inputs_[0].type.dims[0].size;
  }

  void fill(std::span<const InputMemory> inputs, std::int64_t step) const override {
    Random random(seed_, static_cast<std::uint64_t>(step));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::uint64_t from = random.below(kSupply);
      const std::int64_t row = row_elements(inputs_[i].type);
      const auto first = static_cast<std::uint64_t>(inputs[i].first * row);
      if (plan::is_real(inputs[i].dtype))
        write_reals(inputs[i], from + first, inputs[i].rows * row);
      else
        write_wholes(inputs[i], from + first, inputs[i].rows * row, inputs_[i].limit);
    }
  }

  std::int64_t test_examples() const override { return 0; }
  void fill_test(exec::Rank&, std::int64_t) const override {}

 private:
  static constexpr std::size_t kSupply = 65'521;  // prime: no row is like the one before

  static std::int64_t row_elements(const plan::Type& type) {
    return type.rank() == 0 || type.elements() == 0 ? 1 : type.elements() / type.dims[0].size;
  }

  void write_reals(const InputMemory& input, std::uint64_t from, std::int64_t elements) const {
    for (std::int64_t done = 0; done < elements;) {
      const std::size_t at = (from + static_cast<std::uint64_t>(done)) % kSupply;
      const std::size_t run = std::min(kSupply - at, static_cast<std::size_t>(elements - done));
      write_numbers(input, done, std::span(supply_).subspan(at, run));
      done += static_cast<std::int64_t>(run);
    }
  }

  void write_wholes(const InputMemory& input, std::uint64_t from, std::int64_t elements,
                    std::int64_t limit) const {
    const double below = limit > 0 ? static_cast<double>(limit) : 2;
    for (std::int64_t k = 0; k < elements; ++k)
      device::store_element(
          input.dtype, input.bytes.data(), k,
          std::floor(static_cast<double>(supply_[(from + static_cast<std::uint64_t>(k)) % kSupply]) * below));
  }

  const std::vector<Input> inputs_;
  const std::uint64_t seed_;
  std::vector<float> supply_;
};

bool is_table(std::string_view path) {
  if (path.ends_with(".gz")) path.remove_suffix(3);
  return path.ends_with(".csv") || path.ends_with(".npy") || path.ends_with(".npz");
}

bool begin_alike(const Input& a, const Input& b) {
  return a.type.rank() > 0 && b.type.rank() > 0 && a.type.dims[0].index == b.type.dims[0].index;
}

// Whether the inputs begin with one index, that of the examples in a batch. A graph's do not: its nodes and its
// edges are counted apart.
bool has_batch(std::span<const Input> inputs) {
  return std::ranges::all_of(inputs, [&](const Input& input) { return begin_alike(input, inputs[0]); });
}

Status check_inputs(const plan::Graph& graph, std::span<const Input> inputs) {
  if (!inputs.empty()) return {};
  return user_error(fmt::format("{} has no INPUT to feed data to", graph.name),
                    "a model learns from its INPUTs");
}

// How many examples a batch takes: the first index of every input.
Result<std::int64_t> batch_of(const plan::Graph& graph, std::span<const Input> inputs) {
  WEFT_TRY_STATUS(check_inputs(graph, inputs));
  for (const Input& input : inputs) {
    if (begin_alike(input, inputs[0])) continue;
    return user_error(fmt::format("every input must begin with the batch's index: {} is {}, {} is {}",
                                  inputs[0].name, plan::print(inputs[0].type, graph.symbols()), input.name,
                                  plan::print(input.type, graph.symbols())),
                      "write the index of the examples first");
  }
  return inputs[0].type.dims[0].size;
}

template <class T>
Status check_whole(const formats::Table& table, std::size_t field, const Input& input,
                   const std::string& path) {
  const std::span<const T> values = table.values<T>(field);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool low = values[i] < 0 && !input.may_be_negative;
    if (!low && (input.limit == 0 || values[i] < static_cast<T>(input.limit))) continue;
    return user_error(fmt::format("{} row {}: {} is {}, expected 0 to {}", path,
                                  static_cast<std::int64_t>(i) / table.fields()[field].width + 1, input.name,
                                  values[i], input.limit - 1),
                      "the model's sizes say how many there are");
  }
  return {};
}

// A table holds it as f32, from which it is rounded once.
bool is_half(plan::DType dtype) { return dtype == plan::DType::f16 || dtype == plan::DType::bf16; }

// The rows of all inputs, out of one file or one for each.
Result<formats::Table> read_tables(std::span<const DataFile> files, std::span<const formats::Field> fields) {
  if (files.size() == 1 && files[0].input.empty()) return formats::read_table(files[0].path, fields);
  std::vector<formats::Table> tables;
  for (const formats::Field& field : fields) {
    const auto file = std::ranges::find(files, field.name, &DataFile::input);
    WEFT_TRY(table, formats::read_table(file->path, {&field, 1}));
    if (!tables.empty() && table.rows() != tables[0].rows())
      return user_error(fmt::format("there are {} rows of {} and {} of {}", print_exact(tables[0].rows()),
                                    fields[0].name, print_exact(table.rows()), field.name),
                        "every example has a row in each file");
    tables.push_back(std::move(table));
  }
  return formats::side_by_side(std::move(tables));
}

// Each input has a file, and each file an input.
Status check_files(std::span<const DataFile> files, std::span<const Input> inputs) {
  if (files.size() == 1 && files[0].input.empty()) return {};
  std::vector<std::string_view> names;
  for (const Input& input : inputs) names.push_back(input.name);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (std::ranges::find(names, files[i].input) == names.end()) {
      std::string hint = did_you_mean(files[i].input, names);
      return user_error(fmt::format("no input is named {}", files[i].input),
                        hint.empty() ? fmt::format("inputs are {}", fmt::join(names, ", ")) : hint);
    }
    if (std::ranges::find(files.first(i), files[i].input, &DataFile::input) != files.first(i).end())
      return user_error(fmt::format("input {} has two files", files[i].input), "take one of them away");
    if (!is_table(files[i].path))
      return user_error(fmt::format("{} is no table, and feeds no input by itself", files[i].path),
                        "files for single inputs end in .csv, .npy or .npz");
  }
  for (const std::string_view name : names)
    if (std::ranges::find(files, name, &DataFile::input) == files.end())
      return user_error(fmt::format("input {} has no file", name),
                        fmt::format("add {} = 'file.npy' to FROM", name));
  return {};
}

Result<std::unique_ptr<Feed>> open_table(std::span<const DataFile> files, const plan::Graph& graph,
                                         std::span<const Input> inputs, const FeedOptions& options) {
  WEFT_TRY_STATUS(check_inputs(graph, inputs));
  // Without a batch an example is all there is of every input, and a step takes one.
  const bool batched = has_batch(inputs);
  const std::int64_t batch = batched ? inputs[0].type.dims[0].size : 1;
  std::vector<formats::Field> fields;
  for (const Input& input : inputs) {
    if (input.type.dtype == plan::DType::boolean)
      return user_error(fmt::format("input {} is bool, which a table does not hold", input.name),
                        "declare it OF int32");
    fields.push_back({input.name, input.type.elements() / batch,
                      is_half(input.type.dtype) ? plan::DType::f32 : input.type.dtype});
    for (const plan::Dim& dim : input.type.dims.subspan(batched ? 1 : 0))
      fields.back().shape.push_back(dim.size);
  }
  auto read = read_tables(files, fields);
  if (!read.ok() && !batched && read.error().fault == Fault::user) {
    Error error = std::move(read).error();
    error.hint = "inputs that begin with different indices have no batch: a row has all of every input";
    return error;
  }
  WEFT_TRY(table, std::move(read));
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const auto own = std::ranges::find(files, fields[f].name, &DataFile::input);
    const std::string& path = own != files.end() ? own->path : files[0].path;
    if (fields[f].dtype == plan::DType::i32)
      WEFT_TRY_STATUS(check_whole<std::int32_t>(table, f, inputs[f], path));
    if (fields[f].dtype == plan::DType::i64)
      WEFT_TRY_STATUS(check_whole<std::int64_t>(table, f, inputs[f], path));
  }
  std::vector<std::int64_t> parts;  // of a field, that an input's first index counts
  for (const Input& input : inputs)
    parts.push_back(batched || input.type.rank() == 0 ? 1 : input.type.dims[0].size);
  const std::int64_t rows = table.rows() - options.holdout;
  if (rows < (options.partial_batches ? 0 : batch))
    return user_error(
        fmt::format("{} has {} rows{}, a step takes {}", files[0].path, print_exact(table.rows()),
                    options.holdout > 0 ? fmt::format(", {} of them held out", print_exact(options.holdout))
                                        : std::string(),
                    batch),
        options.holdout > 0 ? std::string("a smaller holdout leaves more to train on")
        : batched           ? fmt::format("WITH ({} = ...) sets how many a step takes",
                                          graph.text(inputs[0].type.dims[0].index))
                  : std::string("a row has all the numbers of every INPUT, one INPUT after the other"));
  return std::unique_ptr<Feed>(
      new TableFeed(files, std::move(table), batch, batched ? std::vector<std::int64_t>() : parts, options));
}

Result<std::unique_ptr<Feed>> open_text(const DataFile& file, const plan::Graph& graph,
                                        std::span<const Input> inputs, const FeedOptions& options) {
  const std::string& path = file.path;
  WEFT_TRY(batch, batch_of(graph, inputs));
  const bool fits = inputs.size() <= 2 && std::ranges::all_of(inputs, [&](const Input& input) {
                      return plan::is_integer(input.type.dtype) && input.type.rank() == 2 &&
                             std::ranges::equal(input.type.dims, inputs[0].type.dims);
                    });
  if (!fits)
    return user_error(
        fmt::format("{} is read as text, which feeds models with inputs tokens[batch, position] and "
                    "targets[batch, position] of whole numbers; {} has {} of {}",
                    path, graph.name, inputs[0].name, plan::print(inputs[0].type, graph.symbols())),
        "tables end in .csv, .npy or .npz, or these with .gz");
  WEFT_TRY(text, formats::read_text(path));
  const std::int64_t length = inputs[0].type.dims[1].size;
  const auto bytes = static_cast<std::int64_t>(text.size());
  if (bytes - options.holdout < length + 1 || (options.holdout > 0 && options.holdout < length + 1))
    return user_error(
        fmt::format("{} has {} bytes{}, an example takes {}", path, print_exact(bytes),
                    options.holdout > 0 ? fmt::format(", {} of them held out", print_exact(options.holdout))
                                        : std::string(),
                    length + 1),
        options.holdout > 0
            ? std::string("the part held out and the rest must each hold an example: choose another holdout")
            : fmt::format("WITH ({} = ...) sets how long one is", graph.text(inputs[0].type.dims[1].index)));
  for (const Input& input : inputs) {
    if (input.limit == 0 || input.limit > 255) continue;
    for (std::size_t i = 0; i < text.size(); ++i)
      if (static_cast<unsigned char>(text[i]) >= input.limit)
        return user_error(fmt::format("{} byte {} is {}, {} takes 0 to {}", path, i,
                                      static_cast<unsigned char>(text[i]), input.name, input.limit - 1),
                          "a model of bytes has 256 tokens");
  }
  return std::unique_ptr<Feed>(new TextFeed(file, std::move(text), batch, length, options));
}

}  // namespace

void Feed::fill(exec::Rank& rank, std::int64_t step) const { fill(memory_of(rank), step); }

Result<std::unique_ptr<Feed>> open_feed(std::span<const DataFile> files, const plan::Graph& graph,
                                        const FeedOptions& options) {
  WEFT_CHECK(!files.empty());
  const std::vector<Input> inputs = inputs_of(graph);
  WEFT_TRY_STATUS(check_files(files, inputs));
  return is_table(files[0].path) ? open_table(files, graph, inputs, options)
                                 : open_text(files[0], graph, inputs, options);
}

Result<std::unique_ptr<Feed>> open_feed(const std::string& path, const plan::Graph& graph,
                                        const FeedOptions& options) {
  const DataFile file{{}, path};
  return open_feed({&file, 1}, graph, options);
}

std::unique_ptr<Feed> made_up_feed(const plan::Graph& graph, std::uint64_t seed) {
  return std::make_unique<MadeUpFeed>(inputs_of(graph), seed);
}

Result<std::unique_ptr<Feed>> open_recipe(const std::string& recipe, const plan::Graph& graph) {
  const json read = json::parse(recipe);
  if (read.contains("files")) {
    std::vector<DataFile> files;
    for (const json& file : read.at("files")) files.push_back({file.at(0), file.at(1)});
    return open_feed(files, graph,
                     {.holdout = read.at("holdout"),
                      .seed = read.at("seed"),
                      .partial_batches = read.at("partial_batches"),
                      .holdout_drawn = read.at("holdout_drawn")});
  }
  std::vector<Input> inputs = inputs_of(graph);
  const json& limits = read.at("limits");
  WEFT_CHECK(limits.size() == inputs.size(), "a recipe of other inputs");
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i].limit = limits[i];
  return std::unique_ptr<Feed>(new MadeUpFeed(std::move(inputs), read.at("made_up")));
}

}  // namespace weft::run
