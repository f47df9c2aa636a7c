#include "weft/translate/imports/onnx_blocks.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

namespace weft::imports {
namespace {

using formats::ModelNode;

constexpr std::size_t kMostBlockNodes = 512;

struct Found {
  std::size_t begin = 0, length = 0, times = 0;
  std::size_t saved() const { return length * (times - 1); }
};

class BlockFinder {
 public:
  explicit BlockFinder(const OnnxModel& model) : model_(model), file_(model.file) {
    first_result_ = file_.inputs + file_.weights;
    readers_.resize(file_.values.size());
    for (std::size_t n = 0; n < file_.nodes.size(); ++n)
      for (const std::uint32_t operand : operands(n)) readers_[operand].push_back(n);
    for (const std::uint32_t output : file_.outputs) readers_[output].push_back(file_.nodes.size());
  }

  std::optional<OnnxBlocks> find() {
    Found best;
    const std::size_t nodes = file_.nodes.size();
    for (std::size_t length = 2; length <= std::min(nodes / 2, kMostBlockNodes); ++length)
      for (std::size_t i = 0; i + length < nodes;) {
        std::size_t run = 0;
        while (i + run + length < nodes && alike(i + run, length)) ++run;
        if (run >= length) look_at(i, length, run, best);
        i += run + 1;
      }
    if (best.times < 2) return std::nullopt;
    return split(best);
  }

 private:
  std::vector<std::uint32_t> operands(std::size_t n) const {
    std::vector<std::uint32_t> all = file_.nodes[n].operands;
    if (const auto bias = model_.biases.find(n); bias != model_.biases.end()) all.push_back(bias->second);
    return all;
  }
  bool is_weight(std::uint32_t value) const { return value >= file_.inputs && value < first_result_; }

  template <class Map>
  static bool same_at(const Map& map, std::size_t a, std::size_t b) {
    const auto x = map.find(a), y = map.find(b);
    return x == map.end() ? y == map.end() : y != map.end() && x->second == y->second;
  }

  // Whether node n and node n + distance are equal up to that shift.
  bool alike(std::size_t n, std::size_t distance) const {
    const ModelNode &a = file_.nodes[n], &b = file_.nodes[n + distance];
    if (a.operation != b.operation || a.act != b.act || a.window != b.window || a.stride != b.stride ||
        a.groups != b.groups || a.pad_high != b.pad_high || a.pad_wide != b.pad_wide || a.axis != b.axis ||
        a.order != b.order || a.number != b.number || a.begin != b.begin || a.end != b.end ||
        a.labels != b.labels || !same_at(model_.functions, n, n + distance) ||
        !same_at(model_.infixes, n, n + distance) ||
        file_.shape(file_.result(n)) != file_.shape(file_.result(n + distance)))
      return false;
    const std::vector<std::uint32_t> from = operands(n), to = operands(n + distance);
    if (from.size() != to.size() || model_.biases.contains(n) != model_.biases.contains(n + distance))
      return false;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] == to[i]) continue;
      const bool both = is_weight(from[i]) && is_weight(to[i]);
      const bool moved = from[i] >= first_result_ && to[i] == from[i] + distance;
      if (!(both || moved) || file_.shape(from[i]) != file_.shape(to[i])) return false;
      if (both && (model_.states.contains(from[i]) || model_.states.contains(to[i]))) return false;
    }
    return true;
  }

  // A run may begin in the middle of a block: searches the offset at which only one value crosses
  // between blocks.
  void look_at(std::size_t begin, std::size_t length, std::size_t run, Found& best) const {
    for (std::size_t shift = 0; shift < length && shift < run; ++shift) {
      const Found found{begin + shift, length, (run - shift) / length + 1};
      if (found.times < 2) return;
      if (found.saved() > best.saved() && closes(found)) best = found;
    }
  }

  std::uint32_t end_value(const Found& found, std::size_t block) const {
    return file_.result(found.begin + (block + 1) * found.length - 1);
  }

  // Whether only the last value of each block is read outside it, by the next block only, and each
  // weight belongs to one block.
  bool closes(const Found& found) const {
    if (found.begin == 0) return false;
    const std::size_t end = found.begin + found.times * found.length;
    std::set<std::uint32_t> seen;
    for (std::size_t block = 0; block < found.times; ++block) {
      const std::size_t first = found.begin + block * found.length, next = first + found.length;
      for (std::size_t n = first; n < next; ++n)
        for (const std::size_t reader : readers_[file_.result(n)])
          if (reader >= next && (n + 1 != next || (block + 1 < found.times && reader >= next + found.length)))
            return false;
      for (std::size_t n = first; n < next; ++n)
        for (const std::uint32_t operand : operands(n)) {
          if (!is_weight(operand) || is_shared(operand, found)) continue;
          for (const std::size_t reader : readers_[operand])
            if (reader < first || reader >= next) return false;
        }
    }
    // The input of the first block must not be read after the blocks, since the text gives their
    // output the same name.
    const std::uint32_t enters = file_.result(found.begin - 1);
    if (file_.shape(enters) != file_.shape(end_value(found, 0))) return false;
    bool read = false;
    for (const std::size_t reader : readers_[enters]) {
      if (reader >= found.begin + found.length) return false;
      read = true;
    }
    for (std::size_t n = found.begin; n < found.begin + found.length; ++n)
      for (const std::uint32_t operand : operands(n)) {
        if (model_.positions.contains(operand)) return false;
        const bool outside = operand < file_.result(found.begin);
        const bool own = is_weight(operand) && !is_shared(operand, found);
        if (outside && operand != enters && !own && !is_shared(operand, found)) return false;
      }
    return read && end <= file_.nodes.size();
  }

  // Whether the first two blocks, and so all, read the same value.
  bool is_shared(std::uint32_t value, const Found& found) const {
    bool in_first = false, in_second = false;
    for (const std::size_t reader : readers_[value]) {
      in_first |= reader >= found.begin && reader < found.begin + found.length;
      in_second |= reader >= found.begin + found.length && reader < found.begin + 2 * found.length;
    }
    return in_first && in_second && value < file_.result(found.begin) &&
           value != file_.result(found.begin - 1);
  }

  // The part of the name after the block number: "h.0.attn.weight", beside "h.1.attn.weight",
  // becomes attn.weight.
  static std::string own_name(const std::string& a, const std::string& b) {
    std::size_t differ = 0;
    while (differ < a.size() && differ < b.size() && a[differ] == b[differ]) ++differ;
    while (differ < a.size() && std::isdigit(static_cast<unsigned char>(a[differ])) != 0) ++differ;
    while (differ < a.size() && std::isalnum(static_cast<unsigned char>(a[differ])) == 0) ++differ;
    return differ < a.size() ? a.substr(differ) : a;
  }

  OnnxBlocks split(const Found& found) const {
    OnnxBlocks made;
    const std::size_t begin = found.begin, length = found.length, end = begin + found.times * length;
    // The weights of each block in the order in which it reads them.
    made.weights.resize(found.times);
    std::vector<std::uint32_t> shared;
    for (std::size_t block = 0; block < found.times; ++block)
      for (std::size_t n = begin + block * length; n < begin + (block + 1) * length; ++n)
        for (const std::uint32_t operand : operands(n)) {
          std::vector<std::uint32_t>& own = made.weights[block];
          if (is_shared(operand, found)) {
            if (std::ranges::find(shared, operand) == shared.end()) shared.push_back(operand);
          } else if (is_weight(operand) && std::ranges::find(own, operand) == own.end()) {
            own.push_back(operand);
          }
        }
    const std::uint32_t enters = file_.result(begin - 1);
    std::map<std::uint32_t, std::uint32_t> place;  // maps values of the whole model to the layer's
    formats::ModelFile& layer = made.layer.file;
    const auto add = [&](std::uint32_t value, std::string id) {
      place.emplace(value, static_cast<std::uint32_t>(layer.values.size()));
      layer.values.push_back({std::move(id), file_.shape(value)});
    };
    add(enters, "x");
    for (const std::uint32_t value : shared) add(value, file_.values[value].id);
    layer.inputs = static_cast<std::uint32_t>(layer.values.size());
    for (std::size_t w = 0; w < made.weights[0].size(); ++w)
      add(made.weights[0][w],
          own_name(file_.values[made.weights[0][w]].id, file_.values[made.weights[1][w]].id));
    layer.weights = static_cast<std::uint32_t>(layer.values.size()) - layer.inputs;
    for (std::size_t n = begin; n < begin + length; ++n) {
      add(file_.result(n), file_.values[file_.result(n)].id);
      copy_node(made.layer, n, [&](std::uint32_t value) { return place.at(value); });
    }
    layer.outputs = {layer.result(length - 1)};

    formats::ModelFile& rest = made.rest.file;
    rest.name = file_.name;
    rest.inputs = file_.inputs;
    rest.weights = file_.weights;
    made.rest.states = model_.states;
    made.rest.positions = model_.positions;
    made.rest.labels = model_.labels;
    made.rest.notes = model_.notes;
    made.rest.loss = model_.loss;
    const auto moved = [&](std::uint32_t value) {
      if (value < file_.result(begin)) return value;
      return value - static_cast<std::uint32_t>(end - begin - 1);
    };
    rest.values.assign(file_.values.begin(), file_.values.begin() + first_result_);
    for (std::size_t n = 0; n < file_.nodes.size(); ++n) {
      if (n >= begin && n + 1 < end) continue;
      rest.values.push_back(file_.values[file_.result(n)]);
      if (n + 1 != end) {
        copy_node(made.rest, n, moved);
        continue;
      }
      ModelNode blocks;  // maps x to a value of the same shape
      blocks.operands = {enters};
      made.rest.repeated = RepeatedLayer{rest.nodes.size(), static_cast<std::int64_t>(found.times), shared};
      rest.nodes.push_back(std::move(blocks));
      made.rest.stems.emplace_back("x");
    }
    for (const std::uint32_t output : file_.outputs) rest.outputs.push_back(moved(output));
    return made;
  }

  template <class Place>
  void copy_node(OnnxModel& to, std::size_t n, const Place& place) const {
    const std::size_t at = to.file.nodes.size();
    ModelNode node = file_.nodes[n];
    for (std::uint32_t& operand : node.operands) operand = place(operand);
    to.file.nodes.push_back(std::move(node));
    to.stems.push_back(model_.stems[n]);
    if (const auto bias = model_.biases.find(n); bias != model_.biases.end())
      to.biases[at] = place(bias->second);
    if (const auto one = model_.functions.find(n); one != model_.functions.end())
      to.functions[at] = one->second;
    if (const auto two = model_.infixes.find(n); two != model_.infixes.end()) to.infixes[at] = two->second;
  }

  const OnnxModel& model_;
  const formats::ModelFile& file_;
  std::uint32_t first_result_ = 0;
  std::vector<std::vector<std::size_t>> readers_;  // by value
};

}  // namespace

std::optional<OnnxBlocks> find_blocks(const OnnxModel& model) { return BlockFinder(model).find(); }

}  // namespace weft::imports
