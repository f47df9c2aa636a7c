// The collectives of weft_comm.h.
#include "weft/communication/comm/c_calls.h"

using weft::Status;
using weft::comm::ElementType;
using weft::comm::guarded;
using weft::comm::no_handle;
using weft::comm::ReduceOp;
using weft::comm::run;
using weft::comm::tell;
using weft::comm::tell_late;
using weft::comm::UserOperation;

namespace {

weft_call simple(int kind, const void* input, void* output, int64_t count, int type, int op = WEFT_SUM,
                 int32_t root = 0) {
  return {.kind = kind,
          .input = input,
          .output = output,
          .count = count,
          .type = type,
          .op = op,
          .root = root,
          .peer = 0,
          .counts = nullptr,
          .counts_length = 0,
          .priority = WEFT_NORMAL,
          .timeout_ms = 0};
}

// With one count per rank.
int run_uneven(weft_comm* comm, weft_call call, const int64_t* counts) {
  if (comm == nullptr || counts == nullptr)
    return guarded([&] { return tell(no_handle(comm == nullptr ? "comm" : "counts")); });
  call.counts = counts;
  call.counts_length = comm->communicator->size();
  return run(comm, call);
}

template <class Body>
int with_type(weft_comm* comm, int type, Body body) {
  return guarded([&] {
    if (comm == nullptr) return tell(no_handle("comm"));
    if (const Status known = weft::comm::check_type(type); !known.ok()) return tell(known);
    return tell_late(*comm, body(*comm->communicator, static_cast<ElementType>(type)));
  });
}

template <class Body>
int with_operation(weft_comm* comm, int type, const weft_operation* op, Body body) {
  if (op == nullptr || op->combine == nullptr)
    return guarded([&] { return tell(no_handle(op == nullptr ? "op" : "combine")); });
  return with_type(comm, type, [&](weft::comm::Communicator& group, ElementType of) {
    const UserOperation operation{
        .combine = [op](const void* right, void* left,
                        std::int64_t items) { op->combine(right, left, items, op->data); },
        .item = op->item};
    return body(group, of, operation);
  });
}

}  // namespace

int weft_all_reduce(weft_comm* comm, const void* input, void* output, int64_t count, int type, int op) {
  return run(comm, simple(WEFT_ALL_REDUCE, input, output, count, type, op));
}
int weft_reduce_scatter(weft_comm* comm, const void* input, void* output, int64_t count, int type, int op) {
  return run(comm, simple(WEFT_REDUCE_SCATTER, input, output, count, type, op));
}
int weft_all_gather(weft_comm* comm, const void* input, void* output, int64_t count, int type) {
  return run(comm, simple(WEFT_ALL_GATHER, input, output, count, type));
}
int weft_all_to_all(weft_comm* comm, const void* input, void* output, int64_t count, int type) {
  return run(comm, simple(WEFT_ALL_TO_ALL, input, output, count, type));
}
int weft_broadcast(weft_comm* comm, const void* input, void* output, int64_t count, int type, int32_t root) {
  return run(comm, simple(WEFT_BROADCAST, input, output, count, type, WEFT_SUM, root));
}
int weft_reduce(weft_comm* comm, const void* input, void* output, int64_t count, int type, int op,
                int32_t root) {
  return run(comm, simple(WEFT_REDUCE, input, output, count, type, op, root));
}
int weft_gather(weft_comm* comm, const void* input, void* output, int64_t count, int type, int32_t root) {
  return run(comm, simple(WEFT_GATHER, input, output, count, type, WEFT_SUM, root));
}
int weft_scatter(weft_comm* comm, const void* input, void* output, int64_t count, int type, int32_t root) {
  return run(comm, simple(WEFT_SCATTER, input, output, count, type, WEFT_SUM, root));
}
int weft_send(weft_comm* comm, const void* input, int64_t count, int type, int32_t to) {
  weft_call call = simple(WEFT_SEND, input, nullptr, count, type, WEFT_SUM, weft_rank(comm));
  call.peer = to;
  return run(comm, call);
}
int weft_receive(weft_comm* comm, void* output, int64_t count, int type, int32_t from) {
  weft_call call = simple(WEFT_SEND, nullptr, output, count, type, WEFT_SUM, from);
  call.peer = weft_rank(comm);
  return run(comm, call);
}
int weft_barrier(weft_comm* comm) { return run(comm, simple(WEFT_BARRIER, nullptr, nullptr, 0, WEFT_U8)); }

int weft_scan(weft_comm* comm, const void* input, void* output, int64_t count, int type, int op) {
  return with_type(comm, type, [&](weft::comm::Communicator& group, ElementType of) -> Status {
    WEFT_TRY_STATUS(weft::comm::check_operation(op));
    return group.scan(input, output, count, of, static_cast<ReduceOp>(op));
  });
}
int weft_exclusive_scan(weft_comm* comm, const void* input, void* output, int64_t count, int type, int op) {
  return with_type(comm, type, [&](weft::comm::Communicator& group, ElementType of) -> Status {
    WEFT_TRY_STATUS(weft::comm::check_operation(op));
    return group.exclusive_scan(input, output, count, of, static_cast<ReduceOp>(op));
  });
}

int weft_all_gatherv(weft_comm* comm, const void* input, void* output, const int64_t* counts, int type) {
  return run_uneven(comm, simple(WEFT_ALL_GATHER, input, output, 0, type), counts);
}
int weft_gatherv(weft_comm* comm, const void* input, void* output, const int64_t* counts, int type,
                 int32_t root) {
  return run_uneven(comm, simple(WEFT_GATHER, input, output, 0, type, WEFT_SUM, root), counts);
}
int weft_scatterv(weft_comm* comm, const void* input, void* output, const int64_t* counts, int type,
                  int32_t root) {
  return run_uneven(comm, simple(WEFT_SCATTER, input, output, 0, type, WEFT_SUM, root), counts);
}
int weft_reduce_scatterv(weft_comm* comm, const void* input, void* output, const int64_t* counts, int type,
                         int op) {
  return run_uneven(comm, simple(WEFT_REDUCE_SCATTER, input, output, 0, type, op), counts);
}

int weft_all_to_allv(weft_comm* comm, const void* input, const int64_t* give, void* output,
                     const int64_t* take, int type) {
  if (give == nullptr || take == nullptr)
    return guarded([&] { return tell(no_handle(give == nullptr ? "give" : "take")); });
  return with_type(comm, type, [&](weft::comm::Communicator& group, ElementType of) {
    const auto ranks = static_cast<std::size_t>(group.size());
    return group.all_to_all(input, std::span(give, ranks), output, std::span(take, ranks), of);
  });
}

int weft_all_reduce_by(weft_comm* comm, const void* input, void* output, int64_t count, int type,
                       const weft_operation* op) {
  return with_operation(comm, type, op, [&](auto& group, ElementType of, const UserOperation& operation) {
    return group.all_reduce(input, output, count, of, operation);
  });
}
int weft_reduce_by(weft_comm* comm, const void* input, void* output, int64_t count, int type,
                   const weft_operation* op, int32_t root) {
  return with_operation(comm, type, op, [&](auto& group, ElementType of, const UserOperation& operation) {
    return group.reduce(input, output, count, of, operation, root);
  });
}
int weft_reduce_scatter_by(weft_comm* comm, const void* input, void* output, int64_t count, int type,
                           const weft_operation* op) {
  return with_operation(comm, type, op, [&](auto& group, ElementType of, const UserOperation& operation) {
    return group.reduce_scatter(input, output, count, of, operation);
  });
}
int weft_scan_by(weft_comm* comm, const void* input, void* output, int64_t count, int type,
                 const weft_operation* op) {
  return with_operation(comm, type, op, [&](auto& group, ElementType of, const UserOperation& operation) {
    return group.scan(input, output, count, of, operation);
  });
}
int weft_exclusive_scan_by(weft_comm* comm, const void* input, void* output, int64_t count, int type,
                           const weft_operation* op) {
  return with_operation(comm, type, op, [&](auto& group, ElementType of, const UserOperation& operation) {
    return group.exclusive_scan(input, output, count, of, operation);
  });
}
