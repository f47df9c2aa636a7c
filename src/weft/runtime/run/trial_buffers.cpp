#include "weft/runtime/run/trial_buffers.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "weft/base/hash.h"

namespace weft::run {

using collective::Buffer;

comm::Call call_of(const CollectiveTrial& trial) {
  comm::Call call;
  call.kind = trial.program->collective.kind;
  call.count = trial.count;
  call.counts = trial.counts;
  call.type = trial.type;
  call.op = trial.op;
  call.root = trial.program->collective.root;
  call.peer = trial.program->collective.peer;
  return call;
}

TrialBuffers::TrialBuffers(const CollectiveTrial& trial, std::int32_t rank)
    : what_{*trial.program, call_}, call_(call_of(trial)), rank_(rank) {
  const auto element = static_cast<std::int64_t>(device::size_of(trial.type));
  const std::int64_t inputs = what_.elements(Buffer::input, rank) * element;
  const std::int64_t outputs = what_.elements(Buffer::output, rank) * element;
  input_bytes_ = inputs;
  output_bytes_ = outputs;
  if (trial.in_place) {
    memory_.resize(static_cast<std::size_t>(std::max(inputs, outputs)));
    // Without both buffers nothing is shared.
    const bool both = comm::has_input(call_, rank) && comm::has_output(call_, rank);
    std::int64_t before = 0;
    if (both && collective::has_one_block(call_.kind))
      for (std::int32_t other = 0; other < rank; ++other)
        before +=
            (trial.counts.empty() ? trial.count : trial.counts[static_cast<std::size_t>(other)]) * element;
    const bool in_output = collective::shared_buffer(call_.kind) == Buffer::output;
    call_.input = memory_.data() + (in_output ? before : 0);
    call_.output = memory_.data() + (in_output ? 0 : before);
  } else {
    memory_.resize(static_cast<std::size_t>(inputs + outputs));
    call_.input = memory_.data();
    call_.output = memory_.data() + inputs;
  }
}

void compare(const TrialBuffers& buffers, const Expected& expected, TrialOutcome& outcome) {
  const std::span<const std::byte> output = buffers.output();
  const std::size_t element = device::size_of(buffers.call().type);
  for (std::size_t i = 0; i * element < output.size(); ++i) {
    if (!expected.wanted.empty() && !expected.wanted[i]) continue;
    if (std::memcmp(output.data() + i * element, expected.bytes.data() + i * element, element) == 0) continue;
    if (outcome.wrong++ == 0)
      outcome.first_wrong = fmt::format("output[{}] of rank {} is wrong", i, buffers.rank());
  }
}

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  return Hasher().text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).digest().low;
}

}  // namespace weft::run
