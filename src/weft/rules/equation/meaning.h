// weft/rules/equation/meaning.h -- what the generator's operations give: shapes once, numbers for every draw.
//
//   ewadd : type 3, type 3 -> type 3        matmul : type 0, type 1 -> type 0        type 0 = [2,3]
//
// A type is the shapes that a value has on every mesh of the operator set (one without a mesh), and a
// value is an array for each rank of each mesh. An operation's types are worked out once for each kind
// of operands; then running it is running plans that are ready.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "weft/plan/ops/evaluation.h"
#include "weft/rules/equation/algebra.h"
#include "weft/rules/equation/operator_set.h"
#include "weft/rules/equation/term.h"

namespace weft::equation {

using TypeId = std::uint32_t;
constexpr TypeId kNoType = ~TypeId{0};

// One array for each rank of each mesh, in order.
using Lanes = std::vector<ops::Tensor<ops::Field>>;

struct Signature {
  std::array<TypeId, 2> results = {kNoType, kNoType};
  std::vector<const Algebra::Prepared*> prepared;  // by mesh; null for what ranks do together

  bool legal() const { return results[0] != kNoType; }
};

class Meaning {
 public:
  explicit Meaning(const OperatorSet& set);

  const OperatorSet& set() const { return set_; }
  TypeId type_of(const InputKind& kind);
  // Values with more elements in all than this are not built.
  const Signature& apply(std::size_t operation, std::array<TypeId, 2> operands);
  const std::vector<Shape>& shapes(TypeId type) const { return types_[type]; }
  std::int64_t bytes(TypeId type) const;
  // The same sizes, whatever the joints: only then may two values be equal.
  bool same_sizes(TypeId a, TypeId b) const;
  std::size_t types() const { return types_.size(); }

  // REQUIRES: signature.legal(), and operands of its types. `results` has one entry a result.
  void run(std::size_t operation, const Signature& signature, std::span<const Lanes* const> operands,
           std::span<Lanes> results, const ops::Numbers<ops::Field>& numbers) const;

  // Random values of an input: sharded ones are slices of one array, replicated ones alike.
  Lanes draw(const InputKind& kind, std::uint64_t seed, std::uint64_t stream) const;

 private:
  TypeId intern(std::vector<Shape> shapes);
  Operation on_mesh(std::size_t operation, std::size_t mesh) const;
  Result<std::vector<Shape>> infer_on(std::size_t operation, std::size_t mesh,
                                      std::array<TypeId, 2> operands) const;

  const OperatorSet& set_;
  std::vector<std::int32_t> meshes_;                // ranks; 1 without a mesh
  std::vector<std::vector<Operation>> operations_;  // by operation, then mesh
  std::vector<std::vector<Shape>> types_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Signature>> signatures_;
  Algebra algebra_;
};

// A hash of all numbers and sizes, not of joints.
std::uint64_t fingerprint(const Lanes& lanes);

// The values of terms at one random choice of inputs.
class Draw {
 public:
  Draw(const TermTable& terms, Meaning& meaning, std::uint64_t seed);

  // The value of a stored term, worked out when first asked for and kept until forget().
  const Lanes& value(TermId id);
  // The results of an operation on stored terms, into a place that the next call overwrites.
  std::span<Lanes> run(const Term& term, const Signature& signature);
  void keep(TermId id, const Lanes& lanes);
  void forget(TermId from);  // that term and all after it

  const ops::Numbers<ops::Field>& numbers() const { return numbers_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  const TermTable& terms_;
  Meaning& meaning_;
  ops::Numbers<ops::Field> numbers_;
  std::vector<Lanes> values_;
  std::array<Lanes, 2> scratch_;
  std::int64_t bytes_ = 0;
};

}  // namespace weft::equation
