// Time to import a model or a configuration: a config.json, an ONNX file, Megatron flags.
//
//   build/release/bench_importing [MEGABYTES]     500: size of the weights in the generated ONNX file
//
// The ONNX file is read and its weights are written as safetensors by a process limited to 256 MiB
// of private memory. Larger files must be streamed, or the import fails.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/measure.h"
#include "weft/app/command/import.h"
#include "weft/app/command/improve.h"
#include "weft/formats/protobuf_wire.h"
#include "weft/translate/imports/hugging_face.h"

namespace {

using namespace weft;
namespace fs = std::filesystem;

constexpr std::string_view kLlama70 =
    R"({"model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
        "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 32000, "rms_norm_eps": 1e-5})";
constexpr rlim_t kOwnMemory = rlim_t{256} << 20;

void bench_config() {
  std::vector<double> turns;
  std::int64_t parameters = 0;
  for (int i = 0; i < 9; ++i)
    turns.push_back(bench::wall_seconds_of([&] {
      const auto made = imports::import_hugging_face(kLlama70);
      parameters = made.ok() ? made->parameters : 0;
    }));
  fmt::print("{:44} {:>10.2f} ms   {} parameters\n", "config.json of 70B to WeftQL", 1e3 * median(turns),
             parameters);
}

// -- an ONNX file: a chain of linear maps
// ----------------------------------------------------------

constexpr std::int64_t kFeatures = 2048;
constexpr std::uint64_t kFloat = 1;

std::string dims(std::initializer_list<std::int64_t> sizes) {
  formats::WireWriter shape;
  for (const std::int64_t size : sizes) {
    formats::WireWriter dim;
    dim.field(1, static_cast<std::uint64_t>(size));
    shape.field(1, dim.bytes());
  }
  return shape.take();
}

std::string value_info(std::string_view name, std::initializer_list<std::int64_t> sizes) {
  formats::WireWriter tensor, type, value;
  tensor.field(1, kFloat);
  tensor.field(2, dims(sizes));
  type.field(1, tensor.bytes());
  value.field(1, name);
  value.field(2, type.bytes());
  return value.take();
}

// Lengths precede what they count, so all messages are sized before they are written.
std::int64_t write_onnx(const std::string& path, std::int64_t megabytes) {
  const std::int64_t bytes_each = kFeatures * kFeatures * 4;
  const std::int64_t maps = std::max<std::int64_t>(1, (megabytes << 20) / bytes_each);
  formats::WireWriter nodes;
  std::vector<std::string> heads;  // of tensors, without their data
  for (std::int64_t i = 0; i < maps; ++i) {
    formats::WireWriter product, relu, head;
    product.field(1, fmt::format("x{}", i));
    product.field(1, fmt::format("w{}", i));
    product.field(2, fmt::format("y{}", i));
    product.field(4, "MatMul");
    relu.field(1, fmt::format("y{}", i));
    relu.field(2, fmt::format("x{}", i + 1));
    relu.field(4, "Relu");
    nodes.field(1, product.bytes());
    nodes.field(1, relu.bytes());
    head.field(1, kFeatures);
    head.field(1, kFeatures);
    head.field(2, kFloat);
    head.field(8, fmt::format("w{}", i));
    heads.push_back(head.take());
  }
  nodes.field(2, "maps");
  nodes.field(11, value_info("x0", {8, kFeatures}));
  nodes.field(12, value_info(fmt::format("x{}", maps), {8, kFeatures}));
  // The bytes before the data of a tensor: tag and length of the tensor, its head, tag and length
  // of data.
  std::vector<std::string> before;
  std::int64_t graph_bytes = static_cast<std::int64_t>(nodes.bytes().size());
  for (const std::string& head : heads) {
    formats::WireWriter data, all;
    data.varint(9 << 3 | 2);
    data.varint(static_cast<std::uint64_t>(bytes_each));
    all.varint(5 << 3 | 2);
    all.varint(head.size() + data.bytes().size() + static_cast<std::size_t>(bytes_each));
    before.push_back(all.take() + head + data.take());
    graph_bytes += static_cast<std::int64_t>(before.back().size()) + bytes_each;
  }
  formats::WireWriter model, opset;
  opset.field(1, std::string_view());
  opset.field(2, 17);
  model.field(1, 8);
  model.field(8, opset.bytes());
  model.varint(7 << 3 | 2);
  model.varint(static_cast<std::uint64_t>(graph_bytes));
  std::ofstream out(path, std::ios::binary);
  out << model.bytes() << nodes.bytes();
  std::vector<float> numbers(kFeatures * kFeatures);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 1e-6F * static_cast<float>(i % 1000);
  for (const std::string& one : before) {
    out << one;
    out.write(reinterpret_cast<const char*>(numbers.data()), bytes_each);
  }
  return maps * kFeatures * kFeatures;
}

struct Child {
  int exit_code = 0;
  double seconds = 0;
};

Child in_little_memory(const command::Import& request) {
  const double began = bench::wall_seconds();
  const pid_t child = fork();
  if (child == 0) {
    const rlimit own{kOwnMemory, kOwnMemory};
    setrlimit(RLIMIT_DATA, &own);
    const session::Reply reply = command::run(request);
    fmt::print(stderr, "{}", reply.complaint);
    _exit(reply.exit_code == session::ExitCode::ok ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 2, bench::wall_seconds() - began};
}

bool bench_onnx(const fs::path& folder, std::int64_t megabytes) {
  command::Import request;
  request.file = (folder / "maps.onnx").string();
  request.to = (folder / "maps.weft").string();
  const std::int64_t parameters = write_onnx(request.file, megabytes);
  const Child done = in_little_memory(request);
  fmt::print("{:44} {:>10.2f} s    {} MB, {} parameters, within 256 MiB{}\n",
             "ONNX file to WeftQL and safetensors", done.seconds, fs::file_size(request.file) >> 20,
             parameters, done.exit_code == 0 ? "" : ": failed");
  return done.exit_code == 0;
}

void bench_improve(const fs::path& folder) {
  const std::string config = (folder / "config.json").string();
  std::ofstream(config) << kLlama70;
  command::Improve request;
  request.megatron =
      "--tensor-model-parallel-size 8 --sequence-parallel --pipeline-model-parallel-size 8 "
      "--micro-batch-size 1 "
      "--global-batch-size 2048 --seq-length 4096 --use-distributed-optimizer --bf16";
  request.model = config;
  request.on = "superpod";
  const double began = bench::wall_seconds();
  const session::Reply reply = command::run(request);
  fmt::print("{:44} {:>10.2f} s    {}\n", "weft improve of 70B on 1,024 devices",
             bench::wall_seconds() - began,
             reply.exit_code == session::ExitCode::ok ? "flags of Megatron" : reply.complaint);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t megabytes = argc > 1 ? std::atoll(argv[1]) : 500;
  const fs::path folder = fs::temp_directory_path() / fmt::format("weft-importing-{}", getpid());
  fs::create_directories(folder);
  bench_config();
  const bool imported = bench_onnx(folder, megabytes);
  bench_improve(folder);
  fs::remove_all(folder);
  return imported ? 0 : 1;
}
