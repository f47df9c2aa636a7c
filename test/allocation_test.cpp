// Checks that training steps allocate nothing: a rank allocates all its memory when it starts. This
// is a separate program because it counts every allocation of the process.
#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "execution_case.h"

namespace {

std::atomic<std::int64_t> allocations{0};

void* counted(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return ++allocations, std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return ++allocations, std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace weft::exec {
namespace {

TEST(Allocation, StepsAllocateNothing) {
  struct Model {
    std::string name;
    std::vector<language::SizeOverride> sizes;
  };
  for (const Model& model :
       {Model{"digits_mlp", {}}, Model{"digits_conv", {}},
        Model{"char_gpt", {{"b", 2, {}}, {"s", 32, {}}, {"d", 48, {}}, {"layers", 2, {}}}}}) {
    const plan::Graph graph = training_plan(model.name, model.sizes);
    Random random(1);
    const Tensors sources = random_sources(graph, 10, random);
    for (const int workers : {1, 2}) {
      const auto rank = start(graph, workers);
      EXPECT_EQ(rank->reference_units(), 0u) << model.name;
      fill(*rank, sources);
      for (int step = 0; step < 3; ++step)
        EXPECT_TRUE(rank->step().ok());  // a thread's first matrix product allocates its packing buffer
      const std::int64_t before = allocations;
      for (int step = 0; step < 5; ++step) EXPECT_TRUE(rank->step().ok());
      EXPECT_EQ(allocations, before) << model.name << " on " << workers << " workers";
    }
  }
}

}  // namespace
}  // namespace weft::exec
