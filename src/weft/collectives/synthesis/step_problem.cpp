#include "weft/collectives/synthesis/step_problem.h"

#include <fmt/format.h>

namespace weft::synthesis {
namespace {

using collective::Kind;

std::vector<std::int32_t> all_but(std::int32_t devices, std::int32_t source) {
  std::vector<std::int32_t> others;
  for (std::int32_t device = 0; device < devices; ++device)
    if (device != source) others.push_back(device);
  return others;
}

bool counts_whole_message(Kind kind) { return kind == Kind::all_reduce || kind == Kind::all_to_all; }

}  // namespace

Status check_question(const StepQuestion& question, std::int32_t devices) {
  const std::string_view kind = name(question.kind);
  if (question.kind == Kind::send || question.kind == Kind::barrier || question.kind == Kind::custom)
    return user_error(
        fmt::format("no algorithm is synthesized for {}", kind),
        "all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, reduce, gather or scatter");
  if (devices < 1) return user_error("the topology has no device");
  if (question.chunks < 1) return user_error(fmt::format("chunks must be at least 1: {}", question.chunks));
  if (question.steps < 1) return user_error(fmt::format("steps must be at least 1: {}", question.steps));
  if (question.rounds < question.steps)
    return user_error(
        fmt::format("every step takes a round: {} steps in {} rounds", question.steps, question.rounds),
        "at least as many --rounds as --steps");
  if (question.root < 0 || question.root >= devices)
    return user_error(fmt::format("the root is not one of the {} devices: {}", devices, question.root));
  if (counts_whole_message(question.kind) && question.chunks % devices != 0)
    return user_error(
        fmt::format("chunks of {} must be a multiple of {} devices: {}", kind, devices, question.chunks),
        "chunks divide the whole message, which has one block per device");
  if (std::int64_t{question.chunks} * devices * question.steps > kMostStepMoves)
    return user_error(fmt::format("too large to search: {} chunks, {} steps, {} devices", question.chunks,
                                  question.steps, devices));
  return {};
}

bool runs_backwards(Kind kind) { return kind == Kind::reduce_scatter || kind == Kind::reduce; }

StepProblem step_problem(const StepQuestion& question, std::int32_t devices) {
  StepProblem problem;
  problem.copies = counts_whole_message(question.kind) ? question.chunks / devices : question.chunks;
  const auto add = [&](std::int32_t source, const std::vector<std::int32_t>& targets) {
    for (std::int32_t copy = 0; copy < problem.copies; ++copy) problem.chunks.push_back({source, targets});
  };
  const auto one = [](std::int32_t source, std::int32_t target) {
    return source == target ? std::vector<std::int32_t>{} : std::vector<std::int32_t>{target};
  };
  switch (question.kind) {
    case Kind::broadcast:
    case Kind::reduce: add(question.root, all_but(devices, question.root)); break;
    case Kind::gather:
      for (std::int32_t device = 0; device < devices; ++device) add(device, one(device, question.root));
      break;
    case Kind::scatter:
      for (std::int32_t device = 0; device < devices; ++device)
        add(question.root, one(question.root, device));
      break;
    case Kind::all_to_all:
      for (std::int32_t from = 0; from < devices; ++from)
        for (std::int32_t to = 0; to < devices; ++to) add(from, one(from, to));
      break;
    default:  // all_gather, and collectives based on it
      for (std::int32_t device = 0; device < devices; ++device) add(device, all_but(devices, device));
  }
  return problem;
}

collective::Collective step_collective(const StepQuestion& question, std::int32_t devices) {
  collective::Collective made;
  made.kind = question.kind;
  made.ranks = devices;
  made.root = question.root;
  made.chunks = question.kind == Kind::all_to_all ? question.chunks / devices : question.chunks;
  return made;
}

}  // namespace weft::synthesis
