// weft/plan/ops/operator.h -- an operator with its semantics.
//
// plan/graph/operator.h has the part a graph needs: types, signature, work. This adds the exact
// reference semantics, written once for every number type, and the gradient, written as more nodes.
//
// One operator, one file. A new operator is a class like this, a header that declares it, and a
// line in all.cpp:
//
//   class Negate final : public OperatorOf<Negate> {
//     ...                                              // name, infer, signature, work
//     Status gradient(Gradient& g) const override;     // optional
//    public:
//     template <class T> static void evaluate(Evaluation<T>& at);
//   };
#pragma once
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/operator.h"
#include "weft/plan/ops/evaluation.h"
#include "weft/plan/ops/gradient.h"

namespace weft::ops {

class Operator : public plan::Operator {
 public:
  // Adds the nodes that compute the gradients of the inputs that `g` wants. The default fails:
  // "top-k-positions has no gradient".
  virtual Status gradient(Gradient& g) const;

  // Computes the results from the inputs. Slow and simple: this is the definition against which
  // kernels, rules and plans are tested.
  virtual void reference(Evaluation<float>& at) const = 0;
  virtual void reference(Evaluation<double>& at) const = 0;
  virtual void reference(Evaluation<Field>& at) const = 0;
  virtual void reference(Evaluation<Rounded>& at) const = 0;
};

// Instantiates the template `Impl::evaluate` as the four virtual functions.
template <class Impl>
class OperatorOf : public Operator {
 public:
  void reference(Evaluation<float>& at) const override { self().template evaluate<float>(at); }
  void reference(Evaluation<double>& at) const override { self().template evaluate<double>(at); }
  void reference(Evaluation<Field>& at) const override { self().template evaluate<Field>(at); }
  void reference(Evaluation<Rounded>& at) const override { self().template evaluate<Rounded>(at); }

 private:
  const Impl& self() const { return static_cast<const Impl&>(*this); }
};

// Every node of a plan that Weft builds has an ops::Operator.
inline const Operator& operator_of(const plan::NodeView& node) {
  return static_cast<const Operator&>(node.op());
}

}  // namespace weft::ops
