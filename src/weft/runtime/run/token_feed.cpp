#include "weft/runtime/run/token_feed.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/runtime/run/epoch_orders.h"
#include "weft/text/token_file.h"

namespace weft::run {
namespace {

// Files are compared across hosts by at most this many blocks of this size, evenly spaced.
constexpr std::size_t kMostDigestBlocks = 4096, kDigestBlockBytes = std::size_t{64} << 10;

class TokenFeed final : public Feed {
 public:
  TokenFeed(const DataFile& file, text::TokenFile tokens, std::int64_t batch, std::int64_t length,
            const FeedOptions& options)
      : recipe_(file_recipe({&file, 1}, options)),
        tokens_(std::move(tokens)),
        batch_(batch),
        length_(length),
        seed_(options.seed),
        held_out_(options.holdout),
        train_tokens_(tokens_.size() - options.holdout),
        orders_((train_tokens_ - 1) / length, seed_) {}

  std::string recipe() const override { return recipe_; }

  Digest digest() const override {
    Hasher hasher;
    for (const std::int64_t number : {batch_, length_, train_tokens_, tokens_.size()})
      hasher.number(static_cast<std::uint64_t>(number));
    const std::string_view bytes(reinterpret_cast<const char*>(tokens_.bytes().data()),
                                 tokens_.bytes().size());
    const std::size_t blocks = (bytes.size() + kDigestBlockBytes - 1) / kDigestBlockBytes;
    const std::size_t stride = std::max<std::size_t>(1, blocks / kMostDigestBlocks);
    for (std::size_t block = 0; block < blocks; block += stride)
      hasher.text(bytes.substr(block * kDigestBlockBytes, kDigestBlockBytes));
    return hasher.number(seed_).digest();
  }

  std::string_view example() const override { return "tokens"; }
  std::int64_t examples_per_step() const override { return batch_ * length_; }

  void fill(std::span<const InputMemory> inputs, std::int64_t step) const override {
    const std::int64_t batches = (train_tokens_ - 1) / length_ / batch_;
    const EpochOrders::Order order = orders_.of(step / batches);
    const std::int64_t first = step % batches * batch_;
    for (std::size_t further = 0; further < inputs.size(); ++further)
      for (std::int64_t i = 0; i < inputs[further].rows; ++i)
        write_sample(inputs[further], further, i,
                     (*order)[static_cast<std::size_t>(first + inputs[further].first + i)] * length_);
  }

  std::int64_t test_examples() const override {
    return ((held_out_ > 0 ? held_out_ : tokens_.size()) - 1) / length_;
  }

  void fill_test(exec::Rank& rank, std::int64_t first) const override {
    const std::vector<InputMemory> inputs = memory_of(rank, input_names());
    const std::int64_t begin = held_out_ > 0 ? train_tokens_ : 0;
    for (std::size_t further = 0; further < inputs.size(); ++further)
      for (std::int64_t i = 0; i < inputs[further].rows; ++i)
        write_sample(inputs[further], further, i, begin + (first + inputs[further].first + i) * length_);
  }

 private:
  // Targets are the tokens one further than the inputs.
  void write_sample(const InputMemory& input, std::size_t further, std::int64_t row,
                    std::int64_t begin) const {
    begin = std::min(begin, tokens_.size() - length_ - 1);  // of an incomplete last batch
    for (std::int64_t i = 0; i < length_; ++i)
      device::store_element(input.dtype, input.bytes.data(), row * length_ + i,
                            static_cast<double>(tokens_[begin + i + static_cast<std::int64_t>(further)]));
  }

  const std::string recipe_;
  const text::TokenFile tokens_;
  const std::int64_t batch_, length_;
  const std::uint64_t seed_;
  const std::int64_t held_out_, train_tokens_;
  const EpochOrders orders_;
};

}  // namespace

Result<std::unique_ptr<Feed>> open_tokens(const DataFile& file, const plan::Graph& graph,
                                          std::span<const FeedInput> inputs, const FeedOptions& options) {
  const std::string& path = file.path;
  WEFT_TRY(batch, batch_of(graph, inputs));
  const bool fits = inputs.size() <= 2 && std::ranges::all_of(inputs, [&](const FeedInput& input) {
                      return plan::is_integer(input.type.dtype) && input.type.rank() == 2 &&
                             std::ranges::equal(input.type.dims, inputs[0].type.dims);
                    });
  if (!fits)
    return user_error(
        fmt::format("{} holds tokens, which need inputs tokens[batch, position] and targets[batch, "
                    "position] of whole numbers; {} has {} of {}",
                    path, graph.name, inputs[0].name, plan::print(inputs[0].type, graph.symbols())),
        "tables end in .csv, .npy or .npz, or these with .gz");
  if (options.holdout > 0 && options.holdout_drawn)
    return user_error(fmt::format("{} holds tokens, of which holdout_by = seed cannot hold out any", path),
                      "holdout_by = last holds out the end");
  WEFT_TRY(tokens, text::TokenFile::open(path));
  const std::int64_t length = inputs[0].type.dims[1].size;
  const std::int64_t samples = (tokens.size() - options.holdout - 1) / length;
  const std::int64_t needed = options.partial_batches ? 1 : batch;
  if (tokens.size() <= options.holdout || samples < needed ||
      (options.holdout > 0 && options.holdout <= length))
    return user_error(
        options.holdout > 0
            ? fmt::format("{} has {} tokens, {} of them held out, but a step needs {} and a test {}", path,
                          print_exact(tokens.size()), print_exact(options.holdout),
                          print_exact(needed * length + 1), print_exact(length + 1))
            : fmt::format("{} has {} tokens, but a step needs {}", path, print_exact(tokens.size()),
                          print_exact(needed * length + 1)),
        fmt::format("WITH ({} = ...) sets the length of a sample", graph.text(inputs[0].type.dims[1].index)));
  for (const FeedInput& input : inputs) {
    if (input.limit == 0) continue;
    if (const std::int64_t at = tokens.find_outside(input.limit); at < tokens.size())
      return user_error(fmt::format("{} token {} is {}, {} expects 0 to {}", path, at, tokens[at], input.name,
                                    input.limit - 1),
                        "use the tokenizer whose vocabulary the model has");
  }
  return std::unique_ptr<Feed>(new TokenFeed(file, std::move(tokens), batch, length, options));
}

}  // namespace weft::run
