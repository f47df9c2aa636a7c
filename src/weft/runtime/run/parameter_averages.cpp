#include "weft/runtime/run/parameter_averages.h"

#include <algorithm>
#include <cstring>

#include "weft/device/element_access.h"
#include "weft/parallel/train/training_plan.h"

namespace weft::run {
namespace {

using plan::DType;

void load_floats(DType dtype, std::span<const std::byte> bytes, std::vector<float>& values) {
  values.resize(bytes.size() / static_cast<std::size_t>(plan::size_in_bytes(dtype)));
  if (dtype == DType::f32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(device::load_element(dtype, bytes.data(), static_cast<std::int64_t>(i)));
}

Status store_floats(exec::Rank& rank, const program::Port& port, std::span<const float> values) {
  if (port.place.dtype == DType::f32) return rank.write(port, std::as_bytes(values));
  return rank.write(port, [&](std::span<std::byte> memory) {
    for (std::size_t i = 0; i < values.size(); ++i)
      device::store_element(port.place.dtype, memory.data(), static_cast<std::int64_t>(i), values[i]);
  });
}

}  // namespace

ParameterAverages::ParameterAverages(exec::Rank& rank, std::unique_ptr<comm::Communicator> group,
                                     const OuterUpdate& outer)
    : rank_(rank), group_(std::move(group)), outer_(outer) {}

Status ParameterAverages::add(const program::Port& port, bool is_parameter,
                              std::span<const std::byte> start) {
  if (!plan::is_real(port.place.dtype)) return {};  // step counts are equal on all ranks
  Averaged tensor;
  tensor.port = &port;
  tensor.is_learned = is_parameter || port.name.ends_with(train::kMasterSuffix);
  if (!is_parameter && tensor.is_learned) {
    const std::string_view of = train::parameter_of_moment(port.name);
    const auto rounded =
        std::ranges::find(tensors_, of, [](const Averaged& other) { return other.port->name; });
    if (rounded != tensors_.end()) {
      tensor.rounded = rounded->port;
      tensors_.erase(rounded);
    }
  }
  if (tensor.is_learned && moves_beyond_mean()) {
    WEFT_TRY(held, rank_.read(port));
    load_floats(port.place.dtype, held.bytes(), tensor.anchor);
    tensor.momentum.resize(tensor.anchor.size());
    if (start.size() == tensor.momentum.size() * sizeof(float))
      std::memcpy(tensor.momentum.data(), start.data(), start.size());
  }
  tensors_.push_back(std::move(tensor));
  return {};
}

Status ParameterAverages::agree(bool wholly) {
  for (Averaged& tensor : tensors_)
    if (tensor.is_learned ? parameters_parted_ : wholly && states_parted_) WEFT_TRY_STATUS(average(tensor));
  parameters_parted_ = false;
  if (wholly) states_parted_ = false;
  return {};
}

Status ParameterAverages::average(Averaged& tensor) {
  {
    WEFT_TRY(held, rank_.read(*tensor.port));
    load_floats(tensor.port->place.dtype, held.bytes(), values_);
  }
  WEFT_TRY_STATUS(group_->all_reduce(values_.data(), values_.data(),
                                     static_cast<std::int64_t>(values_.size()), comm::ElementType::f32));
  const auto ranks = static_cast<float>(group_->size());
  for (float& value : values_) value /= ranks;
  if (!tensor.anchor.empty()) update(tensor);
  WEFT_TRY_STATUS(store_floats(rank_, *tensor.port, values_));
  if (!tensor.anchor.empty()) {
    // Re-reads the value, which the rank may have rounded, so that it equals a checkpoint's.
    WEFT_TRY(held, rank_.read(*tensor.port));
    load_floats(tensor.port->place.dtype, held.bytes(), tensor.anchor);
  }
  return tensor.rounded != nullptr ? store_floats(rank_, *tensor.rounded, values_) : Status();
}

void ParameterAverages::update(Averaged& tensor) {
  const auto rate = static_cast<float>(outer_.rate), momentum = static_cast<float>(outer_.momentum);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const float change = tensor.anchor[i] - values_[i];
    tensor.momentum[i] = momentum * tensor.momentum[i] + change;
    values_[i] = tensor.anchor[i] - rate * (change + momentum * tensor.momentum[i]);
  }
}

std::string ParameterAverages::momentum_name(std::string_view parameter) {
  return std::string(parameter) + ".outer";
}

std::span<const float> ParameterAverages::momentum(std::string_view parameter) const {
  for (const Averaged& tensor : tensors_) {
    const program::Port& of = tensor.rounded != nullptr ? *tensor.rounded : *tensor.port;
    if (of.name == parameter && tensor.is_learned) return tensor.momentum;
  }
  return {};
}

}  // namespace weft::run
