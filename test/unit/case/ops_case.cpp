#include "ops_case.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/plan/graph/text.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::ops {
namespace {

constexpr std::string_view kCases = R"(
constant | {value=2.5, dtype=f32}
position | {along=s, size=4}
contract | f32[b=3,d=4] | f32[d=4,f=2] | {to=[b,f]}
contract | f32[b=2,s=3,d=4] | f32[d=4,f=1] | f32[b=2,f=1] | {to=[f,b]}
contract | f32[b=2] | f32[d=3] | {to=[d,b]}
contract | f32[b=2,d=3] | {to=[]}
contract | f32[b=2,d=1] | f32[d=1] | {to=[]}
reduce | f32[b=3,d=4] | {kind=sum, to=[d]}
reduce | f32[b=3,c=2,d=4] | {kind=sum, to=[d,b]}
reduce | f32[b=4,d=3] | {kind=mean, to=[d]}
reduce | f32[b=4,d=3] | {kind=mean, to=[d], count=4}
reduce | f32[b=4,d=3] | {kind=mean, to=[], count=12}
reduce | f32[b=3,d=4] | {kind=max, to=[b]}
reduce | f32[b=3,d=4,c=1] | {kind=min, to=[c]}
broadcast | f32[b=2] | {type=f32[d=3,b=2]}
broadcast | f32[] | {type=f32[d=3,b=2]}
broadcast | f32[c=2,b=2] | {type=f32[b=2,d=3,c=2]}
transpose | f32[a=2,b=3,c=4] | {to=[c,a,b]}
rename | f32[a=2,b=3] | {from=[b], to=[c]}
rename | f32[a=2,b=3] | {from=[a,b], to=[b,a]}
split | f32[b=2,d=12,c=2] | {along=d, into=f32[h=4,e=3]}
split | f32[d=8] | {along=d, into=f32[d=2,g=2,e=2]}
merge | f32[b=2,h=4,e=3,c=2] | {along=[h,e], into=d}
merge | f32[h=4,e=1] | {along=[h,e], into=h}
slice | f32[b=2,d=5,c=2] | {along=d, begin=1, end=4}
pad | f32[b=2,d=3,c=2] | {along=d, before=2, after=1}
concat | f32[b=2,d=3,c=2] | f32[b=2,d=1,c=2] | f32[b=2,d=2,c=2] | {along=d}
stop-gradient | f32[b=2,d=3]
cast | f32[b=2,d=3] | {to=f64}
cast | f32[b=2,d=3] | {to=bool}
cast | i32[b=2] < 5 | {to=f32}
softmax | f32[b=3,c=4] | {over=[c]}
softmax | f32[s=2,b=2,t=3] | {over=[t,s]}
softmax | f32[b=2,c=1] | {over=[c]}
layer-norm:2 | f32[b=3,d=4] | {over=[d]}
layer-norm:2 | f32[d=2,b=3,e=2] | {over=[d,e], epsilon=0.1}
rms-norm:2 | f32[b=3,d=4] | {over=[d]}
rms-norm:2 | f32[d=2,b=3,e=2] | {over=[d,e], epsilon=0.1}
batch-norm:4 | f32[b=3,c=2,h=2] | f32[c=2] | f32[c=2] > 0 | {over=[b,h]}
batch-norm:4 | f32[b=1,c=3] | f32[c=3] | f32[c=3] > 0 | {over=[b], epsilon=0.5}
batch-norm:4 | f32[b=3,c=2,g=2] | f32[g=2,c=2] | f32[c=2,g=2] > 0 | {over=[b], mode=infer, momentum=0.3}
cross-entropy | f32[b=4,c=3] | i32[b=4] < 3 | {over=c}
cross-entropy | f32[c=3,b=2,s=2] | i32[s=2,b=2] < 3 | {over=c}
cross-entropy | f32[b=4,c=3] | i32[b=4] < 3 | {over=c, smoothing=0.2}
cross-entropy-gradient | f32[b=4,c=3] | i32[b=4] < 3 | f32[b=4] | {over=c}
cross-entropy-gradient | f32[b=4,c=3] | i32[b=4] < 3 | f32[b=4] | {over=c, smoothing=0.2}
linear-cross-entropy:3 | f32[b=4,d=2] | f32[v=3,d=2] | i32[b=4] < 3 | {over=v, inner=[d]}
linear-cross-entropy:4 | f32[b=4,d=2] | f32[d=2,v=3] | i32[b=4] < 3 | f32[v=3] | {over=v, inner=[d], smoothing=0.1}
linear-cross-entropy:3 | f32[d=2,b=2,e=2,s=2] | f32[e=2,v=3,d=2] | i64[s=2,b=2] < 4 | {over=v, inner=[d,e], smoothing=0.2}
labelled | i32[b=2,s=3] < 5 | {classes=3, dtype=f32}
gather | i32[b=2,s=3] < 4 | f32[v=4,d=3] | {along=v}
gather | i32[b=2,s=3] < 4 | f32[b=2,v=4] | {along=v}
gather | i32[] < 2 | f32[v=3] | {along=v}
scatter-add | i32[b=2,s=3] < 4 | f32[b=2,s=3,d=2] | {along=n, size=4, to=[n,d]}
scatter-add | i32[b=2,s=3] < 4 | f32[s=3] | {along=n, size=4, to=[b,n]}
scatter-add | i32[s=3] < 4 | f32[d=2,s=3,e=2] | {along=n, size=4, to=[d,n]}
top-k:2 | f32[b=3,x=5] | {over=x, into=k, count=2}
top-k:2 | f32[x=4,b=2] | {over=x, into=k, count=4}
slot | i32[b=2,s=6] < 3 | {experts=3, capacity=2, over=[s]}
slot | i32[b=3,s=2,k=2] < 2 | {experts=2, capacity=3, over=[k,s]}
conv2d | f32[b=2,c=2,h=4,w=5] | f32[o=4,c=2,r=3,q=2]
conv2d | f32[b=2,c=2,h=5,w=4] | f32[o=3,i=2,r=3,q=3] | {stride=2, padding=1}
conv2d | f32[b=2,c=4,h=3,w=3] | f32[o=6,i=2,r=2,q=2] | {groups=2}
conv2d | f32[b=2,c=3,h=4,w=4] | f32[o=3,i=1,r=3,q=3] | {stride=3, padding=2, groups=3}
conv2d | f32[b=2,c=2,h=3,w=4] | f32[o=3,i=2,r=1,q=3] | {padding_w=1}
conv2d | f32[b=1,c=2,h=3,w=5] | f32[o=2,i=2,r=3,q=3] | {stride=2, padding=1, padding_w=0}
conv2d | f32[b=1,c=1,h=1,w=1] | f32[o=1,i=1,r=1,q=1]
conv2d | f32[b=1,c=2,h=4,w=4] | f32[o=2,i=2,r=3,q=3] | {padding=1, padding_w=0, high=4, wide=3}
conv2d-input-gradient | f32[b=2,o=4,h=3,w=2] | f32[o=4,i=2,r=3,q=3] | {stride=2, padding=1, type=f32[b=2,c=2,h=5,w=4]}
conv2d-input-gradient | f32[b=2,o=4,h=2,w=2] | f32[o=4,i=1,r=2,q=2] | {groups=2, type=f32[b=2,c=2,h=3,w=3]}
conv2d-input-gradient | f32[b=2,o=4,h=3,w=4] | f32[o=4,i=2,r=1,q=3] | {padding_w=1, type=f32[b=2,c=2,h=3,w=4]}
conv2d-weight-gradient | f32[b=2,o=4,h=3,w=2] | f32[b=2,c=2,h=5,w=4] | {stride=2, padding=1, type=f32[o=4,i=2,r=3,q=3]}
conv2d-weight-gradient | f32[b=2,o=4,h=2,w=2] | f32[b=2,c=2,h=3,w=3] | {groups=2, type=f32[o=4,i=1,r=2,q=2]}
conv2d-weight-gradient | f32[b=2,o=4,h=3,w=4] | f32[b=2,c=2,h=3,w=4] | {padding_w=1, type=f32[o=4,i=2,r=1,q=3]}
max-pool | f32[b=2,c=2,h=4,w=5] | {size=2, stride=2}
max-pool | f32[c=3,h=5,w=4] | {size=3, stride=2, padding=1}
max-pool | f32[h=2,w=2] | {size=2, stride=1, padding=1}
max-pool-gradient | f32[c=3,h=3,w=2] | f32[c=3,h=5,w=4] | {size=3, stride=2, padding=1}
max-pool | f32[c=2,h=4,w=4] | {size=3, stride=1, padding=2, padding_w=1, high=3, wide=5}
avg-pool | f32[c=2,h=4,w=4] | {size=3, stride=1, padding=0, padding_w=1, high=4, wide=2}
avg-pool | f32[b=2,c=2,h=4,w=5] | {size=2, stride=2}
avg-pool | f32[c=3,h=5,w=4] | {size=3, stride=2, padding=1}
avg-pool-gradient | f32[c=3,h=3,w=2] | {size=3, stride=2, padding=1, type=f32[c=3,h=5,w=4]}
attention:2 | f32[b=2,s=3,e=2] | f32[b=2,t=4,e=2] | f32[b=2,t=4,e=2] | {over=t, along=s, inner=[e], divisor=1.5}
attention:2 | f32[h=2,g=2,s=3,e=2] | f32[t=3,h=2,e=2] | f32[h=2,t=3,f=3] | {over=t, along=s, inner=[e], causal=1}
attention:2 | f32[s=4,e=2] | f32[t=4,e=2] | f32[t=4] | {over=t, along=s, inner=[e], causal=1, window=2, scale=0.5}
attention:2 | f32[b=2,s=2,e=2] | f32[b=2,t=3,e=2] | f32[b=2,t=3,e=2] | bool[b=2,t=3] | {over=t, along=s, inner=[e]}
attention:2 | f32[s=2,d=2,e=1] | f32[t=1,e=1,d=2] | f32[t=1,f=2] | {over=t, along=s, inner=[d,e], begin=3, causal=1}
attention-gradient:3 | f32[b=2,s=3,e=2] | f32[b=2,t=4,e=2] | f32[b=2,t=4,e=2] | f32[b=2,s=3,e=2] | f32[b=2,s=3] | f32[b=2,s=3,e=2] | {over=t, along=s, inner=[e], causal=1, divisor=9}
attention-gradient:3 | f32[g=2,s=3,e=2] | f32[t=3,e=2] | f32[t=3,f=2] | f32[g=2,s=3,f=2] | f32[g=2,s=3] | f32[g=2,s=3,f=2] | bool[s=3,t=3] | {over=t, along=s, inner=[e], divisor=9}
attention-merge:2 | f32[b=2,s=3,e=2] | f32[b=2,s=3] | f32[b=2,s=3,e=2] | f32[b=2,s=3]
attention-merge:2 | f32[s=3] | f32[s=3] | f32[s=3] | f32[s=3]
rotary | f32[b=2,s=3,e=4] | {along=s, pairs=e}
rotary | f32[e=2,b=2,s=3] | {along=s, pairs=e, base=100, inverse=1}
recurrence | f32[b=2,s=4] | f32[b=2,s=4] | {along=s}
recurrence | f32[] | f32[b=2,s=3,d=2] | {along=s}
recurrence | f32[d=2] | f32[s=3,d=2,b=2] | {along=s, reverse=1}
recurrence | f32[s=3,b=2] | f32[b=2,s=3,d=2] | {along=s, reverse=1}
recurrence | f32[s=1] | f32[b=2,s=1] | {along=s}
dropout | f32[b=3,d=4] | i64[] < 5 | {rate=0.5, stream=3}
sgd | f32[d=3,f=2] | f32[d=3,f=2] | {lr=0.1}
sgd | f32[d=3,f=2] | f32[d=3,f=2] | f32[] | {lr=0.1}
momentum:2 | f32[d=3,f=2] | f32[d=3,f=2] | f32[d=3,f=2] | {lr=0.1}
momentum:2 | f32[d=3,f=2] | f32[d=3,f=2] | f32[d=3,f=2] | f32[] | {lr=0.1}
adam:3 | f32[d=3] | f32[d=3] | f32[d=3] | f32[d=3] > 0 | i64[] < 5 | {lr=0.1}
adamw:3 | f32[d=3] | f32[d=3] | f32[d=3] | f32[d=3] > 0 | i64[] < 5 | {decay=0.2}
adamw:3 | f32[d=3] | f32[d=3] | f32[d=3] | f32[d=3] > 0 | i64[] < 5 | f32[] | {decay=0.2}
select | bool[b=2,c=3] | f32[c=3,d=2] | f32[b=2]
select | bool[] | i32[c=3] < 5 | i32[] < 5
and | bool[b=2,c=3] | bool[c=3]
or | bool[b=2,c=3] | bool[c=3]
not | bool[b=2,c=3]
div | i32[b=3] < 9 | i32[d=3] < 3
mod | i32[b=3] < 9 | i32[d=3] < 3
add sub mul div mod maximum minimum | f32[b=2,d=3] | f32[b=2,d=3]
add sub mul div mod maximum minimum | f32[b=2,d=3] | f32[d=3,c=2]
add sub mul div mod maximum minimum | f32[] | f32[d=3,c=1]
add sub mul div mod maximum minimum | f32[c=2,d=3] | f32[d=3]
equal not-equal less less-equal greater greater-equal | f32[b=2,d=3] | f32[b=2,d=3]
equal not-equal less less-equal greater greater-equal | i32[b=2,d=3] < 2 | i32[d=3,c=2] < 2
log sqrt rsqrt | f32[b=2,d=3] > 0
pow | f32[b=2,d=3] > 0 | f32[d=3]
pow | f32[d=3] > 0 | f32[b=2,d=3]
all-reduce | f32[b=2,d=3] | {axis=gpu}
all-reduce | i32[b=2] < 5 | {axis=gpu, kind=max}
reduce-scatter | f32[b=2,d=3] | {axis=gpu, along=d}
all-gather slice-across | f32[b=2,d=3] | {axis=gpu, along=b}
halo | f32[b=2,d=3] | {axis=gpu, along=b, before=1, after=2}
all-to-all | f32[b=2,d=3] | {axis=gpu, from=b, to=d}
broadcast-from | f32[b=2,d=3] | {axis=gpu, root=1}
permute-ranks | f32[b=2,d=3] | {axis=gpu, by=-2}
addends | f32[b=2,d=3] | {axis=gpu, into=a, count=2}
encode | f32[b=2,d=3,e=4] | {codec=int8, block=8, segment=1, keep=[b], into=w}
decode | i32[b=2,w=6] < 5 | {codec=int8, block=8, segment=1, type=f32[b=2,d=3,e=4]}
)";

std::string_view type_of(std::string_view operand) { return operand.substr(0, operand.find(' ')); }

}  // namespace

std::vector<std::string> parts_of(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + separator.size());
  }
}

std::vector<Case> read_cases(std::string_view table) {
  std::vector<Case> cases;
  for (const std::string& line : parts_of(table, "\n")) {
    if (line.empty()) continue;
    std::vector<std::string> parts = parts_of(line, " | ");
    for (const std::string& op : parts_of(parts[0], " ")) {
      Case c;
      const std::size_t colon = op.find(':');
      c.op = op.substr(0, colon);
      if (colon != std::string::npos) c.results = op[colon + 1] - '0';
      for (std::size_t i = 1; i < parts.size(); ++i) {
        if (parts[i].starts_with('{'))
          c.attributes = parts[i];
        else
          c.operands.push_back(parts[i]);
      }
      cases.push_back(c);
    }
  }
  return cases;
}

std::span<const Case> all_cases() {
  static const std::vector<Case> kRead = [] {
    std::vector<Case> cases = read_cases(kCases);
    // A row of pointwise_rows.h with ordinary operands needs no line above.
    for (const Pointwise& row : pointwise_rows())
      if (std::ranges::find(cases, row.name, &Case::op) == cases.end())
        cases.push_back({std::string(row.name), std::vector<std::string>(row.arity, "f32[b=2,d=3]")});
    return cases;
  }();
  return kRead;
}

std::string text_of(const Case& c) {
  std::string text = "plan case\n";
  std::vector<std::string> operands, results, outputs;
  for (const std::string& operand : c.operands) {
    const std::size_t i = operands.size();
    text += fmt::format("%{} = input {{name=x{}, type={}}}\n", i, i, type_of(operand));
    operands.push_back(fmt::format("%{}", i));
  }
  for (std::size_t k = 0; k < static_cast<std::size_t>(c.results); ++k) {
    results.push_back(fmt::format("%{}", operands.size() + k));
    outputs.push_back(fmt::format("y{}={}", k, results.back()));
  }
  text +=
      fmt::format("{} = {} {} {}\n", fmt::join(results, ", "), c.op, fmt::join(operands, ", "), c.attributes);
  return text + fmt::format("return {}\n", fmt::join(outputs, ", "));
}

plan::Graph graph_of(const Case& c) {
  Result<plan::Graph> graph = plan::read(text_of(c), all());
  if (!graph.ok()) throw std::runtime_error(graph.error().message);
  return std::move(graph).value();
}

std::optional<Case> resized(const Case& c, std::int64_t most, Random& random) {
  std::map<std::string, std::int64_t> sizes;
  // Sizes are in brackets: f32[b=2,d=3].
  const auto rewrite = [&](const std::string& text) {
    std::string made;
    bool inside = false;
    for (std::size_t i = 0; i < text.size();) {
      if (text[i] == '[') inside = true;
      if (text[i] == ']') inside = false;
      const std::size_t equals = text.find_first_of("=,]", i);
      const bool is_name = std::isalpha(static_cast<unsigned char>(text[i])) != 0;
      if (!inside || !is_name || equals == std::string::npos || text[equals] != '=') {
        made += text[i++];
        continue;
      }
      const std::string name = text.substr(i, equals - i);
      if (!sizes.contains(name)) sizes[name] = random.between(1, most);
      made += name + "=" + std::to_string(sizes[name]);
      i = text.find_first_of(",]", equals);
    }
    return made;
  };
  Case other = c;
  for (std::string& operand : other.operands) operand = rewrite(operand);
  other.attributes = rewrite(other.attributes);
  try {
    graph_of(other);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return other;
}

template <class T>
Tensor<T> random_tensor(std::string_view operand, const plan::Type& type, const Numbers<T>& numbers,
                        Random& random) {
  const auto less = operand.find(" < ");
  const bool positive = operand.find(" > ") != std::string_view::npos;
  const std::int64_t most =
      less == std::string_view::npos ? 4 : std::stoll(std::string(operand.substr(less + 3)));
  const auto element = [&]() -> T {
    if (type.dtype == plan::DType::boolean) return numbers.from_integer(random.between(0, 1));
    if (is_integer(type.dtype)) return numbers.from_integer(random.between(-1, most));
    if constexpr (std::is_same_v<T, Field>) return Field(random.next());
    const double size = 0.2 + 1.8 * random.uniform();
    return numbers.from(positive || random.between(0, 1) == 1 ? size : -size);
  };
  Tensor<T> tensor{sizes_of(type.dims), {}};
  for (std::int64_t i = 0; i < type.elements(); ++i) tensor.data.push_back(element());
  return tensor;
}

template <class T>
Tensors<T> random_inputs(const Case& c, const plan::Graph& graph, const Numbers<T>& numbers, Random& random) {
  Tensors<T> tensors;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    tensors[fmt::format("x{}", i)] =
        random_tensor(c.operands[i], graph.type(plan::ValueId(i)), numbers, random);
  return tensors;
}

template <class T>
std::vector<Tensor<T>> outputs_of(const plan::Graph& graph, const Tensors<T>& inputs,
                                  const Numbers<T>& numbers) {
  const Sources<T> sources = [&](std::string_view name) {
    const auto found = inputs.find(name);
    return found == inputs.end() ? nullptr : &found->second;
  };
  Result<std::vector<Tensor<T>>> outputs = interpret<T>(graph, sources, numbers);
  if (!outputs.ok()) throw std::runtime_error(outputs.error().message);
  return std::move(outputs).value();
}

template Tensor<float> random_tensor(std::string_view, const plan::Type&, const Numbers<float>&, Random&);
template Tensor<double> random_tensor(std::string_view, const plan::Type&, const Numbers<double>&, Random&);
template Tensor<Field> random_tensor(std::string_view, const plan::Type&, const Numbers<Field>&, Random&);
template Tensors<float> random_inputs(const Case&, const plan::Graph&, const Numbers<float>&, Random&);
template Tensors<double> random_inputs(const Case&, const plan::Graph&, const Numbers<double>&, Random&);
template Tensors<Field> random_inputs(const Case&, const plan::Graph&, const Numbers<Field>&, Random&);
template std::vector<Tensor<float>> outputs_of(const plan::Graph&, const Tensors<float>&,
                                               const Numbers<float>&);
template std::vector<Tensor<double>> outputs_of(const plan::Graph&, const Tensors<double>&,
                                                const Numbers<double>&);
template std::vector<Tensor<Field>> outputs_of(const plan::Graph&, const Tensors<Field>&,
                                               const Numbers<Field>&);

std::vector<Slicing> legal_slicings(const plan::Signature& signature) {
  std::vector<Slicing> slicings;
  for (const plan::Loop& loop : signature.loops) {
    if (loop.role == plan::Role::whole) continue;
    slicings.push_back({.index = loop.index,
                        .operands = loop.operands,
                        .results = loop.results,
                        .partial = loop.monoid,
                        .positional = loop.positional});
  }
  return slicings;
}

}  // namespace weft::ops
