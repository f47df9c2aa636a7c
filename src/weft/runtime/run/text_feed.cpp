#include "weft/runtime/run/text_feed.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/base/units.h"
#include "weft/formats/data_file.h"

namespace weft::run {
namespace {

// Tokens are bytes; the second input, if there is one, holds the next bytes.
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
    const std::vector<InputMemory> inputs = memory_of(rank, input_names());
    const std::int64_t batch = rank.program().inputs[0].place.axes[0].size;
    for (std::int64_t i = 0; i < batch; ++i) write_window(inputs, i, test_first_ + (first + i) * length_);
  }

 private:
  // Where the held-out range starts; there is room for a training window before or after it.
  std::int64_t drawn_place() const {
    const std::int64_t longer = length_ + 1, last = train_bytes_;
    if (last < 2 * longer) return last;  // too little room on both sides: at the end
    return longer +
           static_cast<std::int64_t>(
               Random(seed_, kHoldoutStream).below(static_cast<std::uint64_t>(last - 2 * longer + 1)));
  }

  // A random position that does not overlap the held-out range.
  std::int64_t window_at(Random& random) const {
    if (held_out_ == 0 || test_first_ == train_bytes_)
      return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(train_bytes_ - length_)));
    const std::int64_t before = test_first_ - length_, after = train_bytes_ - test_first_ - length_;
    const auto drawn = static_cast<std::int64_t>(
        random.below(static_cast<std::uint64_t>(before + std::max<std::int64_t>(after, 0))));
    return drawn < before ? drawn : test_first_ + held_out_ + drawn - before;
  }

  // Writes row `at` of the batch to the inputs that contain it.
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

}  // namespace

Result<std::unique_ptr<Feed>> open_text(const DataFile& file, const plan::Graph& graph,
                                        std::span<const FeedInput> inputs, const FeedOptions& options) {
  const std::string& path = file.path;
  WEFT_TRY(batch, batch_of(graph, inputs));
  const bool fits = inputs.size() <= 2 && std::ranges::all_of(inputs, [&](const FeedInput& input) {
                      return plan::is_integer(input.type.dtype) && input.type.rank() == 2 &&
                             std::ranges::equal(input.type.dims, inputs[0].type.dims);
                    });
  if (!fits)
    return user_error(
        fmt::format("{} is read as text, which needs inputs tokens[batch, position] and targets[batch, "
                    "position] of whole numbers; {} has {} of {}",
                    path, graph.name, inputs[0].name, plan::print(inputs[0].type, graph.symbols())),
        "tables end in .csv, .npy or .npz, or these with .gz");
  WEFT_TRY(text, formats::read_text(path));
  const std::int64_t length = inputs[0].type.dims[1].size;
  const auto bytes = static_cast<std::int64_t>(text.size());
  if (bytes - options.holdout < length + 1 || (options.holdout > 0 && options.holdout < length + 1))
    return user_error(
        fmt::format("{} has {} bytes{}, but an example needs {}", path, print_exact(bytes),
                    options.holdout > 0 ? fmt::format(", {} of them held out", print_exact(options.holdout))
                                        : std::string(),
                    length + 1),
        options.holdout > 0
            ? std::string("the held-out part and the rest must each hold an example: change holdout")
            : fmt::format("WITH ({} = ...) sets the length of an example",
                          graph.text(inputs[0].type.dims[1].index)));
  for (const FeedInput& input : inputs) {
    if (input.limit == 0 || input.limit > 255) continue;
    for (std::size_t i = 0; i < text.size(); ++i)
      if (static_cast<unsigned char>(text[i]) >= input.limit)
        return user_error(fmt::format("{} byte {} is {}, {} expects 0 to {}", path, i,
                                      static_cast<unsigned char>(text[i]), input.name, input.limit - 1),
                          "a byte-level model has 256 tokens");
  }
  return std::unique_ptr<Feed>(new TextFeed(file, std::move(text), batch, length, options));
}

}  // namespace weft::run
