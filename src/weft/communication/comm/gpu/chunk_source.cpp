#include "weft/communication/comm/gpu/chunk_source.h"

#include <fmt/format.h>

#include "weft/collectives/chunks/program.h"
#include "weft/communication/comm/gpu/combine_source.h"

namespace weft::comm::gpu {
namespace {

constexpr std::string_view kTables = R"(
typedef unsigned long long weft_count;
struct weft_step { int op, count, wait_block, wait_step, wait_steps, publishes; long long first; };
struct weft_places { unsigned long long source, target, addend; long long elements; };
struct weft_block { int first_step, steps, in, out; };

__device__ __forceinline__ weft_count weft_seen(const weft_count* counter) {
  weft_count value;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(counter) : "memory");
  return value;
}
__device__ __forceinline__ void weft_show(weft_count* counter, weft_count value) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" :: "l"(counter), "l"(value) : "memory");
}
__device__ __forceinline__ weft_count weft_now() {
  weft_count now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// Called by one thread. False after a timeout here or in another block: a checked program cannot deadlock, so
// another kernel occupies the SMs that a block of this one needs.
__device__ bool weft_wait(const weft_count* counter, weft_count least, weft_count* gave_up, weft_count limit) {
  if (weft_seen(counter) >= least) return true;
  const weft_count begin = weft_now();
  for (unsigned turn = 1;; ++turn) {
    if (weft_seen(counter) >= least) return true;
    if (turn % 1024 != 0) continue;
    if (weft_seen(gave_up) != 0) return false;
    if (weft_now() - begin > limit) {
      weft_show(gave_up, blockIdx.x + 1);
      return false;
    }
  }
}

__device__ __forceinline__ weft_element weft_one(const weft_element* from) {
  union one {
    weft_bits bits;
    weft_element x;
    __device__ one() {}
  } value;
  value.bits = *(const volatile weft_bits*)(from);
  return value.x;
}

// to[i] = a[i], or the combination of a[i] and b[i] if b is given; also[i] likewise, if given.
__device__ void weft_move(const weft_element* a, const weft_element* b, weft_element* to, weft_element* also,
                          long long elements) {
  constexpr int kElements = 16 / sizeof(weft_element), kAtOnce = 4;
  const unsigned long long ends = (unsigned long long)(a) | (unsigned long long)(b) | (unsigned long long)(to) |
                                  (unsigned long long)(also);
  const long long packs = ends % 16 == 0 ? elements / kElements : 0;
  for (long long begin = threadIdx.x; begin < packs; begin += (long long)(blockDim.x) * kAtOnce) {
    weft_pack x[kAtOnce], y[kAtOnce];
    #pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      if (begin + u * blockDim.x < packs) x[u] = weft_take((const uint4*)(a) + begin + u * blockDim.x);
    if (b) {
      #pragma unroll
      for (int u = 0; u < kAtOnce; ++u)
        if (begin + u * blockDim.x < packs) y[u] = weft_take((const uint4*)(b) + begin + u * blockDim.x);
      #pragma unroll
      for (int u = 0; u < kAtOnce; ++u)
        #pragma unroll
        for (int k = 0; k < kElements; ++k)
          x[u].x[k] = weft_element(weft_combine(weft_number(x[u].x[k]), weft_number(y[u].x[k])));
    }
    #pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      if (begin + u * blockDim.x < packs) {
        weft_put((uint4*)(to) + begin + u * blockDim.x, x[u]);
        if (also) weft_put((uint4*)(also) + begin + u * blockDim.x, x[u]);
      }
  }
  for (long long i = packs * kElements + threadIdx.x; i < elements; i += blockDim.x) {
    weft_element value = weft_one(a + i);
    if (b) value = weft_element(weft_combine(weft_number(value), weft_number(weft_one(b + i))));
    to[i] = value;
    if (also) also[i] = value;
  }
}
)";

constexpr std::string_view kMachine = R"(
extern "C" __global__ void __launch_bounds__({threads}, {resident})
weft_chunks(const weft_block* blocks, const weft_step* steps, const weft_places* places, char* counter_bytes,
            char* slots, long long connections, long long slices, long long slot_count, long long slot_bytes,
            long long limit) {{
  __shared__ int go;
  const auto counter = [&](long long number) {{ return (weft_count*)(counter_bytes + number * {apart}); }};
  weft_count* const gave_up = counter(2 * connections + gridDim.x);
  const weft_block block = blocks[blockIdx.x];
  weft_count *const in_sent = counter(2ll * block.in), *const in_taken = counter(2ll * block.in + 1);
  weft_count *const out_sent = counter(2ll * block.out), *const out_taken = counter(2ll * block.out + 1);
  weft_count* const published = counter(2 * connections + blockIdx.x);
  weft_count received = 0, sent = 0;
  const auto slot = [&](int connection, weft_count number) {{
    return (weft_element*)(slots + (connection * slot_count + (long long)(number % slot_count)) * slot_bytes);
  }};
  const auto wait_for = [&](const weft_count* what, weft_count least) {{
    if (threadIdx.x == 0) go = weft_wait(what, least, gave_up, limit);
    __syncthreads();
    const bool goes = go;
    __syncthreads();
    return goes;
  }};
  // The writes of all threads of the block complete before they are published.
  const auto show = [&](weft_count* what, weft_count value) {{
    __syncthreads();
    if (threadIdx.x == 0) {{
      __threadfence();
      weft_show(what, value);
    }}
  }};
  for (long long slice = 0; slice < slices; ++slice)
    for (int s = 0; s < block.steps; ++s) {{
      const weft_step step = steps[block.first_step + s];
      if (step.wait_block >= 0 &&
          !wait_for(counter(2 * connections + step.wait_block), slice * step.wait_steps + step.wait_step + 1))
        return;
      const bool gets = step.op >= {receive}, sends = step.op == {send} || step.op == {receive_copy_send} ||
                 step.op >= {receive_reduce_send};
      const bool keeps = step.op != {send} && step.op != {receive_reduce_send};
      const bool adds = step.op == {reduce} || step.op >= {receive_reduce_copy};
      for (int c = 0; step.op != {nop} && c < step.count; ++c) {{
        const weft_places at = places[step.first + c];
        // As in collective::chunk_extent(): the first slices have one element more.
        const long long each = at.elements / slices, more = at.elements % slices;
        const long long first = slice * each + (slice < more ? slice : more), n = each + (slice < more);
        if (n == 0) continue;
        const auto place = [&](unsigned long long where) {{ return where ? (weft_element*)(where) + first : nullptr; }};
        weft_element* const target = keeps ? place(at.target) : nullptr;
        const weft_element* message = nullptr;
        if (gets) {{
          if (!wait_for(in_sent, received + 1)) return;
          message = slot(block.in, received);
        }}
        const weft_element* const a = step.op == {receive} || step.op == {receive_copy_send} ? message
                                    : step.op == {reduce} ? place(at.addend) : place(at.source);
        const weft_element* const b = !adds ? nullptr : gets ? message : place(at.source);
        weft_element* const room = sends ? slot(block.out, sent) : nullptr;
        // An outgoing slot is free once the message sent that many messages ago has been received.
        const weft_count taken = sent + 1 > slot_count ? sent + 1 - slot_count : 0;
        if (sends && keeps) {{
          if (threadIdx.x == 0) go = weft_seen(out_taken) >= taken;
          __syncthreads();
          const bool is_free = go;
          __syncthreads();
          if (is_free) {{
            weft_move(a, b, target, room, n);
            show(in_taken, ++received);
          }} else {{
            // Free the incoming slot before waiting for an outgoing one.
            weft_move(a, b, target, nullptr, n);
            show(in_taken, ++received);
            if (!wait_for(out_taken, taken)) return;
            weft_move(target, nullptr, room, nullptr, n);
          }}
          show(out_sent, ++sent);
          continue;
        }}
        if (sends && !wait_for(out_taken, taken)) return;
        weft_move(a, b, sends ? room : target, nullptr, n);
        if (gets) show(in_taken, ++received);
        if (sends) show(out_sent, ++sent);
      }}
      if (step.publishes) show(published, slice * block.steps + s + 1);
      else __syncthreads();
    }}
}}

extern "C" __global__ void weft_divide(weft_element* numbers, long long elements, long long count) {{
  for (long long i = blockIdx.x * (long long)(blockDim.x) + threadIdx.x; i < elements;
       i += (long long)(gridDim.x) * blockDim.x)
    numbers[i] = weft_divided(numbers[i], count);
}}
)";

// Unsigned type of the element size, for reads that bypass L1.
std::string_view bits_of(device::ElementType type) {
  switch (device::size_of(type)) {
    case 1: return "unsigned char";
    case 2: return "unsigned short";
    case 4: return "unsigned";
    default: return "unsigned long long";
  }
}

}  // namespace

std::string chunk_source(device::ElementType type, device::ReduceOp op, int threads, int resident) {
  using collective::Op;
  const auto number = [](Op of) { return static_cast<int>(of); };
  static_assert(Op::receive < Op::receive_copy_send && Op::receive_copy_send < Op::receive_reduce_copy &&
                Op::receive_reduce_copy < Op::receive_reduce_send &&
                Op::receive_reduce_send < Op::receive_reduce_copy_send);
  return combine_source(type, op) + fmt::format("typedef {} weft_bits;\n", bits_of(type)) +
         std::string(kTables) +
         fmt::format(kMachine, fmt::arg("threads", threads), fmt::arg("resident", resident),
                     fmt::arg("apart", kCounterBytes), fmt::arg("nop", number(Op::nop)),
                     fmt::arg("reduce", number(Op::reduce)), fmt::arg("send", number(Op::send)),
                     fmt::arg("receive", number(Op::receive)),
                     fmt::arg("receive_copy_send", number(Op::receive_copy_send)),
                     fmt::arg("receive_reduce_copy", number(Op::receive_reduce_copy)),
                     fmt::arg("receive_reduce_send", number(Op::receive_reduce_send)));
}

}  // namespace weft::comm::gpu
