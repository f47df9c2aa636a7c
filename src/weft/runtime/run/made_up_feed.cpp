#include "weft/runtime/run/made_up_feed.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "weft/base/random.h"

namespace weft::run {
namespace {

// For measurements, so it must be as cheap as reading data: every input of every step reads from
// another offset of one table of random numbers.
class MadeUpFeed final : public Feed {
 public:
  MadeUpFeed(std::vector<FeedInput> inputs, std::uint64_t seed) : inputs_(std::move(inputs)), seed_(seed) {
    for (std::size_t i = 0; i < kSupply; ++i) supply_.push_back(uniform_at(seed, 0, i));
  }

  // Stores the limits, because another plan with the same inputs may have other limits.
  std::string recipe() const override {
    auto limits = nlohmann::json::array();
    for (const FeedInput& input : inputs_) limits.push_back(input.limit);
    return nlohmann::json{{"made_up", seed_}, {"limits", limits}}.dump();
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
  static constexpr std::size_t kSupply = 65'521;  // prime, so that consecutive rows differ

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

  const std::vector<FeedInput> inputs_;
  const std::uint64_t seed_;
  std::vector<float> supply_;
};

}  // namespace

std::unique_ptr<Feed> make_up_feed(std::vector<FeedInput> inputs, std::uint64_t seed) {
  return std::make_unique<MadeUpFeed>(std::move(inputs), seed);
}

}  // namespace weft::run
