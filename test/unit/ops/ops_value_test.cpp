// Every operator on numbers small enough to check by hand, in float and in double.
#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops_case.h"
#include "weft/plan/ops/operators.h"

namespace weft::ops {
namespace {

// operator | type = elements | .. | {attributes} | => results ; ..
constexpr std::string_view kValues = R"(
constant | {value=2.5, dtype=f32} | => 2.5
position | {along=s, size=4} | => 0 1 2 3
contract | f32[b=2,d=2] = 1 2 3 4 | f32[d=2,f=2] = 5 6 7 8 | {to=[b,f]} | => 19 22 43 50
contract | f32[b=2,d=2] = 1 2 3 4 | f32[d=2,f=2] = 5 6 7 8 | {to=[f,b]} | => 19 43 22 50
contract | f32[d=3] = 1 2 3 | f32[d=3] = 4 5 6 | {to=[]} | => 32
contract | f32[b=2] = 1 2 | f32[d=2] = 3 4 | f32[] = 10 | {to=[b,d]} | => 30 40 60 80
reduce | f32[b=2,d=3] = 1 2 3 4 5 6 | {kind=sum, to=[d]} | => 5 7 9
reduce | f32[b=2,d=3] = 1 2 3 4 5 6 | {kind=mean, to=[b]} | => 2 5
reduce | f32[b=2,d=3] = 1 2 3 4 5 6 | {kind=mean, to=[b], count=6} | => 1 2.5
reduce | f32[b=2,d=3] = 1 2 3 4 5 6 | {kind=max, to=[]} | => 6
reduce | i32[b=2,d=3] = 1 2 3 0 5 6 | {kind=min, to=[d]} | => 0 2 3
broadcast | f32[b=2] = 1 2 | {type=f32[d=2,b=2]} | => 1 2 1 2
transpose | f32[a=2,b=3] = 1 2 3 4 5 6 | {to=[b,a]} | => 1 4 2 5 3 6
rename | f32[a=2] = 1 2 | {from=[a], to=[b]} | => 1 2
split | f32[d=4] = 1 2 3 4 | {along=d, into=f32[h=2,e=2]} | => 1 2 3 4
merge | f32[h=2,e=2] = 1 2 3 4 | {along=[h,e], into=d} | => 1 2 3 4
slice | f32[b=2,d=3] = 1 2 3 4 5 6 | {along=d, begin=1, end=3} | => 2 3 5 6
pad | f32[b=2,d=1] = 1 2 | {along=d, before=1, after=2} | => 0 1 0 0 0 2 0 0
concat | f32[b=2,d=1] = 1 2 | f32[b=2,d=2] = 3 4 5 6 | {along=d} | => 1 3 4 2 5 6
cast | f32[d=4] = 1.7 -1.7 0 3 | {to=i32} | => 1 -1 0 3
cast | f32[d=4] = 1.7 -1.7 0 3 | {to=bool} | => 1 1 0 1
cast | bool[d=2] = 0 1 | {to=f32} | => 0 1
cast | f32[d=2] = 1 1.0625 | {to=f8e4m3} | => 1 1.0625
add | f32[b=2] = 1 2 | f32[d=2] = 10 20 | => 11 21 12 22
sub | f32[d=2] = 5 2 | f32[] = 3 | => 2 -1
mul | f32[d=2] = 5 2 | f32[d=2] = 3 4 | => 15 8
div | f32[d=2] = 7 -1 | f32[] = 2 | => 3.5 -0.5
div | i32[d=3] = 7 -7 7 | i32[d=3] = 2 2 0 | => 3 -3 0
mod | f32[d=2] = 7.5 -7 | f32[d=2] = 2 3 | => 1.5 -1
mod | i32[d=3] = 7 -7 5 | i32[d=3] = 3 3 0 | => 1 -1 0
pow | f32[d=3] = 2 9 2 | f32[d=3] = 3 0.5 -1 | => 8 3 0.5
maximum | f32[d=2] = 1 5 | f32[] = 3 | => 3 5
minimum | f32[d=2] = 1 5 | f32[] = 3 | => 1 3
neg | f32[d=2] = 1 -5 | => -1 5
abs | f32[d=3] = 1 -5 0 | => 1 5 0
equal | i32[d=2] = 1 5 | i32[] = 5 | => 0 1
not-equal | bool[d=2] = 0 1 | bool[] = 1 | => 1 0
less | f32[d=3] = 1 2 3 | f32[] = 2 | => 1 0 0
less-equal | f32[d=3] = 1 2 3 | f32[] = 2 | => 1 1 0
greater | f32[d=3] = 1 2 3 | f32[] = 2 | => 0 0 1
greater-equal | f32[d=3] = 1 2 3 | f32[] = 2 | => 0 1 1
and | bool[a=2] = 0 1 | bool[b=2] = 0 1 | => 0 0 0 1
or | bool[a=2] = 0 1 | bool[b=2] = 0 1 | => 0 1 1 1
not | bool[a=2] = 0 1 | => 1 0
select | bool[d=2] = 1 0 | f32[d=2] = 1 2 | f32[] = -inf | => 1 -inf
exp | f32[d=3] = 0 1 -inf | => 1 2.718281828459045 0
log | f32[d=2] = 1 2.718281828459045 | => 0 1
sqrt | f32[d=2] = 4 9 | => 2 3
rsqrt | f32[d=2] = 4 0.25 | => 0.5 2
sin | f32[d=2] = 0 1.5707963267948966 | => 0 1
cos | f32[d=2] = 0 3.141592653589793 | => 1 -1
tanh | f32[d=2] = 0 1 | => 0 0.7615941559557649
erf | f32[d=2] = 0 1 | => 0 0.8427007929497149
sigmoid | f32[d=3] = 0 2 -1000 | => 0.5 0.8807970779778823 0
relu | f32[d=3] = -1 0 2 | => 0 0 2
gelu | f32[d=3] = 0 1 -1 | => 0 0.8413447460685429 -0.15865525393145707
gelu-tanh | f32[d=2] = 0 1 | => 0 0.8411919906082768
mish | f32[d=4] = 0 1 -1 30 | => 0 0.8650983882673103 -0.30340146137410895 30
silu | f32[d=2] = 0 1 | => 0 0.7310585786300049
gelu-gradient | f32[d=2] = 2 2 | f32[d=2] = 0 1 | => 1 2.166630941175373
gelu-tanh-gradient | f32[d=2] = 1 1 | f32[d=2] = 0 1 | => 0.5 1.0829640838457826
silu-gradient | f32[d=2] = 1 1 | f32[d=2] = 0 1 | => 0.5 0.9276705118714869
softmax | f32[b=3,c=2] = 0 0 1000 1000 -inf -inf | {over=[c]} | => 0.5 0.5 0.5 0.5 0 0
layer-norm:2 | f32[d=2] = 1 3 | {over=[d], epsilon=0} | => -1 1 ; 1
rms-norm:2 | f32[d=2] = 3 4 | {over=[d], epsilon=0} | => 0.848528137423857 1.131370849898476 ; 0.282842712474619
batch-norm:4 | f32[b=2,c=1] = 1 3 | f32[c=1] = 10 | f32[c=1] = 5 | {over=[b], epsilon=0, momentum=0.5} | => -1 1 ; 6 ; 3.5 ; 1
batch-norm:4 | f32[b=2,c=1] = 1 3 | f32[c=1] = 1 | f32[c=1] = 4 | {over=[b], epsilon=0, mode=infer} | => 0 1 ; 1 ; 4 ; 0.5
cross-entropy | f32[b=3,c=2] = 0 0 0 0 1 2 | i32[b=3] = 0 5 -1 | {over=c} | => 0.6931471805599453 0 0
cross-entropy-gradient | f32[b=3,c=2] = 0 0 0 0 1 2 | i32[b=3] = 0 5 -1 | f32[b=3] = 2 2 2 | {over=c} | => -1 1 0 0 0 0
cross-entropy | f32[b=3,c=2] = 0 0 2 0 1 2 | i32[b=3] = 0 0 -1 | {over=c, smoothing=0.5} | => 0.6931471805599453 0.6269280110429727 0
cross-entropy-gradient | f32[b=2,c=2] = 0 0 1 2 | i32[b=2] = 0 -1 | f32[b=2] = 2 2 | {over=c, smoothing=0.5} | => -0.5 0.5 0 0
linear-cross-entropy:4 | f32[b=2,d=1] = 1 1 | f32[v=2,d=1] = -1 3 | i32[b=2] = 0 5 | f32[v=2] = 1 -3 | {over=v, inner=[d]} | => 0.6931471805599453 ; 2 0 ; -0.5 0.5 ; -0.5 0.5
linear-cross-entropy:3 | f32[b=3,d=1] = 1 1 2 | f32[v=2,d=1] = 0 0 | i32[b=3] = 0 5 -1 | {over=v, inner=[d]} | => 0.6931471805599453 ; 0 0 0 ; -0.5 0.5
labelled | i32[s=4] = 1 0 2 -1 | {classes=2, dtype=f32} | => 1 1 0 0
stop-gradient | f32[d=2] = 1 2 | => 1 2
gather | i32[s=4] = 1 0 7 -1 | f32[v=2,d=2] = 1 2 3 4 | {along=v} | => 3 4 1 2 0 0 0 0
gather | i32[b=2] = 1 0 | f32[b=2,v=2] = 1 2 3 4 | {along=v} | => 2 3
scatter-add | i32[s=3] = 1 1 -1 | f32[s=3] = 1 2 4 | {along=n, size=3, to=[n]} | => 0 3 0
scatter-add | i32[s=2] = 1 0 | f32[s=2,d=2] = 1 2 3 4 | {along=n, size=2, to=[d,n]} | => 3 1 4 2
top-k:2 | f32[x=4] = 3 5 5 1 | {over=x, into=k, count=3} | => 5 5 3 ; 1 2 0
slot | i32[s=5] = 1 0 1 1 9 | {experts=2, capacity=2, over=[s]} | => 2 0 3 -1 -1
conv2d | f32[b=1,c=1,h=2,w=2] = 1 2 3 4 | f32[o=1,i=1,r=2,q=2] = 1 10 100 1000 | => 4321
conv2d | f32[b=1,c=1,h=2,w=2] = 1 2 3 4 | f32[o=1,i=1,r=2,q=2] = 1 10 100 1000 | {stride=2, padding=1} | => 1000 200 30 4
conv2d | f32[b=1,c=2,h=1,w=1] = 2 3 | f32[o=2,i=1,r=1,q=1] = 10 100 | {groups=2} | => 20 300
conv2d | f32[b=1,c=1,h=2,w=2] = 1 2 3 4 | f32[o=1,i=1,r=1,q=3] = 1 10 100 | {padding_w=1} | => 210 21 430 43
conv2d-input-gradient | f32[b=1,o=1,h=1,w=1] = 2 | f32[o=1,i=1,r=2,q=2] = 1 10 100 1000 | {type=f32[b=1,c=1,h=2,w=2]} | => 2 20 200 2000
conv2d-weight-gradient | f32[b=1,o=1,h=1,w=1] = 2 | f32[b=1,c=1,h=2,w=2] = 1 2 3 4 | {type=f32[o=1,i=1,r=2,q=2]} | => 2 4 6 8
max-pool | f32[h=2,w=4] = 1 2 5 4 3 0 7 8 | {size=2, stride=2} | => 3 8
max-pool | f32[h=1,w=2] = -1 -2 | {size=2, stride=2, padding=1} | => -1 -2
max-pool-gradient | f32[h=1,w=2] = 10 20 | f32[h=2,w=4] = 3 3 5 4 3 0 7 7 | {size=2, stride=2} | => 10 0 0 0 0 0 20 0
avg-pool | f32[h=2,w=2] = 1 2 3 4 | {size=2, stride=1} | => 2.5
avg-pool | f32[h=2,w=2] = 1 2 3 4 | {size=2, stride=2, padding=1} | => 0.25 0.5 0.75 1
avg-pool-gradient | f32[h=1,w=1] = 4 | {size=2, stride=1, type=f32[h=2,w=2]} | => 1 1 1 1
attention:2 | f32[s=1,e=1] = 0 | f32[t=2,e=1] = 1 2 | f32[t=2] = 1 3 | {over=t, along=s, inner=[e]} | => 2 ; 0.6931471805599453
attention:2 | f32[s=2,e=1] = 0 0 | f32[t=2,e=1] = 1 2 | f32[t=2] = 1 3 | {over=t, along=s, inner=[e], causal=1} | => 1 2 ; 0 0.6931471805599453
attention:2 | f32[s=3,e=1] = 0 0 0 | f32[t=3,e=1] = 1 2 3 | f32[t=3] = 1 3 5 | {over=t, along=s, inner=[e], causal=1, window=1} | => 1 3 5 ; 0 0 0
attention:2 | f32[s=1,e=1] = 1 | f32[t=2,e=1] = 4 4 | f32[t=2] = 1 3 | bool[t=2] = 0 0 | {over=t, along=s, inner=[e]} | => 0 ; -inf
attention:2 | f32[s=1,e=1] = 1 | f32[t=2,e=1] = 4 4 | f32[t=2] = 1 3 | bool[t=2] = 0 1 | {over=t, along=s, inner=[e], divisor=2} | => 3 ; 2
attention-gradient:3 | f32[s=1,e=1] = 0 | f32[t=2,e=1] = 1 2 | f32[t=2] = 1 3 | f32[s=1] = 2 | f32[s=1] = 0.6931471805599453 | f32[s=1] = 1 | {over=t, along=s, inner=[e]} | => 0.5 ; 0 0 ; 0.5 0.5
attention:2 | f32[s=2,e=1] = 0 0 | f32[t=2,e=1] = 1 2 | f32[t=2] = 1 3 | {over=t, along=s, inner=[e], causal=1, begin=4, keys=5} | => 0 1 ; -inf 0
attention-merge:2 | f32[s=2] = 1 1 | f32[s=2] = 0 1.0986122886681098 | f32[s=2] = 3 3 | f32[s=2] = 0 0 | => 2 1.5 ; 0.6931471805599453 1.3862943611198906
attention-merge:2 | f32[s=2] = 1 0 | f32[s=2] = 2 -inf | f32[s=2] = 0 0 | f32[s=2] = -inf -inf | => 1 0 ; 2 -inf
rotary | f32[s=2,e=2] = 1 2 1 0 | {along=s, pairs=e} | => 1 2 0.5403023058681398 0.8414709848078965
recurrence | f32[] = 1 | f32[s=4] = 1 2 3 4 | {along=s} | => 1 3 6 10
recurrence | f32[s=3] = 9 2 3 | f32[s=3,d=2] = 1 2 3 4 5 6 | {along=s} | => 1 2 5 8 20 30
recurrence | f32[s=3] = 2 3 9 | f32[s=3] = 1 2 3 | {along=s, reverse=1} | => 23 11 3
dropout | f32[d=3] = 1 2 3 | i64[] = 7 | {rate=0} | => 1 2 3
sgd | f32[d=2] = 1 2 | f32[d=2] = 10 20 | {lr=0.1} | => 0 0
sgd | f32[d=2] = 1 2 | f32[d=2] = 10 20 | f32[] = 0.5 | {lr=0.1} | => 0.5 1
momentum:2 | f32[d=1] = 1 | f32[d=1] = 2 | f32[d=1] = 4 | f32[] = 0.5 | {lr=0.1, momentum=0.5} | => 0.8 ; 4
adam:3 | f32[d=1] = 1 | f32[d=1] = 2 | f32[d=1] = 0 | f32[d=1] = 0 | i64[] = 0 | f32[] = 0.5 | {lr=0.1} | => 0.95 ; 0.2 ; 0.004
momentum:2 | f32[d=1] = 1 | f32[d=1] = 2 | f32[d=1] = 4 | {lr=0.1, momentum=0.5} | => 0.6 ; 4
adam:3 | f32[d=1] = 1 | f32[d=1] = 2 | f32[d=1] = 0 | f32[d=1] = 0 | i64[] = 0 | {lr=0.1} | => 0.9 ; 0.2 ; 0.004
adamw:3 | f32[d=1] = 1 | f32[d=1] = 2 | f32[d=1] = 0 | f32[d=1] = 0 | i64[] = 0 | {lr=0.1, decay=0.5} | => 0.85 ; 0.2 ; 0.004
all-reduce | f32[b=2] = 1 2 | {axis=gpu} | => 1 2
reduce-scatter all-gather slice-across halo | f32[b=2] = 1 2 | {axis=gpu, along=b} | => 1 2
all-to-all | f32[b=1,d=2] = 1 2 | {axis=gpu, from=d, to=b} | => 1 2
broadcast-from permute-ranks | f32[b=2] = 1 2 | {axis=gpu} | => 1 2
addends | f32[b=2] = 1 2 | {axis=gpu, into=a, count=2} | => 1 2 0 0
encode | f32[d=2] = 127 -127 | {codec=int8, block=8, segment=2, keep=[], into=w} | => 1065353216 33151
encode | f32[d=4] = 1 -3 0.5 2 | {codec=top_k, block=8, segment=4, keep=[], into=w, kept=2} | => 1 3 -1069547520 1073741824
decode | i32[w=4] = 1 3 -1069547520 1073741824 | {codec=top_k, block=8, segment=4, type=f32[d=4], kept=2} | => 0 -3 0 2
encode | f32[d=4] = 1 -3 -1 3 | {codec=one_bit, block=8, segment=4, keep=[], into=w} | => 1073741824 6
decode | i32[w=2] = 1073741824 6 | {codec=one_bit, block=8, segment=4, type=f32[d=4]} | => 2 -2 -2 2
decode | i32[w=2] = 1065353216 33151 | {codec=int8, block=8, segment=2, type=f32[d=2]} | => 127 -127
)";

std::vector<double> numbers_in(const std::string& text) {
  std::vector<double> numbers;
  std::istringstream words(text);
  for (std::string word; words >> word;) numbers.push_back(std::stod(word));
  return numbers;
}

// The last "operand" of a row holds the results: "=> 1 2 ; 3".
struct Row {
  Case what;
  std::vector<std::vector<double>> results;
};

std::vector<Row> rows() {
  std::vector<Row> rows;
  for (Case& c : read_cases(kValues)) {
    Row row{std::move(c), {}};
    for (const std::string& part : parts_of(row.what.operands.back().substr(3), " ; "))
      row.results.push_back(numbers_in(part));
    row.what.operands.pop_back();
    rows.push_back(std::move(row));
  }
  return rows;
}

template <class T>
void check(const Row& row, double tolerance) {
  SCOPED_TRACE(text_of(row.what));
  const plan::Graph graph = graph_of(row.what);
  Tensors<T> inputs;
  for (std::size_t i = 0; i < row.what.operands.size(); ++i) {
    const std::string& operand = row.what.operands[i];
    Tensor<T>& tensor = inputs[fmt::format("x{}", i)];
    for (const plan::Dim& dim : graph.type(plan::ValueId(i)).dims) tensor.sizes.push_back(dim.size);
    for (const double element : numbers_in(operand.substr(operand.find(" = ") + 3)))
      tensor.data.push_back(static_cast<T>(element));
  }
  const std::vector<Tensor<T>> found = outputs_of(graph, inputs);
  ASSERT_EQ(found.size(), row.results.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    ASSERT_EQ(found[k].data.size(), row.results[k].size());
    for (std::size_t i = 0; i < found[k].data.size(); ++i) {
      const double expected = row.results[k][i], actual = static_cast<double>(found[k].data[i]);
      if (std::isinf(expected))
        EXPECT_EQ(actual, expected);
      else
        EXPECT_NEAR(actual, expected, tolerance * (1 + std::abs(expected)))
            << "result " << k << " element " << i;
    }
  }
}

TEST(OpsValue, ComputesInDouble) {
  for (const Row& row : rows()) check<double>(row, 1e-7);
}

TEST(OpsValue, ComputesInFloat) {
  for (const Row& row : rows()) check<float>(row, 1e-5);
}

TEST(OpsValue, EveryOperatorHasACase) {
  std::set<std::string, std::less<>> covered = {"input", "parameter", "state",
                                                "exchange"};  // given, not computed
  for (const Row& row : rows()) covered.insert(row.what.op);
  for (const std::string_view name : all().names()) EXPECT_TRUE(covered.contains(name)) << name;
}

// A mask depends only on step, stream and position.
TEST(OpsValue, DropoutDrawsTheSameMaskForTheSameStep) {
  const auto kept = [](int step, int stream) {
    const plan::Graph graph =
        graph_of({"dropout", {"f32[d=1000]", "i64[]"}, fmt::format("{{rate=0.25, stream={}}}", stream)});
    Tensors<double> inputs;
    inputs["x0"] = {{1000}, std::vector<double>(1000, 3.0)};
    inputs["x1"] = {{}, {static_cast<double>(step)}};
    return outputs_of(graph, inputs)[0].data;
  };
  const std::vector<double> mask = kept(1, 2);
  EXPECT_EQ(mask, kept(1, 2));
  EXPECT_NE(mask, kept(2, 2));
  EXPECT_NE(mask, kept(1, 3));
  const auto zeros = std::count(mask.begin(), mask.end(), 0.0);
  EXPECT_NEAR(static_cast<double>(zeros), 250, 60);
  EXPECT_EQ(std::count(mask.begin(), mask.end(), 4.0), 1000 - zeros);  // 3 / (1 - 0.25)
}

}  // namespace
}  // namespace weft::ops
