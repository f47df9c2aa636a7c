// mpi_peer.cpp -- Open MPI or MPICH as a rank of `weft bench`, compiled with its mpicxx.
//
// Settings come from mpirun's command line and the environment (measure/bench_peers.cpp).
#define OMPI_SKIP_MPICXX 1  // C only, without the obsolete C++ bindings
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "weft/runtime/measure/bench_rank.h"

namespace weft {
namespace {

using collective::Kind;
using device::ElementType;

// Sums need a type that MPI can add. For data that is only moved, any type of the same size will
// do.
MPI_Datatype datatype(Kind kind, ElementType type) {
  if (!collective::reduces(kind) && size_of(type) == 2) return MPI_UINT16_T;
  switch (type) {
    case ElementType::f64: return MPI_DOUBLE;
    case ElementType::f32: return MPI_FLOAT;
    case ElementType::i8: return MPI_INT8_T;
    case ElementType::i32: return MPI_INT32_T;
    case ElementType::i64: return MPI_INT64_T;
    case ElementType::u8: return MPI_UINT8_T;
    case ElementType::i16: return MPI_INT16_T;
    case ElementType::u16: return MPI_UINT16_T;
    case ElementType::u32: return MPI_UINT32_T;
    case ElementType::u64: return MPI_UINT64_T;
    default: return MPI_DATATYPE_NULL;
  }
}

Status checked(int code) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return environment_error(std::string(text, static_cast<std::size_t>(length)));
}

class MpiLibrary : public measure::BenchLibrary {
 public:
  MpiLibrary() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }

  // "Open MPI v4.1.4", "MPICH 4.0.2"
  std::string version() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::string_view version(text, static_cast<std::size_t>(length));
    version = version.substr(0, version.find_first_of(",\n"));
    constexpr std::string_view kLabel = "MPICH Version:";
    if (!version.starts_with(kLabel)) return std::string(version);
    version.remove_prefix(std::min(version.find_first_not_of(" \t", kLabel.size()), version.size()));
    return fmt::format("MPICH {}", version);
  }

  std::int32_t rank() const override { return rank_; }
  std::int32_t ranks() const override { return ranks_; }

  // Two functions implement reduce-scatter, with different algorithms in the libraries.
  std::vector<std::string> variants(Kind kind) const override {
    if (kind == Kind::reduce_scatter) return {"block", "counts"};
    return {"plain"};
  }

  Status barrier() override { return checked(MPI_Barrier(MPI_COMM_WORLD)); }

  Status prepare(const measure::BenchTurn& turn, const Buffers& buffers) override {
    type_ = datatype(turn.kind, turn.type);
    if (type_ == MPI_DATATYPE_NULL)
      return user_error(fmt::format("MPI has no sums of {}", device::name(turn.type)));
    if (buffers.count * ranks_ > std::numeric_limits<int>::max())
      return user_error(fmt::format("MPI counts with int, found {} elements", buffers.count * ranks_));
    kind_ = turn.kind;
    by_counts_ = turn.variant == "counts";
    count_ = static_cast<int>(buffers.count);
    counts_.assign(static_cast<std::size_t>(ranks_), count_);
    input_ = turn.in_place ? MPI_IN_PLACE : static_cast<void*>(buffers.input);
    output_ = buffers.output;
    // In place, MPI's receive buffer is the whole buffer.
    if (turn.in_place && kind_ == Kind::reduce_scatter) output_ = buffers.input;
    return {};
  }

  Status call() override {
    switch (kind_) {
      case Kind::all_reduce:
        return checked(MPI_Allreduce(input_, output_, count_, type_, MPI_SUM, MPI_COMM_WORLD));
      case Kind::reduce_scatter:
        return checked(
            by_counts_ ? MPI_Reduce_scatter(input_, output_, counts_.data(), type_, MPI_SUM, MPI_COMM_WORLD)
                       : MPI_Reduce_scatter_block(input_, output_, count_, type_, MPI_SUM, MPI_COMM_WORLD));
      case Kind::all_gather:
        return checked(MPI_Allgather(input_, count_, type_, output_, count_, type_, MPI_COMM_WORLD));
      case Kind::all_to_all:
        return checked(MPI_Alltoall(input_, count_, type_, output_, count_, type_, MPI_COMM_WORLD));
      case Kind::broadcast: return checked(MPI_Bcast(output_, count_, type_, 0, MPI_COMM_WORLD));
      default: return user_error(fmt::format("{} is not measured", collective::name(kind_)));
    }
  }

  // In place, MPI stores the result of a reduce-scatter at the beginning of the whole buffer.
  const std::byte* result(const Buffers& buffers) const override {
    return kind_ == Kind::reduce_scatter && input_ == MPI_IN_PLACE ? buffers.input : buffers.output;
  }

 private:
  int rank_ = 0, ranks_ = 1;
  Kind kind_ = Kind::all_reduce;
  MPI_Datatype type_ = MPI_FLOAT;
  bool by_counts_ = false;
  int count_ = 0;
  std::vector<int> counts_;
  void* input_ = nullptr;
  void* output_ = nullptr;
};

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
  weft::Status served;
  {
    weft::MpiLibrary library;
    served = weft::measure::serve_bench(library);
  }
  MPI_Finalize();
  if (!served.ok()) std::fprintf(stderr, "%s\n", served.error().message.c_str());
  return served.ok() ? 0 : 1;
}
