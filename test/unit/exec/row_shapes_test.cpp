// Other ways to distribute rows over threads give equal results: every shape that may be chosen for
// a loop, compared with the default.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "execution_case.h"
#include "weft/device/cuda/gpu.h"
#include "weft/device/cuda/kernels.h"
#include "weft/device/cuda/row_choices.h"
#include "weft/device/element_access.h"

namespace weft::exec {
namespace {

using device::cuda::row_key;
using device::cuda::row_shapes;
using device::cuda::row_source;
using device::cuda::RowShape;

program::Program narrow_program(std::int64_t d) {
  const plan::Graph graph = narrow_training_plan(
      "char_gpt", {{"b", 4, {}}, {"s", 50, {}}, {"d", d, {}}, {"h", 2, {}}, {"layers", 1, {}}}, "bf16");
  auto made = program::compile(std::make_shared<plan::Graph>(graph.clone()),
                               {.workers = 1, .any_float = true, .accelerated = true, .tiles = false});
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made).value();
}

std::vector<RowShape> shapes_of(const program::Unit& unit) {
  const auto* const loop = std::get_if<program::RowLoop>(&unit.kernel);
  return loop != nullptr ? row_shapes(*loop) : std::vector<RowShape>();
}

TEST(RowShapes, TheDefaultIsFirstAndOthersDiffer) {
  const program::Program program = narrow_program(768);
  std::size_t searched = 0;
  for (const program::Unit& unit : program.units) {
    const std::vector<RowShape> shapes = shapes_of(unit);
    if (shapes.empty()) continue;
    const auto& loop = std::get<program::RowLoop>(unit.kernel);
    const device::cuda::RowSource usual = row_source(loop);
    EXPECT_EQ(row_source(loop, shapes.front()).text, usual.text);
    EXPECT_EQ(shapes.front().threads, usual.threads);
    searched += shapes.size() > 1;
    for (std::size_t i = 1; i < shapes.size(); ++i) {
      const device::cuda::RowSource other = row_source(loop, shapes[i]);
      EXPECT_TRUE(other.text != usual.text || other.most_blocks != usual.most_blocks);
    }
  }
  EXPECT_GT(searched, 3u);
}

TEST(RowShapes, KeysDistinguishLoops) {
  const program::Program wide = narrow_program(768), narrow = narrow_program(96);
  const auto first_key = [](const program::Program& program) {
    for (const program::Unit& unit : program.units)
      if (!shapes_of(unit).empty()) {
        const auto& loop = std::get<program::RowLoop>(unit.kernel);
        return row_key(row_source(loop), loop);
      }
    return std::string();
  };
  EXPECT_EQ(first_key(wide), first_key(narrow_program(768)));
  EXPECT_NE(first_key(wide), first_key(narrow));
}

// Kernels of one given shape.
class OfShape final : public device::cuda::Functions {
 public:
  OfShape(device::cuda::Gpu& gpu, RowShape shape) : gpu_(gpu), shape_(shape) {}
  Result<device::cuda::Handle> function(const std::string& text, const std::string& name,
                                        std::int64_t shared) override {
    return gpu_.function(text, name, shared);
  }
  RowShape row_shape(const std::string&) override { return shape_; }

 private:
  device::cuda::Gpu& gpu_;
  const RowShape shape_;
};

TEST(OwnKernelsRowShapes, AllGiveEqualResults) {
  if (!on_another_device()) GTEST_SKIP() << "no other device was named";
  const auto opened = device::open_device("cuda:0 exact");
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  auto& gpu = static_cast<device::cuda::Gpu&>(**opened);
  for (const std::int64_t d : {768, 96}) {
    const program::Program program = narrow_program(d);
    const auto memory = gpu.allocate(program.bytes());
    ASSERT_TRUE(memory.ok());
    // Numbers between 0.5 and 2 with either sign, as floats of any type.
    std::vector<std::byte> before(static_cast<std::size_t>(program.bytes()));
    Random random(7);
    for (std::size_t i = 0; i + 1 < before.size(); i += 2) {
      before[i] = static_cast<std::byte>(random.below(128));
      before[i + 1] = static_cast<std::byte>(random.below(2) == 0 ? 0x3f : 0xbf);
    }
    const auto run = [&](const program::Unit& unit, RowShape shape) {
      std::vector<std::byte> after(before.size());
      OfShape functions(gpu, shape);
      gpu.enter();
      const auto kernel = device::cuda::make_kernel(functions, program, unit, (*memory)->address());
      EXPECT_TRUE(kernel.ok()) << kernel.error().message;
      const auto stream = gpu.make_stream({.scratch_bytes = (*kernel)->scratch_bytes()});
      EXPECT_TRUE(stream.ok());
      (*stream)->copy_in((*memory)->address(), before);
      (*stream)->launch(**kernel, {});
      (*stream)->copy_out(after, (*memory)->address());
      EXPECT_TRUE((*stream)->synchronize().ok());
      return after;
    };
    for (const program::Unit& unit : program.units) {
      const std::vector<RowShape> shapes = shapes_of(unit);
      if (shapes.size() < 2) continue;
      const std::vector<std::byte> expected = run(unit, shapes.front());
      for (const RowShape& shape : shapes) {
        const std::vector<std::byte> found = run(unit, shape);
        for (const program::Place& place : unit.writes) {
          const std::int64_t width = plan::size_in_bytes(place.dtype),
                             at = program.buffer(place.buffer).offset / width;
          const program::Extent whole = extent(place);
          double largest = 0, apart = 0;
          for (std::int64_t i = whole.begin / width; i < whole.end / width; ++i) {
            const double x = device::load_element(place.dtype, expected.data(), at + i),
                         y = device::load_element(place.dtype, found.data(), at + i);
            largest = std::max(largest, std::abs(x));
            apart = std::max(apart, std::isfinite(x) ? std::abs(x - y) : std::isfinite(y) ? 1e30 : 0.0);
          }
          EXPECT_LE(apart, largest * (width == 2 ? 0.02 : 1e-4))
              << program::describe(program, unit) << ", " << shape.threads << " threads, "
              << shape.most_blocks;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::exec
