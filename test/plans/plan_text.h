// Small MSCCL++ plans as text, for tests and for bench/adversaries.cpp.
//
//   allgather 2 ranks, 1 2 0 chunks, in place      chunks of input, output, scratch
//   memory 0-1                                     a channel between 0 and 1; also: port 0-1, switch o 0 1
//   semaphores 0 0                                 the initial values on every rank
//   rank *                                         $r is the rank, $p the next one
//   block
//     rlxsignal m0                                 m0: memory channel 0; p0: port channel 0
//     put m o$r > $p:o$r                           o0+2: two chunks; 1:o0: of rank 1; S0:o0: of switch 0
//     pipeline 1 524288                            over 1 chunk, 524288 bytes per iteration, until
//     end
//
// The grammar serves only this folder. Invalid text throws.
#pragma once
#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/collectives/one_sided/one_sided.h"

namespace weft::plans {

using collective::Buffer;
using collective::OneSided;
using collective::OneSidedStep;
using collective::Operand;
using collective::Path;
using collective::Verb;

inline Buffer buffer_of(char letter) {
  if (letter == 'i') return Buffer::input;
  if (letter == 'o') return Buffer::output;
  if (letter == 's') return Buffer::scratch;
  throw std::runtime_error(std::string("no buffer: ") + letter);
}

inline Operand operand_of(std::string word) {
  Operand operand;
  if (const std::size_t colon = word.find(':'); colon != std::string::npos) {
    const bool switched = word[0] == 'S';
    operand.where = switched ? Operand::Where::switched : Operand::Where::remote;
    operand.peer = std::stoi(word.substr(switched ? 1 : 0, colon));
    word = word.substr(colon + 1);
  }
  operand.buffer = buffer_of(word.at(0));
  const std::size_t plus = word.find('+');
  operand.index = std::stoi(word.substr(1, plus));
  if (plus != std::string::npos) operand.count = std::stoi(word.substr(plus + 1));
  return operand;
}

inline OneSidedStep step_of(const std::string& line) {
  std::istringstream words(line);
  std::string word;
  words >> word;
  if (word == "release") word = "sem_release";
  if (word == "acquire") word = "sem_acquire";
  const auto verb = collective::find_verb(word);
  if (!verb) throw std::runtime_error("no operation: " + line);
  OneSidedStep step;
  step.verb = *verb;
  if (*verb == Verb::pipeline) {
    words >> step.unit_chunks >> step.unit_bytes;
    return step;
  }
  bool targets = false;
  while (words >> word) {
    if (word == ">") {
      targets = true;
    } else if (word == "part") {
      char slash = 0;
      words >> step.part >> slash >> step.parts;
    } else if (*verb == Verb::barrier) {
      step.barrier = std::stoi(word);
      step.members = std::stoi(word.substr(word.find('/') + 1));
    } else if (*verb == Verb::release || *verb == Verb::acquire) {
      step.semaphores.push_back(std::stoi(word));
    } else if (word[0] == 'm' || word[0] == 'p') {
      step.path = word[0] == 'm' ? Path::memory : Path::port;
      if (word.size() > 1) step.channels.push_back(std::stoi(word.substr(1)));
    } else {
      const Operand operand = operand_of(word);
      if (operand.where == Operand::Where::switched) step.path = Path::switched;
      (targets ? step.targets : step.sources).push_back(operand);
    }
  }
  return step;
}

inline std::string for_rank(std::string line, std::int32_t rank, std::int32_t ranks) {
  for (std::size_t at = 0; (at = line.find('$', at)) != std::string::npos;)
    line.replace(at, 2, std::to_string(line[at + 1] == 'r' ? rank : (rank + 1) % ranks));
  return line;
}

inline OneSided plan_of(const std::string& text) {
  OneSided plan;
  std::vector<std::int32_t> writing;  // ranks
  bool in_pipeline = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, word;
    if (!(words >> first)) continue;
    if (plan.ranks.empty()) {
      std::int32_t ranks = 0, inputs = 0, outputs = 0, scratch = 0;
      words >> ranks >> word >> inputs >> outputs >> scratch;
      plan.ranks.resize(static_cast<std::size_t>(ranks),
                        {.input_chunks = inputs, .output_chunks = outputs, .scratch_chunks = scratch});
      plan.name = plan.collective_word = first;
      plan.in_place = line.find("in place") != std::string::npos;
      plan.double_scratch = line.find("double") != std::string::npos;
      plan.reuse_resources = line.find("reuse") != std::string::npos;
      plan.protocol =
          line.find("packets") != std::string::npos ? collective::Protocol::ll : collective::Protocol::simple;
      plan.collective.ranks = ranks;
      plan.collective.kind = collective::find_kind(first).value_or(collective::Kind::custom);
      const bool blocks_in = first == "reducescatter" || first == "alltoall";
      plan.collective.chunks = blocks_in ? inputs / ranks : inputs;
    } else if (first == "memory" || first == "port") {
      while (words >> word) {
        const std::int32_t one = std::stoi(word), other = std::stoi(word.substr(word.find('-') + 1));
        (first == "memory" ? plan.ranks[one].memory_peers : plan.ranks[one].port_peers).push_back(other);
        (first == "memory" ? plan.ranks[other].memory_peers : plan.ranks[other].port_peers).push_back(one);
      }
    } else if (first == "switch") {
      words >> word;
      collective::Switch group{buffer_of(word[0]), {}};
      for (std::int32_t rank = 0; words >> rank;) group.ranks.push_back(rank);
      for (const std::int32_t rank : group.ranks) plan.ranks[rank].switches.push_back(group);
    } else if (first == "semaphores") {
      std::vector<std::int32_t> values;
      for (std::int32_t value = 0; words >> value;) values.push_back(value);
      for (auto& rank : plan.ranks) rank.semaphores = values;
    } else if (first == "rank") {
      words >> word;
      writing.clear();
      for (std::int32_t rank = 0; rank < plan.collective.ranks; ++rank)
        if (word == "*" || std::stoi(word) == rank) writing.push_back(rank);
    } else if (first == "block") {
      for (const std::int32_t rank : writing) plan.ranks[rank].blocks.emplace_back();
    } else if (first == "end") {
      in_pipeline = false;
    } else {
      for (const std::int32_t rank : writing) {
        auto& block = plan.ranks[rank].blocks.back();
        OneSidedStep step = step_of(for_rank(line, rank, plan.collective.ranks));
        (in_pipeline ? block.back().body : block).push_back(std::move(step));
      }
      in_pipeline = in_pipeline || first == "pipeline";
    }
  }
  return plan;
}

// "0.1.5 -" removes step 5 of block 1 of rank 0. "*.0.2 = nop" replaces a step on every rank, and
// "*.0.2 + nop" inserts one before it. 5/2 is step 2 of the pipeline in step 5.
inline void edit(OneSided& plan, const std::string& how) {
  std::istringstream words(how);
  std::string place, sign, text;
  words >> place >> sign;
  std::getline(words, text);
  const std::size_t dot = place.find('.'), second = place.find('.', dot + 1), slash = place.find('/');
  const std::int32_t block = std::stoi(place.substr(dot + 1)), step = std::stoi(place.substr(second + 1));
  for (std::int32_t rank = 0; rank < plan.collective.ranks; ++rank) {
    if (place[0] != '*' && std::stoi(place) != rank) continue;
    auto* steps = &plan.ranks.at(rank).blocks.at(block);
    std::size_t at = static_cast<std::size_t>(step);
    if (slash != std::string::npos) {
      steps = &steps->at(at).body;
      at = std::stoul(place.substr(slash + 1));
    }
    if (sign == "-") {
      steps->erase(steps->begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    OneSidedStep made = step_of(for_rank(text, rank, plan.collective.ranks));
    if (sign == "+") {
      steps->insert(steps->begin() + static_cast<std::ptrdiff_t>(at), made);
    } else {
      if (made.verb == Verb::pipeline) made.body = steps->at(at).body;
      steps->at(at) = made;
    }
  }
}

}  // namespace weft::plans
