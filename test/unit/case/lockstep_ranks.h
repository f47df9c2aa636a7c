// test/unit/case/lockstep_ranks.h -- the programs of all ranks of a mesh, run in lockstep on one thread.
//
// Every rank runs its tasks in order up to its next exchange. When all ranks have arrived, the
// exchange is applied to their memories by its counts and offsets, and they continue. The executor
// is not involved, so an error found here is in the plan of the rank or in its program.
#pragma once
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "mesh_case.h"
#include "weft/device/cpu/kernel.h"
#include "weft/device/element_access.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/spmd/localize.h"
#include "weft/program/tasks/program.h"

namespace weft::program {

template <class T>
T or_throw(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message + "; " + result.error().hint);
  return std::move(result).value();
}

// The plan of each rank, printed, parsed again and compiled.
inline std::vector<Program> programs_of(const plan::Graph& graph, const plan::Mesh& mesh) {
  const std::vector<plan::Layout> layouts = or_throw(spmd::infer_layouts(graph, mesh));
  std::vector<Program> programs;
  for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank) {
    const spmd::LocalPlan local = or_throw(spmd::localize(graph, mesh, layouts, rank, spmd::Exchanges::stay));
    const std::string text = print(local.graph);
    auto read = std::make_shared<plan::Graph>(ops::read_plan(text));
    if (const Status status = plan::verify(*read); !status.ok())
      throw std::runtime_error(status.error().message);
    if (print(*read) != text) throw std::runtime_error("does not read as it prints:\n" + text);
    programs.push_back(or_throw(compile(read)));
  }
  return programs;
}

// The exchanges of a program in order. All ranks must agree on them.
inline std::vector<std::string> exchanges_of(const Program& program) {
  std::vector<std::string> list;
  for (const Task& task : program.tasks)
    if (const auto* exchange = std::get_if<Exchange>(&program.units[task.unit].kernel))
      list.push_back(fmt::format("{} over {}", name(exchange->kind), exchange->axis));
  return list;
}

class LockstepRank {
 public:
  explicit LockstepRank(const Program& program)
      : program_(program),
        // Garbage that would spoil any sum: memory must be written before it is read.
        memory_(static_cast<std::size_t>(program.bytes() + 64), std::byte{0x7f}) {
    std::int64_t scratch = 0;
    for (const Unit& unit : program.units) {
      kernels_.push_back(device::cpu::make_kernel(program, unit, memory()));
      if (kernels_.back() != nullptr) scratch = std::max(scratch, kernels_.back()->scratch_bytes());
    }
    scratch_.resize(static_cast<std::size_t>(scratch + 64));
  }

  std::byte* memory() { return memory_.data(); }
  const Program& program() const { return program_; }

  void write(const Port& port, const ops::Tensor<float>& tensor) {
    for (std::size_t i = 0; i < tensor.data.size(); ++i)
      device::store_element(port.place.dtype, device::cpu::address(program_, port.place, memory()),
                            static_cast<std::int64_t>(i), static_cast<double>(tensor.data[i]));
  }
  std::vector<float> read(const Place& place) {
    std::vector<float> data;
    for (std::int64_t i = 0; i < place.elements(); ++i)
      data.push_back(static_cast<float>(
          device::load_element(place.dtype, device::cpu::address(program_, place, memory()), i)));
    return data;
  }

  // Runs up to the next exchange; null at the end of the step.
  const Exchange* next() {
    for (; at_ < program_.tasks.size(); ++at_) {
      const Task& task = program_.tasks[at_];
      if (const auto* exchange = std::get_if<Exchange>(&program_.units[task.unit].kernel)) {
        ++at_;
        return exchange;
      }
      kernels_[task.unit]->run(task, scratch_.data());
    }
    at_ = 0;
    return nullptr;
  }

 private:
  const Program& program_;
  std::vector<std::byte> memory_, scratch_;
  std::vector<std::unique_ptr<device::cpu::Kernel>> kernels_;
  std::size_t at_ = 0;
};

// The exchange of one group. The size of each side must match the counts of the others.
inline void exchange_by_hand(const std::vector<const Exchange*>& sides,
                             const std::vector<LockstepRank*>& ranks) {
  using Kind = Exchange::Kind;
  const std::size_t n = sides.size();
  std::vector<std::vector<float>> given(n), taken(n);
  const auto part = [](const std::vector<float>& data, const std::vector<std::int64_t>& counts,
                       std::size_t rank) {
    std::int64_t begin = 0;
    for (std::size_t r = 0; r < rank; ++r) begin += counts[r];
    if (begin + counts[rank] > static_cast<std::int64_t>(data.size()))
      throw std::runtime_error("a rank gives less than its counts say");
    return std::vector<float>(data.begin() + begin, data.begin() + begin + counts[rank]);
  };
  for (std::size_t r = 0; r < n; ++r)
    if (sides[r]->operand.buffer.valid()) {
      Place flat = sides[r]->operand;
      given[r] = ranks[r]->read(flat);
    }
  std::vector<float> combined = given[0];
  const bool reduces = sides[0]->kind == Kind::all_reduce || sides[0]->kind == Kind::reduce_scatter;
  for (std::size_t r = 1; reduces && r < n; ++r)
    for (std::size_t i = 0; i < combined.size(); ++i) {
      const float x = given[r].at(i);
      combined[i] = sides[0]->monoid == plan::Monoid::max   ? std::max(combined[i], x)
                    : sides[0]->monoid == plan::Monoid::min ? std::min(combined[i], x)
                                                            : combined[i] + x;
    }
  for (std::size_t r = 0; r < n; ++r) {
    switch (sides[0]->kind) {
      case Kind::all_reduce: taken[r] = combined; break;
      case Kind::reduce_scatter: taken[r] = part(combined, sides[r]->counts, r); break;
      case Kind::all_gather:
        for (std::size_t s = 0; s < n; ++s) {
          if (static_cast<std::int64_t>(given[s].size()) != sides[r]->counts[s])
            throw std::runtime_error("a rank gives other than the counts say");
          taken[r].insert(taken[r].end(), given[s].begin(), given[s].end());
        }
        break;
      case Kind::all_to_all:
      case Kind::halo:
        for (std::size_t s = 0; s < n; ++s) {
          const std::vector<float> block = part(given[s], sides[s]->counts, r);
          if (static_cast<std::int64_t>(block.size()) != sides[r]->takes[s])
            throw std::runtime_error("one rank gives other than the other takes");
          taken[r].insert(taken[r].end(), block.begin(), block.end());
        }
        break;
      case Kind::broadcast_from: taken[r] = given[static_cast<std::size_t>(sides[r]->shift)]; break;
      case Kind::permute_ranks: {
        const auto ranks_here = static_cast<std::int64_t>(n);
        const std::int64_t from =
            ((static_cast<std::int64_t>(r) - sides[r]->shift) % ranks_here + ranks_here) % ranks_here;
        taken[r] = given[static_cast<std::size_t>(from)];
        break;
      }
      case Kind::send:
      case Kind::receive: throw std::runtime_error("ranks in lockstep exchange no messages");
    }
    const Place& to = sides[r]->result;
    const std::int64_t room = to.buffer.valid() ? to.elements() : 0;
    if (room != static_cast<std::int64_t>(taken[r].size()))
      throw std::runtime_error(fmt::format("rank {} has room for {}, gets {}", r, room, taken[r].size()));
  }
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t i = 0; i < taken[r].size(); ++i)
      device::store_element(sides[r]->result.dtype,
                            device::cpu::address(ranks[r]->program(), sides[r]->result, ranks[r]->memory()),
                            static_cast<std::int64_t>(i), static_cast<double>(taken[r][i]));
}

class LockstepMesh {
 public:
  LockstepMesh(const plan::Mesh& mesh, const std::vector<Program>& programs) : mesh_(mesh) {
    for (const Program& program : programs) ranks_.push_back(std::make_unique<LockstepRank>(program));
  }

  LockstepRank& rank(std::size_t r) { return *ranks_[r]; }

  void step() {
    for (;;) {
      std::vector<const Exchange*> sides;
      for (const auto& rank : ranks_) sides.push_back(rank->next());
      if (std::ranges::all_of(sides, [](const Exchange* side) { return side == nullptr; })) return;
      for (const Exchange* side : sides)
        if (side == nullptr || side->kind != sides[0]->kind || side->axis != sides[0]->axis)
          throw std::runtime_error("the ranks are at different exchanges");
      const auto axis = static_cast<std::size_t>(mesh_.find(sides[0]->axis));
      for (std::int32_t r = 0; r < mesh_.ranks(); ++r) {
        if (mesh_.coordinate(r, axis) != 0) continue;
        std::vector<const Exchange*> group;
        std::vector<LockstepRank*> members;
        for (const std::int32_t member : mesh_.group(r, axis)) {
          group.push_back(sides[static_cast<std::size_t>(member)]);
          members.push_back(ranks_[static_cast<std::size_t>(member)].get());
        }
        exchange_by_hand(group, members);
      }
    }
  }

 private:
  const plan::Mesh mesh_;
  std::vector<std::unique_ptr<LockstepRank>> ranks_;
};

// "" when the outputs of every rank, and the state it keeps for the next step, equal those of the
// virtual mesh; else a description of the difference.
inline std::string difference_in_lockstep(const plan::Graph& graph, const plan::Mesh& mesh,
                                          ops::Tensors<float> whole = {}, float tolerance = 1e-4f) {
  Random random(7);
  const std::vector<plan::Layout> layouts = or_throw(spmd::infer_layouts(graph, mesh));
  const ops::MeshInputs<float> inputs =
      ops::spread<float>(graph, mesh, std::move(whole), layouts, {}, random);
  const std::vector<spmd::MeshTensor<float>> expected = or_throw(spmd::interpret_on_mesh<float>(
      graph, mesh, [&](std::string_view name) { return &inputs.held.find(name)->second; }));
  const std::vector<Program> programs = programs_of(graph, mesh);
  LockstepMesh ranks(mesh, programs);
  for (std::size_t r = 0; r < programs.size(); ++r) {
    if (exchanges_of(programs[r]) != exchanges_of(programs[0]))
      return fmt::format("rank {} has other exchanges than rank 0", r);
    for (const auto* ports : {&programs[r].inputs, &programs[r].parameters, &programs[r].states})
      for (const Port& port : *ports) ranks.rank(r).write(port, inputs.held.at(port.name).ranks[r]);
  }
  ranks.step();
  for (std::size_t o = 0; o < expected.size(); ++o) {
    const plan::Output& output = graph.outputs()[o];
    const std::string name(graph.text(output.name));
    for (std::size_t r = 0; r < programs.size(); ++r) {
      const std::vector<float>& wanted = expected[o].ranks[r].data;
      std::vector<float> found;
      for (const auto* ports : {&programs[r].outputs, &programs[r].parameters, &programs[r].states})
        for (const Port& port : *ports)
          if (port.name == name || port.name == graph.updated(output)) found = ranks.rank(r).read(port.place);
      if (found.size() != wanted.size())
        return fmt::format("{} on rank {}: {} elements, expected {}", name, r, found.size(), wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i)
        if (!(wanted[i] == found[i] ||
              std::abs(wanted[i] - found[i]) <= tolerance * (1 + std::abs(wanted[i]))))
          return fmt::format("{} on rank {}: element {} is {}, expected {}\n{}", name, r, i, found[i],
                             wanted[i], print(programs[r]));
    }
  }
  return "";
}

}  // namespace weft::program
