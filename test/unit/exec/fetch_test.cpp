// Products read spilled tensors from a prefetched copy, once, with equal results.
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "execution_case.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/program/tasks/program.h"

namespace weft::exec {
namespace {

constexpr int kLayers = 6;

std::shared_ptr<const plan::Graph> layers() {
  std::string text = "plan layers\n%0 = input {name=x, type=f32[b=20,k=256]}\n";
  for (int i = 0; i < kLayers; ++i)
    text += fmt::format("%{} = parameter {{name=w{}, type=f32[{}=256,{}=256]}}\n", i + 1, i,
                        i % 2 == 0 ? "k" : "n", i % 2 == 0 ? "n" : "k");
  for (int i = 0; i < kLayers; ++i)
    text += fmt::format("%{} = contract %{}, %{} {{to=[b,{}]}}\n", kLayers + 1 + i, i == 0 ? 0 : kLayers + i,
                        i + 1, i % 2 == 0 ? "n" : "k");
  text += fmt::format("return y=%{}\n", 2 * kLayers);
  return std::make_shared<const plan::Graph>(plan::read(text, ops::all()).value());
}

Tensors answer(program::Program program, const Tensors& sources) {
  const auto rank = Rank::start(std::move(program), {}).value();
  fill(*rank, sources);
  EXPECT_TRUE(rank->step().ok());
  return contents(*rank);
}

TEST(Fetch, ProductsReadFetchedCopiesOfSpilledTensors) {
  const auto graph = layers();
  program::CompileOptions options{.accelerated = true, .tiles = false};
  program::Program whole = program::compile(graph, options).value();
  // Room for two pages of the device, what a product fetches, and one or two layers.
  options.resident_limit = 4 * (std::int64_t{1} << 20) + 3 * 256 * 256 * 4;
  program::Program spilling = program::compile(graph, options).value();
  EXPECT_GT(spilling.spilled_bytes, 0);
  EXPECT_LE(spilling.resident_bytes(), options.resident_limit);
  std::size_t copies = 0;
  for (const program::Unit& unit : spilling.units) {
    copies += std::holds_alternative<program::Copy>(unit.kernel);
    if (!std::holds_alternative<program::MatrixProduct>(unit.kernel)) continue;
    for (const program::Place& place : unit.reads) EXPECT_FALSE(spilling.buffer(place.buffer).spilled);
  }
  EXPECT_GT(copies, 0u);
  EXPECT_EQ(spilling.tasks.size(), spilling.units.size());
  Random random(5);
  const Tensors sources = random_sources(*graph, 1, random);
  const Tensors found = answer(std::move(whole), sources);
  expect_near(found, interpreted(*graph, sources), 1e-3, 1e-2, "whole");
  EXPECT_EQ(found.at("y").data, answer(std::move(spilling), sources).at("y").data);
}

}  // namespace
}  // namespace weft::exec
