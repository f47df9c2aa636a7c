#include "weft/runtime/run/table_feed.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/base/units.h"
#include "weft/formats/data_file.h"
#include "weft/runtime/run/epoch_orders.h"

namespace weft::run {
namespace {

template <class T>
void add_bytes(Hasher& hasher, std::span<const T> values) {
  hasher.text({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

class TableFeed final : public Feed {
 public:
  // `parts` is empty if inputs start with the batch index. Otherwise an example is a whole row of
  // the table, and parts[f] is the size of input f's first index, which divides its field.
  TableFeed(std::span<const DataFile> files, formats::Table table, std::int64_t batch,
            std::vector<std::int64_t> parts, const FeedOptions& options)
      : recipe_(file_recipe(files, options)),
        table_(std::move(table)),
        batch_(batch),
        parts_(std::move(parts)),
        seed_(options.seed),
        train_rows_(table_.rows() - options.holdout),
        test_first_(options.holdout > 0 ? train_rows_ : 0),
        rows_(in_file_order(table_.rows())),
        orders_(train_rows_, seed_) {
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
    const EpochOrders::Order order = orders_.of(step / batches);
    const std::int64_t first = step % batches * batch_;
    for (std::size_t f = 0; f < inputs.size(); ++f) {
      if (!parts_.empty()) write_parts(inputs[f], f, row_at((*order)[static_cast<std::size_t>(first)]));
      for (std::int64_t i = 0; parts_.empty() && i < inputs[f].rows; ++i)
        write_field(inputs[f], f, i, row_at((*order)[static_cast<std::size_t>(first + inputs[f].first + i)]));
    }
  }

  std::int64_t test_examples() const override { return table_.rows() - test_first_; }

  void fill_test(exec::Rank& rank, std::int64_t first) const override {
    const std::vector<InputMemory> inputs = memory_of(rank, input_names());
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

  // The seed selects the held-out rows; both sets stay in file order.
  void draw_holdout() {
    Random random(seed_, kHoldoutStream);
    for (std::size_t i = rows_.size(); i > 1; --i) std::swap(rows_[i - 1], rows_[random.below(i)]);
    const auto middle = rows_.begin() + train_rows_;
    std::sort(rows_.begin(), middle);
    std::sort(middle, rows_.end());
  }

  void write_field(const InputMemory& input, std::size_t f, std::int64_t at, std::int64_t row) const {
    const std::int64_t width = table_.fields()[f].width;
    write_run(input, f, row, at * width, 0, width);
  }

  // Writes the range of an example's first index that the input holds.
  void write_parts(const InputMemory& input, std::size_t f, std::int64_t row) const {
    const std::int64_t width = table_.fields()[f].width / parts_[f];
    write_run(input, f, row, 0, input.first * width, input.rows * width);
  }

  // Copies `count` elements of a row's field, starting at `begin`, to the input, starting at
  // element `at`.
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
  std::vector<std::int64_t> rows_;  // row numbers: training rows, then held-out rows
  const EpochOrders orders_;
};

template <class T>
Status check_whole(const formats::Table& table, std::size_t field, const FeedInput& input,
                   const std::string& path) {
  const std::span<const T> values = table.values<T>(field);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool low = values[i] < 0 && !input.may_be_negative;
    if (!low && (input.limit == 0 || values[i] < static_cast<T>(input.limit))) continue;
    return user_error(fmt::format("{} row {}: {} is {}, expected 0 to {}", path,
                                  static_cast<std::int64_t>(i) / table.fields()[field].width + 1, input.name,
                                  values[i], input.limit - 1),
                      "the model's sizes set the range");
  }
  return {};
}

// Tables store these types as f32 and round once.
bool is_half(plan::DType dtype) { return dtype == plan::DType::f16 || dtype == plan::DType::bf16; }

// Reads the rows of all inputs, from one file or from one file per input.
Result<formats::Table> read_tables(std::span<const DataFile> files, std::span<const formats::Field> fields) {
  if (files.size() == 1 && files[0].input.empty()) return formats::read_table(files[0].path, fields);
  std::vector<formats::Table> tables;
  for (const formats::Field& field : fields) {
    const auto file = std::ranges::find(files, field.name, &DataFile::input);
    WEFT_TRY(table, formats::read_table(file->path, {&field, 1}));
    if (!tables.empty() && table.rows() != tables[0].rows())
      return user_error(
          fmt::format("expected equal numbers of rows, found {} of {} and {} of {}",
                      print_exact(tables[0].rows()), fields[0].name, print_exact(table.rows()), field.name),
          "each file needs one row per example");
    tables.push_back(std::move(table));
  }
  return formats::side_by_side(std::move(tables));
}

}  // namespace

Result<std::unique_ptr<Feed>> open_table(std::span<const DataFile> files, const plan::Graph& graph,
                                         std::span<const FeedInput> inputs, const FeedOptions& options) {
  WEFT_TRY_STATUS(check_inputs(graph, inputs));
  // Without a batch index, an example is all of every input, and a step reads one.
  const bool batched = has_batch(inputs);
  const std::int64_t batch = batched ? inputs[0].type.dims[0].size : 1;
  std::vector<formats::Field> fields;
  for (const FeedInput& input : inputs) {
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
    error.hint = "inputs that begin with different indices have no batch: each row holds all of every input";
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
  std::vector<std::int64_t> parts;  // size of each input's first index
  for (const FeedInput& input : inputs)
    parts.push_back(batched || input.type.rank() == 0 ? 1 : input.type.dims[0].size);
  const std::int64_t rows = table.rows() - options.holdout;
  if (rows < (options.partial_batches ? 0 : batch))
    return user_error(
        fmt::format("{} has {} rows{}, but a step needs {}", files[0].path, print_exact(table.rows()),
                    options.holdout > 0 ? fmt::format(", {} of them held out", print_exact(options.holdout))
                                        : std::string(),
                    batch),
        options.holdout > 0 ? std::string("a smaller holdout leaves more to train on")
        : batched
            ? fmt::format("WITH ({} = ...) sets the batch size", graph.text(inputs[0].type.dims[0].index))
            : std::string("each row holds the numbers of every INPUT, in order"));
  return std::unique_ptr<Feed>(
      new TableFeed(files, std::move(table), batch, batched ? std::vector<std::int64_t>() : parts, options));
}

}  // namespace weft::run
