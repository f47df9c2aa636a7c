// weft/rule/run_instance.h -- runs both sides of an instance and compares them.
//
// Over the prime field with random values a difference shows with near certainty; over doubles with small
// whole numbers people can check it. On a mesh the ranks' shares are really cut and the communication really
// done; outputs must agree as whole values and in how the ranks hold them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/random.h"
#include "weft/ops/evaluation.h"
#include "weft/rule/instance.h"

namespace weft::rule {

// Where the two sides differ first.
struct Difference {
  std::int32_t output = 0;
  std::int64_t at = -1;  // which element; -1: of the whole value
  std::string left, right;
};

template <class T>
struct InstanceRun {
  std::vector<ops::Tensor<T>> inputs;  // whole values, also on a mesh
  std::vector<ops::Tensor<T>> left, right;
  std::optional<Difference> difference;
};

// Values from -3 to 3.
Result<InstanceRun<double>> run_whole(const RuleInstance& instance, Random& random);
// Any values, and functions and order interpreted by a key of their own.
Result<InstanceRun<ops::Field>> run_field(const RuleInstance& instance, Random& random);
// Values from 0.5 to 1.5, where rounding shows.
Result<InstanceRun<double>> run_real(const RuleInstance& instance, Random& random);

}  // namespace weft::rule
