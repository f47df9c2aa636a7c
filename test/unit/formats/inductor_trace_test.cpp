// Predicted steps in the form of PyTorch's profiler: what Inductor's profile-guided estimates read.
#include "weft/formats/inductor_trace.h"

#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "mesh_case.h"
#include "temporary_folder.h"
#include "weft/base/file.h"

namespace weft::formats {
namespace {

using nlohmann::json;

// Computing tasks take 2 us, collectives 5 us.
cost::StepCosts even_costs() {
  return {[](const program::Program&, const program::Task&) {
            return cost::TaskCost{2e-6, cost::Source::datasheet};
          },
          [](const program::Exchange&, std::size_t, std::int64_t) {
            return cost::ExchangeCost{1e-6, 4e-6, "ring", cost::Source::datasheet};
          },
          {}};
}

json trace_of(std::string_view mesh_text, std::string_view lines) {
  const plan::Graph graph = ops::read_plan(lines);
  const plan::Mesh mesh = plan::read_mesh(mesh_text).value();
  const auto layouts = spmd::infer_layouts(graph, mesh).value();
  const auto prediction = sim::predict(graph, mesh, layouts, even_costs()).value();
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/step.json";
  EXPECT_TRUE(write_inductor_trace(prediction, mesh, path).ok());
  return json::parse(read_file(path, 1 << 20).value());
}

std::vector<json> collectives_of(const json& trace) {
  std::vector<json> found;
  for (const json& event : trace["traceEvents"])
    if (event["cat"] == "kernel" && event["args"].contains("Collective name")) found.push_back(event);
  return found;
}

TEST(InductorTrace, ListsCollectivesWithTheirGroups) {
  const json trace = trace_of("node=2, gpu=4", ops::kTwoSums);
  EXPECT_EQ(trace["distributedInfo"]["rank"], 0);
  EXPECT_EQ(trace["distributedInfo"]["world_size"], 8);
  EXPECT_EQ(trace["distributedInfo"]["pg_config"],
            json::parse(R"([{"pg_name": "0", "ranks": [0, 1, 2, 3]}])"));
  const auto found = collectives_of(trace);
  ASSERT_EQ(found.size(), 2u);
  for (const json& event : found) {
    EXPECT_EQ(event["args"], json::parse(R"({"Collective name": "allreduce", "Process Group Name": "0",
        "Process Group Ranks": "[0, 1, 2, 3]", "Group size": 4, "In msg nelems": 16, "Out msg nelems": 16,
        "dtype": "Float"})"));
    EXPECT_NEAR(event["dur"].get<double>(), 5, 1e-9);
  }
}

TEST(InductorTrace, CountsElementsAsPyTorchDoes) {
  // w[d, f] is stored in slices of d.
  const json gathered =
      trace_of("gpu=4", ops::with_operands({8, 16, 4}, "replicated", "sliced(d) on gpu",
                                           "%2 = all-gather %1 {axis=gpu, along=d}\n"
                                           "%3 = contract %0, %2 {to=[b,f]}\nreturn y=%3\n"));
  auto found = collectives_of(gathered);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]["args"]["Collective name"], "_allgather_base");
  EXPECT_EQ(found[0]["args"]["In msg nelems"], 16);
  EXPECT_EQ(found[0]["args"]["Out msg nelems"], 64);
  const json scattered =
      trace_of("gpu=4", ops::with_operands({8, 16, 4}, "sliced(d) on gpu", "sliced(d) on gpu",
                                           "%2 = contract %0, %1 {to=[b,f]}\n"
                                           "%3 = reduce-scatter %2 {axis=gpu, along=b}\nreturn y=%3\n"));
  found = collectives_of(scattered);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]["args"]["Collective name"], "_reduce_scatter_base");
  EXPECT_EQ(found[0]["args"]["In msg nelems"], 32);
  EXPECT_EQ(found[0]["args"]["Out msg nelems"], 8);
}

// x[b, d] * w[d, f] and its transpose in all layouts, with and without a bias, each joined to one kernel.
TEST(InductorTrace, ListsProductsInEachLayout) {
  const json trace = trace_of("gpu=4", ops::with_operands({8, 16, 4}, "sliced(b) on gpu", "replicated",
                                                          "%2 = contract %0, %1 {to=[b,f]}\nreturn y=%2\n"));
  std::map<std::int64_t, double> kernels;
  for (const json& event : trace["traceEvents"]) {
    EXPECT_TRUE(event["args"].is_object());
    if (event["cat"] == "kernel" && event["args"].contains("External id")) {
      EXPECT_TRUE(
          kernels.emplace(event["args"]["External id"].get<std::int64_t>(), event["dur"].get<double>())
              .second);
    }
  }
  std::map<std::string, std::set<std::string>> strides;  // by shapes
  std::size_t products = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["cat"] != "cpu_op") continue;
    const json& args = event["args"];
    ASSERT_TRUE(kernels.contains(args["External id"].get<std::int64_t>()));
    EXPECT_NEAR(kernels[args["External id"].get<std::int64_t>()], 2, 1e-9);
    EXPECT_EQ(event["name"], args["Input Dims"].size() == 2 ? "aten::mm" : "aten::addmm");
    EXPECT_EQ(args["Input type"], json(std::vector<std::string>(args["Input Dims"].size(), "float")));
    strides[args["Input Dims"].dump()].insert(args["Input Strides"].dump());
    ++products;
  }
  EXPECT_EQ(products, 16u);
  EXPECT_EQ(kernels.size(), 16u);
  ASSERT_EQ(strides.size(), 4u);
  EXPECT_EQ(strides["[[2,16],[16,4]]"],
            (std::set<std::string>{"[[1,2],[1,16]]", "[[1,2],[4,1]]", "[[16,1],[1,16]]", "[[16,1],[4,1]]"}));
  EXPECT_EQ(strides["[[4,16],[16,2]]"].size(), 4u);
  EXPECT_EQ(strides["[[4],[2,16],[16,4]]"].size(), 4u);
  EXPECT_EQ(strides["[[2],[4,16],[16,2]]"].size(), 4u);
}

TEST(InductorTrace, ListsBatchedProducts) {
  const json trace = trace_of("gpu=2", R"(plan p
%0 = input {name=x, type=bf16[h=4,s=8,e=16], layout="sliced(h) on gpu"}
%1 = input {name=y, type=bf16[h=4,t=6,e=16], layout="sliced(h) on gpu"}
%2 = contract %0, %1 {to=[h,s,t]}
return p=%2
)");
  std::size_t found = 0;
  std::set<std::string> shapes;
  for (const json& event : trace["traceEvents"]) {
    if (event["cat"] != "cpu_op") continue;
    ++found;
    EXPECT_EQ(event["name"], "aten::bmm");
    EXPECT_EQ(event["args"]["Input type"], json::parse(R"(["c10::BFloat16", "c10::BFloat16"])"));
    shapes.insert(event["args"]["Input Dims"].dump());
  }
  EXPECT_EQ(shapes, (std::set<std::string>{"[[2,6,16],[2,16,8]]", "[[2,8,16],[2,16,6]]"}));
  EXPECT_EQ(found, 8u);
}

// Four queries heads share two heads of keys; each of PyTorch's implementations, and both orders of heads
// and positions.
TEST(InductorTrace, ListsAttention) {
  const json trace = trace_of("gpu=2", R"(plan p
%0 = input {name=q, type=bf16[b=4,h=2,g=2,s=8,e=16], layout="sliced(b) on gpu"}
%1 = input {name=k, type=bf16[b=4,h=2,t=6,e=16], layout="sliced(b) on gpu"}
%2 = input {name=v, type=bf16[b=4,h=2,t=6,f=32], layout="sliced(b) on gpu"}
%3, %4 = attention %0, %1, %2 {over=t, along=s, inner=[e], scale=1}
return p=%3
)");
  std::map<std::string, std::set<std::string>> strides;  // by operation
  for (const json& event : trace["traceEvents"]) {
    if (event["cat"] != "cpu_op") continue;
    EXPECT_EQ(event["args"]["Input Dims"], json::parse("[[2, 4, 8, 16], [2, 2, 6, 16], [2, 2, 6, 32]]"));
    EXPECT_NEAR(event["dur"].get<double>(), 2, 1e-9);
    strides[event["name"]].insert(event["args"]["Input Strides"].dump());
  }
  const std::set<std::string> both = {"[[512,128,16,1],[192,96,16,1],[384,192,32,1]]",
                                      "[[512,16,64,1],[192,16,32,1],[384,32,64,1]]"};
  EXPECT_EQ(strides.size(), 3u);
  for (const char* const name : {"flash", "efficient", "cudnn"})
    EXPECT_EQ(strides[fmt::format("aten::_scaled_dot_product_{}_attention", name)], both) << name;
}

TEST(InductorTrace, NeedsTimelines) {
  const Status written =
      write_inductor_trace(sim::Prediction(), plan::read_mesh("gpu=2").value(), "step.json");
  EXPECT_EQ(written.error().message, "the prediction has no timelines to export");
}

}  // namespace
}  // namespace weft::formats
