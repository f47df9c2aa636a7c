#include "weft/rules/equation/meaning.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "weft/base/hash.h"
#include "weft/base/random.h"

namespace weft::equation {
namespace {

// The most elements of an array. Concats could double sizes at every level; large arrays add
// nothing.
constexpr std::int64_t kMostMeaningElements = 1024;

using ops::Field;
using ops::Tensor;

Tensor<Field> random_tensor(const std::vector<std::int64_t>& sizes, Random& random) {
  Tensor<Field> tensor{sizes, {}};
  tensor.data.resize(static_cast<std::size_t>(elements_of(shape_of(sizes))));
  for (Field& number : tensor.data) number = Field(random.next() >> 3);
  return tensor;
}

std::int64_t bytes_of(const Lanes& lanes) {
  std::int64_t bytes = static_cast<std::int64_t>(sizeof(Lanes));
  for (const auto& lane : lanes)
    bytes += static_cast<std::int64_t>(sizeof(lane) + lane.sizes.capacity() * sizeof(std::int64_t) +
                                       lane.data.capacity() * sizeof(Field));
  return bytes;
}

}  // namespace

std::uint64_t fingerprint(const Lanes& lanes) {
  Hasher hasher;
  for (const auto& lane : lanes) {
    hasher.number(lane.sizes.size());
    for (const std::int64_t size : lane.sizes) hasher.number(static_cast<std::uint64_t>(size));
    for (const Field number : lane.data) hasher.number(number.residue());
  }
  return hasher.digest().high;
}

Meaning::Meaning(const OperatorSet& set) : set_(set), meshes_(set.ranks) {
  if (meshes_.empty()) meshes_.push_back(1);
  for (std::size_t k = 0; k < set_.operations.size(); ++k) {
    operations_.emplace_back();
    for (std::size_t mesh = 0; mesh < meshes_.size(); ++mesh) operations_.back().push_back(on_mesh(k, mesh));
  }
}

Operation Meaning::on_mesh(std::size_t operation, std::size_t mesh) const {
  const OperationKind& kind = set_.operations[operation];
  Operation made{kind.verb, {}, kind.details};
  for (std::int32_t i = 0; i < kind.operands; ++i) made.operands.push_back({-1, i});
  made.details.sizes = kind.sizes;
  if (std::exchange(made.details.factor_is_one_over_ranks, false)) made.details.factor = 1.0 / meshes_[mesh];
  return made;
}

TypeId Meaning::intern(std::vector<Shape> shapes) {
  for (Shape& shape : shapes) shape.joints.resize(shape.sizes.size());
  const auto found = std::find(types_.begin(), types_.end(), shapes);
  if (found != types_.end()) return static_cast<TypeId>(found - types_.begin());
  types_.push_back(std::move(shapes));
  return static_cast<TypeId>(types_.size() - 1);
}

TypeId Meaning::type_of(const InputKind& kind) {
  std::vector<Shape> shapes;
  for (const std::int32_t ranks : meshes_) {
    shapes.push_back(shape_of(kind.sizes));
    if (kind.holding == Holding::sharded)
      shapes.back().sizes[static_cast<std::size_t>(kind.sharded_dim)] /= ranks;
  }
  return intern(std::move(shapes));
}

std::int64_t Meaning::bytes(TypeId type) const {
  std::int64_t bytes = 0;
  for (std::size_t mesh = 0; mesh < meshes_.size(); ++mesh)
    bytes += elements_of(types_[type][mesh]) * meshes_[mesh] * static_cast<std::int64_t>(sizeof(Field));
  return bytes;
}

bool Meaning::same_sizes(TypeId a, TypeId b) const {
  return a == b || std::equal(types_[a].begin(), types_[a].end(), types_[b].begin(), types_[b].end(),
                              [](const Shape& x, const Shape& y) { return x.sizes == y.sizes; });
}

Result<std::vector<Shape>> Meaning::infer_on(std::size_t operation, std::size_t mesh,
                                             std::array<TypeId, 2> operands) const {
  std::vector<Shape> shapes;
  for (const TypeId type : operands)
    if (type != kNoType) shapes.push_back(types_[type][mesh]);
  return infer(operations_[operation][mesh], shapes, meshes_[mesh]);
}

const Signature& Meaning::apply(std::size_t operation, std::array<TypeId, 2> operands) {
  // Type ids fit in 24 bits: 2^24 types would not fit in memory.
  const std::uint64_t key = static_cast<std::uint64_t>(operation) << 48 |
                            (static_cast<std::uint64_t>(operands[0]) & 0xffffff) << 24 |
                            (static_cast<std::uint64_t>(operands[1]) & 0xffffff);
  std::unique_ptr<Signature>& slot = signatures_[key];
  if (slot) return *slot;
  slot = std::make_unique<Signature>();
  Signature& signature = *slot;

  const OperationKind& kind = set_.operations[operation];
  std::vector<std::vector<Shape>> results(static_cast<std::size_t>(kind.results));
  for (std::size_t mesh = 0; mesh < meshes_.size(); ++mesh) {
    if (operands[0] != kNoType) {
      const auto rank = static_cast<std::int32_t>(types_[operands[0]][mesh].rank());
      if (rank < kind.least_rank || rank > kind.most_rank) return signature;
    }
    auto shapes = infer_on(operation, mesh, operands);
    if (!shapes.ok() || shapes->size() != results.size()) return signature;
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (elements_of((*shapes)[k]) > kMostMeaningElements || elements_of((*shapes)[k]) == 0)
        return signature;
      if (kind.must_change_shape && (*shapes)[k].sizes == types_[operands[0]][mesh].sizes) return signature;
      results[k].push_back(std::move((*shapes)[k]));
    }
  }
  for (std::size_t mesh = 0; mesh < meshes_.size(); ++mesh) {
    if (is_communication(kind.verb)) {
      signature.prepared.push_back(nullptr);
      continue;
    }
    std::vector<Shape> shapes;
    for (const TypeId type : operands)
      if (type != kNoType) shapes.push_back(types_[type][mesh]);
    const auto prepared = algebra_.prepare(operations_[operation][mesh], shapes);
    if (!prepared.ok()) return signature;
    signature.prepared.push_back(*prepared);
  }
  for (std::size_t k = 0; k < results.size(); ++k) signature.results[k] = intern(std::move(results[k]));
  return signature;
}

void Meaning::run(std::size_t operation, const Signature& signature, std::span<const Lanes* const> operands,
                  std::span<Lanes> results, const ops::Numbers<Field>& numbers) const {
  std::size_t lane = 0;
  for (std::size_t mesh = 0; mesh < meshes_.size(); ++mesh) {
    const std::size_t ranks = static_cast<std::size_t>(meshes_[mesh]);
    for (Lanes& result : results) result.resize(std::max(result.size(), lane + ranks));
    if (signature.prepared[mesh] == nullptr) {
      const std::span<const Tensor<Field>> local{operands[0]->data() + lane, ranks};
      auto together = communicate(operations_[operation][mesh], local, numbers);
      std::move(together.value().begin(), together.value().end(),
                results[0].begin() + static_cast<std::ptrdiff_t>(lane));
      lane += ranks;
      continue;
    }
    for (std::size_t rank = 0; rank < ranks; ++rank, ++lane) {
      std::array<const Tensor<Field>*, 2> of_lane{};
      for (std::size_t i = 0; i < operands.size(); ++i) of_lane[i] = &(*operands[i])[lane];
      std::array<Tensor<Field>, 2> made;
      for (std::size_t k = 0; k < results.size(); ++k) made[k] = std::move(results[k][lane]);
      algebra_.run<Field>(*signature.prepared[mesh], {of_lane.data(), operands.size()},
                          {made.data(), results.size()}, numbers);
      for (std::size_t k = 0; k < results.size(); ++k) results[k][lane] = std::move(made[k]);
    }
  }
  for (Lanes& result : results) result.resize(lane);
}

Lanes Meaning::draw(const InputKind& kind, std::uint64_t seed, std::uint64_t stream) const {
  Random random(seed, stream);
  Lanes lanes;
  for (const std::int32_t ranks : meshes_) {
    const Tensor<Field> whole = random_tensor(kind.sizes, random);
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      switch (kind.holding) {
        case Holding::single:
        case Holding::replicated: lanes.push_back(whole); break;
        case Holding::local: lanes.push_back(rank == 0 ? whole : random_tensor(kind.sizes, random)); break;
        case Holding::sharded: {
          const auto dim = static_cast<std::size_t>(kind.sharded_dim);
          const SliceOf slice = slice_of(kind.sizes[dim], rank, ranks);
          Tensor<Field> part{kind.sizes, {}};
          part.sizes[dim] = slice.end - slice.begin;
          std::int64_t inner = 1;
          for (std::size_t d = dim + 1; d < kind.sizes.size(); ++d) inner *= kind.sizes[d];
          const std::int64_t row = kind.sizes[dim] * inner;
          for (std::int64_t at = 0; at < whole.elements(); ++at)
            if (at % row / inner >= slice.begin && at % row / inner < slice.end)
              part.data.push_back(whole.data[static_cast<std::size_t>(at)]);
          lanes.push_back(std::move(part));
        }
      }
    }
  }
  return lanes;
}

namespace {

// Order over the field is a keyed shuffle, and with many keys zero is near an end of it: then relu
// keeps all numbers or none and shows nothing. This picks a key that puts zero near the middle.
ops::Numbers<Field> balanced_numbers(std::uint64_t seed) {
  constexpr int kSamples = 256, kSlack = kSamples / 10;
  for (std::uint64_t attempt = 0;; ++attempt) {
    const ops::Numbers<Field> numbers{mix(mix(seed) + attempt)};
    Random random(numbers.key);
    int below = 0;
    for (int k = 0; k < kSamples; ++k) below += numbers.less(Field(random.next() >> 3), Field());
    if (std::abs(below - kSamples / 2) <= kSlack || attempt == 1000) return numbers;
  }
}

}  // namespace

Draw::Draw(const TermTable& terms, Meaning& meaning, std::uint64_t seed)
    : terms_(terms), meaning_(meaning), numbers_(balanced_numbers(seed)) {
  for (std::uint16_t input = 0; input < terms.inputs(); ++input)
    keep(input, meaning.draw(terms.kind_of(input), seed, input));
}

const Lanes& Draw::value(TermId id) {
  if (id < values_.size() && !values_[id].empty()) return values_[id];
  const Term& term = terms_[id];
  std::array<TypeId, 2> types = {kNoType, kNoType};
  for (std::size_t i = 0; i < term.operand_count(); ++i) {
    value(term.operands[i]);
    types[i] = terms_[term.operands[i]].type;
  }
  const auto results = run(term, meaning_.apply(term.head - terms_.inputs(), types));
  for (std::size_t k = 0; k < results.size(); ++k)
    keep(id - term.result + static_cast<TermId>(k), results[k]);
  return values_[id];
}

std::span<Lanes> Draw::run(const Term& term, const Signature& signature) {
  std::array<const Lanes*, 2> operands{};
  for (std::size_t i = 0; i < term.operand_count(); ++i) operands[i] = &values_[term.operands[i]];
  const std::size_t results = signature.results[1] == kNoType ? 1 : 2;
  meaning_.run(term.head - terms_.inputs(), signature, {operands.data(), term.operand_count()},
               {scratch_.data(), results}, numbers_);
  return {scratch_.data(), results};
}

void Draw::keep(TermId id, const Lanes& lanes) {
  for (; values_.size() <= id; bytes_ += bytes_of(values_.back())) values_.emplace_back();
  bytes_ -= bytes_of(values_[id]);
  values_[id] = lanes;
  bytes_ += bytes_of(values_[id]);
}

void Draw::forget(TermId from) {
  for (; values_.size() > from; values_.pop_back()) bytes_ -= bytes_of(values_.back());
}

}  // namespace weft::equation
