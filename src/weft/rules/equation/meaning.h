// weft/rules/equation/meaning.h -- types and values of the generator's operations.
//
//   ewadd : type 3, type 3 -> type 3        matmul : type 0, type 1 -> type 0        type 0 = [2,3]
//
// A type is the shapes of a value on every mesh of the operator set (one without a mesh). A value
// is one array per rank of each mesh. Result types are inferred once per operation and operand
// types; after that, running an operation runs cached plans.
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

// One array per rank of each mesh, in order.
using Lanes = std::vector<ops::Tensor<ops::Field>>;

struct Signature {
  std::array<TypeId, 2> results = {kNoType, kNoType};
  std::vector<const Algebra::Prepared*> prepared;  // by mesh; null for communication

  bool legal() const { return results[0] != kNoType; }
};

class Meaning {
 public:
  explicit Meaning(const OperatorSet& set);

  const OperatorSet& set() const { return set_; }
  TypeId type_of(const InputKind& kind);
  // Illegal if the results would have more elements than a fixed limit.
  const Signature& apply(std::size_t operation, std::array<TypeId, 2> operands);
  const std::vector<Shape>& shapes(TypeId type) const { return types_[type]; }
  std::int64_t bytes(TypeId type) const;
  // Whether the sizes are equal, ignoring joints: a precondition for equal values.
  bool same_sizes(TypeId a, TypeId b) const;
  std::size_t types() const { return types_.size(); }

  // REQUIRES: signature.legal(), and operands of its types. `results` has one entry per result.
  void run(std::size_t operation, const Signature& signature, std::span<const Lanes* const> operands,
           std::span<Lanes> results, const ops::Numbers<ops::Field>& numbers) const;

  // Random values of an input: sharded ones are slices of one array, replicated ones are equal.
  Lanes draw(const InputKind& kind, std::uint64_t seed, std::uint64_t stream) const;

 private:
  TypeId intern(std::vector<Shape> shapes);
  Operation on_mesh(std::size_t operation, std::size_t mesh) const;
  Result<std::vector<Shape>> infer_on(std::size_t operation, std::size_t mesh,
                                      std::array<TypeId, 2> operands) const;

  const OperatorSet& set_;
  std::vector<std::int32_t> meshes_;                // rank counts; 1 without a mesh
  std::vector<std::vector<Operation>> operations_;  // by operation, then mesh
  std::vector<std::vector<Shape>> types_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Signature>> signatures_;
  Algebra algebra_;
};

// A hash of all numbers and sizes, excluding joints.
std::uint64_t fingerprint(const Lanes& lanes);

// The values of terms for one random choice of inputs.
class Draw {
 public:
  Draw(const TermTable& terms, Meaning& meaning, std::uint64_t seed);

  // The value of a stored term, computed on first use and cached until forget().
  const Lanes& value(TermId id);
  // The results of an operation on stored terms; the next call overwrites them.
  std::span<Lanes> run(const Term& term, const Signature& signature);
  void keep(TermId id, const Lanes& lanes);
  void forget(TermId from);  // the term and all later ones

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
