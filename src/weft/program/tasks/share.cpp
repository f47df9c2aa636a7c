#include "weft/program/tasks/share.h"

#include <algorithm>

namespace weft::program {
namespace {

void find_spans(Program& program) {
  constexpr std::uint32_t kNever = 0xffffffff;
  for (Buffer& buffer : program.buffers) buffer.born = kNever, buffer.dies = 0;
  for (std::uint32_t u = 0; u < program.units.size(); ++u)
    for (const std::vector<Place>* places : {&program.units[u].reads, &program.units[u].writes})
      for (const Place& place : *places) {
        Buffer& buffer = program.buffers[place.buffer.value];
        buffer.born = std::min(buffer.born, u);
        buffer.dies = std::max(buffer.dies, u + 1);
      }
  for (Buffer& buffer : program.buffers)
    if (buffer.born == kNever) buffer.born = 0;
}

// Keeps the operand of an exchange until the result is first read: if its memory were reused at
// once, the next unit would have to wait for the network.
void keep_during_exchanges(Program& program) {
  std::vector<std::uint32_t> first_read(program.buffers.size(),
                                        static_cast<std::uint32_t>(program.units.size()));
  for (std::uint32_t u = static_cast<std::uint32_t>(program.units.size()); u-- > 0;) {
    for (const Place& place : program.units[u].reads) first_read[place.buffer.value] = u;
    const auto* exchange = std::get_if<Exchange>(&program.units[u].kernel);
    if (exchange == nullptr || !exchange->operand.buffer.valid() || !exchange->result.buffer.valid())
      continue;
    Buffer& given = program.buffers[exchange->operand.buffer.value];
    if (exchange->operand.buffer != exchange->result.buffer)
      given.dies = std::max(given.dies, first_read[exchange->result.buffer.value]);
  }
}

bool same_walk(const RowOperand& x, const RowOperand& y) {
  return x.along == 1 && y.along == 1 && x.place.offset == 0 && y.place.offset == 0 &&
         is_real(x.place.dtype) && x.place.dtype == y.place.dtype && std::ranges::equal(x.outer, y.outer);
}

// By register: the last instruction that reads it.
std::vector<std::size_t> last_reads(const RowLoop& loop) {
  std::vector<std::size_t> last(loop.is_run.size());
  for (std::size_t i = 0; i < loop.code.size(); ++i)
    for (const std::uint16_t operand : loop.code[i].operands)
      if (operand != RowInstruction::kNone) last[operand] = i;
  return last;
}

// By register: the instruction that writes it.
std::vector<std::size_t> makers(const RowLoop& loop) {
  std::vector<std::size_t> made(loop.is_run.size());
  for (std::size_t i = 0; i < loop.code.size(); ++i) {
    if (loop.code[i].result != RowInstruction::kNone) made[loop.code[i].result] = i;
    if (loop.code[i].second != RowInstruction::kNone) made[loop.code[i].second] = i;
  }
  return made;
}

class Sharing {
 public:
  explicit Sharing(Program& program) : program_(program), home_(program.buffers.size()) {
    for (std::size_t b = 0; b < home_.size(); ++b) home_[b] = BufferId(b);
  }

  void run() {
    for (std::uint32_t u = 0; u < program_.units.size(); ++u) {
      if (auto* loop = std::get_if<RowLoop>(&program_.units[u].kernel)) share(*loop, u);
      if (auto* exchange = std::get_if<Exchange>(&program_.units[u].kernel)) share(*exchange, u);
    }
    for_each_buffer_id(program_, [&](BufferId& id) { id = home(id); });
  }

 private:
  BufferId home(BufferId id) const {
    while (home_[id.value] != id) id = home_[id.value];
    return id;
  }

  void share(const RowLoop& loop, std::uint32_t unit) {
    const std::vector<std::size_t> last = last_reads(loop), made = makers(loop);
    for (const RowInstruction& store : loop.code) {
      if (store.step != RowStep::store) continue;
      const RowOperand& to = loop.operands[store.memory];
      Buffer& written = program_.buffers[home(to.place.buffer).value];
      if (written.role != BufferRole::temporary || written.born != unit) continue;
      for (const RowInstruction& load : loop.code) {
        if (load.step != RowStep::load) continue;
        const RowOperand& from = loop.operands[load.memory];
        const BufferId old = home(from.place.buffer);
        Buffer& read = program_.buffers[old.value];
        if (read.role != BufferRole::temporary || read.born == unit || read.dies != unit + 1 ||
            read.bytes != written.bytes || !same_walk(from, to))
          continue;
        // A register may alias the operand's memory until its last use.
        if (last[load.result] > made[store.operands[0]] || is_read_otherwise(loop, load.memory)) continue;
        read.dies = written.dies;
        home_[home(to.place.buffer).value] = old;
        break;
      }
    }
  }

  // An all-reduce may run in place.
  void share(const Exchange& exchange, std::uint32_t unit) {
    const Place &from = exchange.operand, &to = exchange.result;
    if (exchange.kind != Exchange::Kind::all_reduce || !from.buffer.valid() || !to.buffer.valid()) return;
    const BufferId old = home(from.buffer);
    Buffer &read = program_.buffers[old.value], &written = program_.buffers[home(to.buffer).value];
    if (read.role != BufferRole::temporary || read.born == unit || read.dies != unit + 1) return;
    if (written.role != BufferRole::temporary || written.born != unit) return;
    if (from.offset != 0 || to.offset != 0 || read.bytes != written.bytes) return;
    read.dies = written.dies;
    home_[home(to.buffer).value] = old;
  }

  bool is_read_otherwise(const RowLoop& loop, std::uint16_t memory) const {
    const BufferId buffer = home(loop.operands[memory].place.buffer);
    for (std::size_t i = 0; i < loop.operands.size(); ++i)
      if (i != memory && home(loop.operands[i].place.buffer) == buffer) return true;
    return false;
  }

  Program& program_;
  std::vector<BufferId> home_;
};

}  // namespace

bool may_write_over(const RowLoop& loop, BufferId read, BufferId written) {
  const auto count = [&](BufferId buffer) {
    return std::ranges::count_if(loop.operands,
                                 [&](const RowOperand& o) { return o.place.buffer == buffer; });
  };
  if (count(read) != 1 || count(written) != 1 || !loop.accumulators.empty()) return false;
  const std::vector<std::size_t> last = last_reads(loop), made = makers(loop);
  for (const RowInstruction& store : loop.code) {
    if (store.step != RowStep::store || loop.operands[store.memory].place.buffer != written) continue;
    for (const RowInstruction& load : loop.code)
      if (load.step == RowStep::load && loop.operands[load.memory].place.buffer == read)
        return same_walk(loop.operands[load.memory], loop.operands[store.memory]) &&
               last[load.result] <= made[store.operands[0]];
  }
  return false;
}

void for_each_buffer_id(Program& program, const std::function<void(BufferId&)>& visit) {
  const auto visit_place = [&](Place& place) { visit(place.buffer); };
  for (Unit& unit : program.units) {
    std::ranges::for_each(unit.reads, visit_place);
    std::ranges::for_each(unit.writes, visit_place);
    if (unit.unless) visit_place(*unit.unless);
    if (auto* product = std::get_if<MatrixProduct>(&unit.kernel)) {
      for (Operand* operand : {&product->a, &product->b, &product->c}) visit(operand->buffer);
    } else if (auto* loop = std::get_if<RowLoop>(&unit.kernel)) {
      for (RowOperand& operand : loop->operands) visit_place(operand.place);
      for (Accumulator& accumulator : loop->accumulators) {
        visit_place(accumulator.result);
        if (accumulator.partials.valid()) visit(accumulator.partials);
      }
    } else if (auto* call = std::get_if<OperatorCall>(&unit.kernel)) {
      std::ranges::for_each(call->operands, visit_place);
      std::ranges::for_each(call->results, visit_place);
    } else if (auto* updates = std::get_if<Updates>(&unit.kernel)) {
      for (OperatorCall& update : updates->calls) {
        std::ranges::for_each(update.operands, visit_place);
        std::ranges::for_each(update.results, visit_place);
      }
    } else if (auto* exchange = std::get_if<Exchange>(&unit.kernel)) {
      for (Place* place : {&exchange->operand, &exchange->result})
        if (place->buffer.valid()) visit_place(*place);
    } else if (auto* copy = std::get_if<Copy>(&unit.kernel)) {
      visit_place(copy->from);
      visit_place(copy->to);
    } else if (auto* combine = std::get_if<Combine>(&unit.kernel)) {
      visit(combine->partials);
      visit_place(combine->result);
    }
  }
  for (std::vector<Port>* ports : {&program.inputs, &program.parameters, &program.states, &program.outputs})
    for (Port& port : *ports) visit_place(port.place);
}

void find_lifetimes(Program& program) {
  find_spans(program);
  keep_during_exchanges(program);
}

void share_buffers(Program& program) {
  find_spans(program);
  Sharing(program).run();
  find_lifetimes(program);
}

}  // namespace weft::program
