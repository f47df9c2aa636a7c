// Errors of operators for operands that do not fit.
#include <cctype>

#include <gtest/gtest.h>

#include "ops_case.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"

namespace weft::ops {
namespace {

// operator | type | .. | {attributes} | ! message
constexpr std::string_view kErrors = R"(
contract | f32[b=2,d=784] | f32[d=512,f=2] | {to=[b,f]} | ! index d has size 784 in operand 0 but 512 in operand 1
contract | f32[b=2,d=3] | {to=[q]} | ! index q is not among [b, d]
contract | f32[b=2,d=3] | {to=[b,b]} | ! index b is named twice
contract | f32[b=2] | bf16[b=2] | {to=[]} | ! operands differ in dtype: f32, bf16
contract | {to=[]} | ! contract takes 1 to 64 operands, found 0
contract | bool[b=2] | {to=[]} | ! operand 0 must be a number, found bool
contract | f32[b=1099511627776] | f32[d=1099511627776] | {to=[b,d]} | ! tensor too large
add | f32[b=1099511627776] | f32[d=1099511627776] | ! tensor too large
add | f32[b=2] | ! add takes 2 operands, found 1
add | f32[b=2] | i32[b=2] | ! operands differ in dtype: f32, i32
add | bool[b=2] | bool[b=2] | ! operand 0 must be a number, found bool
add | f32[b=2] | f32[b=3] | ! index b has size 2 in operand 0 but 3 in operand 1
exp | i32[b=2] | ! operand 0 must be real, found i32
and | f32[b=2] | f32[b=2] | ! operand 0 must be bool, found f32
select | f32[b=2] | f32[b=2] | f32[b=2] | ! operand 0 must be bool, found f32
select | bool[b=2] | f32[b=2] | i32[b=2] | ! operands differ in dtype: f32, i32
constant | {value=0.5, dtype=i32} | ! a constant of i32 must be an integer, found 0.5
constant | {value=2, dtype=bool} | ! a constant of bool must be 0 or 1, found 2
position | {along=s, size=0} | ! size must be from 1 to 2147483648, found 0
parameter | {name=w, type=f32[d=2], init=norml} | ! unknown initial value 'norml'
parameter | {name=w, type=f32[d=2], init=normal, b=-1} | ! normal needs a deviation of at least 0, found -1
parameter | {name=w, type=f32[d=2], init=uniform, a=1} | ! uniform needs low <= high, found 1 and 0
reduce | f32[b=2] | {kind=product, to=[]} | ! reduce kind must be sum, mean, max, min, peak or largest, found product
reduce | i32[b=2] | {kind=mean, to=[]} | ! operand 0 must be real, found i32
reduce | bool[b=2] | {kind=sum, to=[]} | ! operand 0 must be a number, found bool
reduce | f32[b=2] | {kind=mean, to=[], count=-1} | ! count must be at least 0, found -1
broadcast | f32[b=2] | {type=f32[c=2]} | ! index b is not among [c]
broadcast | f32[b=2] | {type=f32[b=3]} | ! index b has size 2 in operand 0 but 3 in the type
broadcast | f32[b=2] | {type=bf16[b=2]} | ! broadcast keeps the dtype: f32 cannot become bf16
transpose | f32[b=2,c=3] | {to=[c]} | ! transpose must keep all of [b, c], found [c]
rename | f32[b=2,c=3] | {from=[b], to=[]} | ! rename needs as many new names as old ones, found 0 and 1
rename | f32[b=2,c=3] | {from=[b], to=[c]} | ! index c appears twice in [c, c]
rename | f32[b=2,c=3] | {from=[q], to=[r]} | ! index q is not among [b, c]
split | f32[d=12] | {along=d, into=f32[h=5,e=2]} | ! index d of size 12 cannot be split into 10 elements
split | f32[d=12] | {along=d, into=f32[]} | ! split needs at least one index to split into
merge | f32[a=2,b=2,c=2] | {along=[a,c], into=d} | ! merged indices must be neighbours in [a, b, c], in that order, found c after a
merge | f32[a=2] | {along=[], into=d} | ! merge needs at least one index
slice | f32[d=3] | {along=d, begin=2, end=2} | ! slice must lie within index d of size 3, found 2 to 2
slice | f32[d=3] | {along=d, begin=-9223372036854775807, end=2} | ! slice must lie within index d of size 3
slice | f32[d=3] | {along=d, begin=0, end=9223372036854775807} | ! slice must lie within index d of size 3
pad | f32[d=3] | {along=d, before=9223372036854775807, after=9223372036854775807} | ! before must be from 0 to 1099511627776
pad | f32[d=3,b=1099511627776] | {along=d, after=1099511627776} | ! tensor too large
concat | f32[b=2,d=3] | f32[d=3,b=2] | {along=d} | ! operands of concat may differ only in the size of d, found f32[b=2,d=3] and f32[d=3,b=2]
concat | f32[b=2] | i32[b=2] | {along=b} | ! operands differ in dtype: f32, i32
softmax | f32[b=2] | {over=[]} | ! softmax needs at least one index to run over
softmax | i32[b=2] | {over=[b]} | ! operand 0 must be real, found i32
layer-norm:2 | f32[b=2] | {over=[d]} | ! index d is not among [b]
rms-norm:2 | i32[b=2] | {over=[b]} | ! operand 0 must be real, found i32
batch-norm:4 | f32[b=2,c=3] | f32[b=2] | f32[c=3] | {over=[b]} | ! expected f32[c=3], found f32[b=2]
batch-norm:4 | f32[b=2,c=3] | f32[c=3] | f32[c=3] | {over=[b], mode=test} | ! batch-norm mode must be train or infer, found test
cross-entropy | f32[b=2,c=3] | f32[b=2] | {over=c} | ! operand 1 must be integer, found f32
cross-entropy | f32[b=2,c=3] | i32[] | {over=c} | ! operand 1 must have a label for each row of logits: expected i32[b=2], found i32[]
cross-entropy-gradient | f32[b=2,c=3] | i32[b=2] | f32[] | {over=c} | ! expected f32[b=2], found f32[]
linear-cross-entropy:3 | f32[b=2,d=4] | bf16[v=3,d=4] | i32[b=2] | {over=v, inner=[d]} | ! hidden and words differ in dtype: f32, bf16
linear-cross-entropy:3 | f32[b=2,d=4] | f32[v=3,d=5] | i32[b=2] | {over=v, inner=[d]} | ! index d has size 4 in operand 0 but 5 in operand 1
linear-cross-entropy:3 | f32[b=2,d=4] | f32[v=3,b=2,d=4] | i32[b=2] | {over=v, inner=[d]} | ! operand 1 must have only the class index and the inner indices
linear-cross-entropy:3 | f32[b=2,d=4] | f32[v=3,d=4] | i32[d=4] | {over=v, inner=[d]} | ! operand 2 must have a label for each row: expected i32[b=2], found i32[d=4]
linear-cross-entropy:4 | f32[b=2,d=4] | f32[v=3,d=4] | i32[b=2] | f32[d=4] | {over=v, inner=[d]} | ! operand 3 must have only the class index and the dtype of operand 0, found f32[d=4]
linear-cross-entropy:4 | f32[b=2,d=4] | f32[v=3,d=4] | i32[b=2] | bf16[v=3] | {over=v, inner=[d]} | ! operand 3 must have only the class index and the dtype of operand 0, found bf16[v=3]
linear-cross-entropy:3 | f32[b=2,d=4] | f32[v=3,d=4] | f32[b=2] | {over=v, inner=[d]} | ! operand 2 must be integer
linear-cross-entropy:3 | f32[b=2,d=4] | f32[v=3,d=4] | i32[b=2] | {over=v, inner=[d], smoothing=1} | ! smoothing must be at least 0 and below 1
gather | f32[b=2] | f32[v=3] | {along=v} | ! operand 0 must be integer, found f32
gather | i32[v=3] | f32[v=3] | {along=v} | ! positions must not have the index v that they pick from
gather | i32[b=2] | f32[v=3] | {along=w} | ! index w is not among [v]
scatter-add | i32[b=2] | f32[b=2] | {along=b, size=3, to=[b]} | ! operands must not have the index b that they are added into
scatter-add | i32[b=2] | f32[b=2] | {along=n, size=3, to=[b]} | ! the result must keep the index n that is added into
scatter-add | i32[b=2] | f32[b=2] | {along=n, size=0, to=[n]} | ! index n must have a size of at least 1, found 0
top-k:2 | f32[x=3] | {over=x, into=k, count=4} | ! count must be from 1 to 3, found 4
top-k:2 | f32[x=3,k=2] | {over=x, into=k, count=2} | ! top-k needs a new index, found k in [x, k]
slot | i32[s=3] | {experts=2, capacity=4611686018427387904, over=[s]} | ! capacity must be from 1 to 1073741824
slot | f32[s=3] | {experts=2, capacity=1, over=[s]} | ! operand 0 must be integer, found f32
conv2d | f32[b=1,c=2,h=4] | f32[o=1,i=2,r=3,q=3] | ! a convolution needs an image [b, c, h, w] and a weight [o, i, r, q], found [b, c, h] and [o, i, r, q]
conv2d | f32[b=1,c=2,h=4,w=4] | f32[o=1,i=3,r=3,q=3] | ! channels must be groups times the weight's: 2 channels, 1 groups, 3 in the weight
conv2d | f32[b=1,c=2,h=4,w=4] | f32[o=3,i=1,r=3,q=3] | {groups=2} | ! groups do not divide the outputs: 2 groups, 3 outputs
conv2d | f32[b=1,c=2,h=4,w=4] | f32[o=3,i=1,r=3,q=3] | {groups=0} | ! groups must be from 1 to 2, found 0
conv2d | f32[b=1,c=2,h=4,w=4] | f32[b=3,i=2,r=3,q=3] | ! index b of the weight is also an index of the image
conv2d | f32[b=1,c=2,h=4,w=4] | f32[c=2,i=2,r=3,q=3] | ! index c of the weight is also an index of the image
conv2d | f32[b=1,c=2,h=2,w=4] | f32[o=3,i=2,r=3,q=3] | ! a window of 3 does not fit index h of size 2 with padding 0
conv2d | f32[b=1,c=2,h=4,w=4] | f32[o=3,i=2,r=3,q=3] | {stride=0} | ! stride must be from 1 to 1099511627776, found 0
conv2d | f32[b=1,c=2,h=4,w=4] | f32[o=3,i=2,r=3,q=3] | {padding=4611686018427387904} | ! padding must be from 0 to 1099511627776
conv2d | f32[b=1,c=2,h=4,w=4] | f32[o=3,i=2,r=3,q=3] | {padding=1099511627776} | ! tensor too large
conv2d | f32[b=1,c=2,h=4,w=4] | f32[o=3,i=2,r=3,q=3] | {padding_w=-2} | ! padding_w must be from -1 to 1099511627776, found -2
conv2d | f32[b=1,c=2,h=4,w=2] | f32[o=3,i=2,r=3,q=3] | {padding=1, padding_w=0} | ! a window of 3 does not fit index w of size 2 with padding 0
conv2d-input-gradient | f32[b=1,o=3,h=3,w=3] | f32[o=3,i=2,r=3,q=3] | {type=f32[b=1,c=2,h=4,w=4]} | ! expected f32[b=1,o=3,h=2,w=2], found f32[b=1,o=3,h=3,w=3]
conv2d-weight-gradient | f32[b=1,o=3,h=3,w=3] | f32[b=1,c=2,h=4,w=4] | {type=f32[o=3,i=2,r=3,q=3]} | ! expected f32[b=1,o=3,h=2,w=2], found f32[b=1,o=3,h=3,w=3]
max-pool | f32[w=4] | {size=2, stride=2} | ! a pool runs over the last two indices, found [w]
max-pool | f32[h=4,w=4] | {size=4611686018427387904, stride=2} | ! size must be from 1 to 1099511627776
max-pool | f32[h=4,w=4] | {size=2, stride=2, padding=2} | ! padding must be from 0 to 1, found 2
avg-pool | i32[h=4,w=4] | {size=2, stride=2} | ! operand 0 must be real, found i32
max-pool-gradient | f32[h=1,w=1] | f32[h=4,w=4] | {size=2, stride=2} | ! expected f32[h=2,w=2], found f32[h=1,w=1]
avg-pool-gradient | f32[h=1,w=1] | {size=2, stride=2, type=f32[h=4,w=4]} | ! expected f32[h=2,w=2], found f32[h=1,w=1]
attention:2 | f32[s=2,e=3] | f32[t=2,e=3] | f32[t=3,e=3] | {over=t, along=s, inner=[e]} | ! v does not match q and k
attention:2 | f32[s=2,e=3] | f32[t=2,e=4] | f32[t=2,e=3] | {over=t, along=s, inner=[e]} | ! k does not match q: found q f32[s=2,e=3], k f32[t=2,e=4]
attention:2 | f32[s=2,e=3] | f32[s=2,e=3] | f32[s=2,e=3] | {over=s, along=s, inner=[e]} | ! queries and keys need two different indices
attention:2 | f32[s=2,e=3] | f32[t=2,e=3] | f32[t=2,e=3] | {over=t, along=s, inner=[e], causal=2} | ! causal must be from 0 to 1, found 2
attention:2 | f32[s=2,e=3] | f32[t=2,e=3] | f32[t=2,e=3] | f32[t=2] | {over=t, along=s, inner=[e]} | ! operand 3 must be bool, found f32
rotary | f32[s=2,e=3] | {along=s, pairs=e} | ! index e must have an even size to form pairs, found 3
rotary | f32[s=2,e=4] | {along=e, pairs=e} | ! index e is named twice
rotary | f32[s=2,e=4] | {along=s, pairs=e, base=-1} | ! base must be positive, found -1
recurrence | f32[s=2] | f32[s=2,d=3] | {along=e} | ! e
recurrence | f32[s=2,e=2] | f32[s=2,d=3] | {along=s} | ! only indices of x, found [s, e] and [s, d]
recurrence | f32[s=3] | f32[s=2] | {along=s} | ! index s has size 3 in operand 0 but 2 in operand 1
recurrence | f32[s=2] | f32[s=2] | {along=s, reverse=2} | ! reverse must be from 0 to 1, found 2
dropout | f32[d=2] | i64[] | {rate=1} | ! rate must be at least 0 and below 1, found 1
dropout | f32[d=2] | f32[] | {rate=0.5} | ! operand 1 must be one integer, the step: expected i64[], found f32[]
sgd | f32[d=2] | f32[d=3] | {lr=1} | ! operands 0 and 1 must have one type, found f32[d=2] and f32[d=3]
momentum:2 | f32[d=2] | f32[d=2] | bf16[d=2] | {lr=1} | ! operands 0 and 2 must have one type, found f32[d=2] and bf16[d=2]
cross-entropy | f32[b=2,c=3] | i32[b=2] | {over=c, smoothing=1} | ! smoothing must be at least 0 and below 1, found 1
labelled | f32[b=2] | {classes=3, dtype=f32} | ! operand 0 must be integer, found f32
sgd | f32[d=2] | f32[d=2] | f32[d=2] | {lr=1} | ! operand 2 must be one real number, the rate: expected f32[], found f32[d=2]
adam:3 | f32[d=2] | f32[d=2] | f32[d=2] | f32[d=2] | i64[d=2] | ! operand 4 must be one integer, the step
adamw:3 | i32[d=2] | i32[d=2] | i32[d=2] | i32[d=2] | i64[] | ! operand 0 must be real, found i32
conv2d | f32[b=1,c=1,h=4,w=4] | f32[o=1,i=1,r=3,q=3] | {high=5} | ! a number of windows must be from 1 to 4, found 5
max-pool | f32[h=4,w=4] | {size=2, stride=2, padding=2, high=1} | ! padding must be from 0 to 1, found 2
all-reduce | f32[d=2] | {axis=""} | ! all-reduce needs the name of a mesh axis
all-reduce | f32[d=2] | {axis=gpu, kind=mean} | ! all-reduce kind must be sum, max or min
all-reduce | bool[d=2] | {axis=gpu} | ! operand 0 must be a number, found bool
reduce-scatter | f32[d=2] | {axis=gpu, along=b} | ! index b is not among [d]
all-gather | f32[d=2] | {axis=gpu} | ! all-gather needs the attribute along
halo | f32[d=2] | {axis=gpu, along=d, before=65536} | ! before must be from 0 to 65535, found 65536
exchange | f32[b=2] | {kind=halo, axis=a, ranks=2, type=f32[y=1], along=y, size=8, before=1} | ! index y is not among [b]
exchange | f32[y=2] | {kind=halo, axis=a, ranks=2, type=f32[y=1], along=y, size=8, after=1} | ! by its blocks, rank 0 of a halo sends 0 and receives 1 elements, found 2 and 1
all-to-all | f32[b=2,d=2] | {axis=gpu, from=d, to=d} | ! all-to-all needs two different indices, found d twice
broadcast-from | f32[d=2] | {axis=gpu, root=-1} | ! root must be from 0 to 1048575, found -1
permute-ranks | f32[d=2] | {axis=gpu, by=-9223372036854775808} | ! by must be from -1048576 to 1048576
)";

TEST(OpsInfer, ReportsErrors) {
  for (Case& c : read_cases(kErrors)) {
    const std::string expected = c.operands.back().substr(2);
    c.operands.pop_back();
    const Result<plan::Graph> graph = plan::read(text_of(c), all());
    EXPECT_FALSE(graph.ok()) << text_of(c);
    if (graph.ok()) continue;
    const std::string& message = graph.error().message;
    EXPECT_NE(message.find(expected), std::string::npos)
        << text_of(c) << "expected: " << expected << "\nfound:    " << message;
    EXPECT_FALSE(message.ends_with('.')) << message;
  }
}

// The guarantee of Graph::add: a node that does not fit leaves no trace.
TEST(OpsInfer, LeavesTheGraphUnchangedOnErrors) {
  plan::Graph graph = graph_of({"neg", {"f32[b=2]"}});
  const plan::ValueId x(0);
  const std::size_t nodes = graph.node_count(), values = graph.value_count();
  EXPECT_FALSE(graph.add(softmax(), {&x, 1}).ok());
  EXPECT_FALSE(graph.add(add(), {&x, 1}).ok());
  EXPECT_EQ(graph.node_count(), nodes);
  EXPECT_EQ(graph.value_count(), values);
}

// Operators are found by address: a new one must be listed there.
TEST(OpsInfer, FindsEveryCommunication) {
  for (const plan::Operator* op : all().all())
    EXPECT_EQ(find_communication(*op), dynamic_cast<const Communication*>(op)) << op->name();
}

// Names are kebab-case and attributes are words, so that plans are readable.
TEST(OpsInfer, NamesAreKebabCase) {
  for (const plan::Operator* op : all().all()) {
    for (const char letter : op->name())
      EXPECT_TRUE(std::islower(letter) || std::isdigit(letter) || letter == '-') << op->name();
    EXPECT_LE(op->min_inputs(), op->max_inputs());
  }
}

}  // namespace
}  // namespace weft::ops
