"""Cases of the c10d backend: collectives, messages, groups, asynchronous operations."""

import torch
import torch.distributed as dist

TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16,
         torch.int32, torch.int64]
ONE_BYTE_FLOATS = [getattr(torch, name) for name in ("float8_e4m3fn", "float8_e5m2") if hasattr(torch, name)]
HAS_BACKENDS = hasattr(dist, "all_gather_into_tensor") and int(torch.__version__.split(".")[0]) >= 2


def values(rank, count, dtype):
    """Small whole numbers, exact in every type."""
    return ((torch.arange(count) + rank) % 3 + 1).to(dtype)


def of_all(size, count, dtype=torch.int64):
    return [values(rank, count, dtype) for rank in range(size)]


def all_reduce_types(rank, size):
    for dtype in TYPES:
        for op, combine in ((dist.ReduceOp.SUM, torch.sum), (dist.ReduceOp.PRODUCT, torch.prod),
                            (dist.ReduceOp.MIN, torch.amin), (dist.ReduceOp.MAX, torch.amax)):
            tensor = values(rank, 17, dtype)
            dist.all_reduce(tensor, op)
            expected = combine(torch.stack(of_all(size, 17)), 0).to(dtype)
            assert torch.equal(tensor, expected), (dtype, op, tensor, expected)


def all_reduce_average(rank, size):
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        tensor = torch.full((9,), float(rank + 1)).to(dtype)
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
        assert torch.allclose(tensor.double(), torch.full((9,), (size + 1) / 2).double(), rtol=1e-2), tensor


def all_reduce_bits(rank, size):
    all_values = torch.stack(of_all(size, 11))
    for op, combine in ((dist.ReduceOp.BAND, torch.bitwise_and), (dist.ReduceOp.BOR, torch.bitwise_or),
                        (dist.ReduceOp.BXOR, torch.bitwise_xor)):
        expected = all_values[0]
        for each in all_values[1:]:
            expected = combine(expected, each)
        tensor = values(rank, 11, torch.int32)
        dist.all_reduce(tensor, op)
        assert torch.equal(tensor.long(), expected), op


def all_reduce_bool(rank, size):
    for op, expected in ((dist.ReduceOp.SUM, [True, True, False]), (dist.ReduceOp.MAX, [True, True, False]),
                         (dist.ReduceOp.BOR, [True, True, False]), (dist.ReduceOp.MIN, [False, True, False]),
                         (dist.ReduceOp.BAND, [False, True, False]), (dist.ReduceOp.PRODUCT, [False, True, False])):
        tensor = torch.tensor([rank == 0, True, False])
        dist.all_reduce(tensor, op)
        assert tensor.tolist() == expected, (op, tensor)


def all_reduce_premultiplied(rank, size):
    make = getattr(dist, "_make_nccl_premul_sum", None)
    if make is None:
        return
    tensor = torch.full((5,), float(rank + 1))
    dist.all_reduce(tensor, make(0.5))
    assert torch.equal(tensor, torch.full((5,), size * (size + 1) / 4)), tensor


def all_reduce_strided(rank, size):
    base = torch.full((6, 8), float(rank + 1))
    dist.all_reduce(base[:, ::2])
    assert torch.equal(base[:, ::2], torch.full((6, 4), size * (size + 1) / 2))
    assert torch.equal(base[:, 1::2], torch.full((6, 4), float(rank + 1)))
    # Ranks with different strides: elements match by index.
    tensor = torch.arange(12.0).reshape(3, 4)
    tensor = tensor if rank == 0 else tensor.t().contiguous().t()
    dist.all_reduce(tensor)
    assert torch.equal(tensor, torch.arange(12.0).reshape(3, 4) * size)
    weight = torch.full((4,), float(rank), requires_grad=True)
    dist.broadcast(weight, 0)
    assert torch.equal(weight, torch.zeros(4))


def all_reduce_coalesced(rank, size):
    for scale in (1, 300_000):  # one call, and one per tensor
        tensors = [torch.full((3 * scale,), float(rank)), torch.full((2, 2), float(rank + 1))]
        dist.all_reduce_coalesced(tensors)
        assert torch.equal(tensors[0], torch.full((3 * scale,), size * (size - 1) / 2))
        assert torch.equal(tensors[1], torch.full((2, 2), size * (size + 1) / 2))


def empty_tensors(rank, size):
    dist.all_reduce(torch.zeros(0))
    dist.broadcast(torch.zeros(0, 3), 0)
    outputs = [torch.zeros(0) for _ in range(size)]
    dist.all_gather(outputs, torch.zeros(0))
    dist.barrier()


def moves_of_all_types(rank, size):
    for dtype in TYPES + [torch.bool, torch.complex64] + ONE_BYTE_FLOATS:
        mine = torch.arange(rank, rank + 6).to(torch.float32).to(dtype)
        everyone = [torch.arange(each, each + 6).to(torch.float32).to(dtype) for each in range(size)]
        outputs = [torch.zeros(6).to(dtype) for _ in range(size)]
        dist.all_gather(outputs, mine)
        for output, expected in zip(outputs, everyone):
            assert torch.equal(output.view(torch.uint8), expected.view(torch.uint8)), dtype
        tensor = mine.clone()
        dist.broadcast(tensor, size - 1)
        assert torch.equal(tensor.view(torch.uint8), everyone[size - 1].view(torch.uint8)), dtype


def gathers(rank, size):
    mine = torch.full((2, 3), float(rank))
    flat = torch.zeros(size, 2, 3)
    dist.all_gather(list(flat), mine)  # adjacent outputs
    assert torch.equal(flat, torch.arange(float(size)).reshape(size, 1, 1).expand(size, 2, 3))
    output = torch.zeros(size * 2, 3)
    dist._all_gather_base(output, mine)
    assert torch.equal(output, flat.reshape(size * 2, 3))
    lists = [[torch.zeros(2), torch.zeros(3)] for _ in range(size)]
    dist.all_gather_coalesced(lists, [torch.full((2,), float(rank)), torch.full((3,), float(-rank))])
    for each, (first, second) in enumerate(lists):
        assert torch.equal(first, torch.full((2,), float(each))) and torch.equal(second, torch.full((3,), float(-each)))
    for root in range(size):
        outputs = [torch.zeros(2, 3) for _ in range(size)] if rank == root else None
        dist.gather(mine, outputs, dst=root)
        if rank == root:
            assert torch.equal(torch.stack(outputs), flat)


def roots(rank, size):
    for root in range(size):
        tensor = torch.full((7,), rank + 1)
        dist.reduce(tensor, root)
        assert torch.equal(tensor, torch.full((7,), size * (size + 1) // 2 if rank == root else rank + 1))
        tensor = torch.full((7,), rank)
        dist.broadcast(tensor, root)
        assert torch.equal(tensor, torch.full((7,), root))
        output = torch.zeros(3)
        dist.scatter(output, [torch.full((3,), float(10 * root + each)) for each in range(size)] if rank == root else None,
                     src=root)
        assert torch.equal(output, torch.full((3,), float(10 * root + rank)))


def reduce_scatters(rank, size):
    output = torch.zeros(4)
    dist.reduce_scatter(output, [torch.full((4,), float(rank + each)) for each in range(size)])
    assert torch.equal(output, torch.full((4,), size * (size - 1) / 2 + size * rank))
    uneven = torch.zeros(rank + 1)
    dist.reduce_scatter(uneven, [torch.full((each + 1,), float(each)) for each in range(size)])
    assert torch.equal(uneven, torch.full((rank + 1,), float(size * rank)))
    output = torch.zeros(2, 2)
    dist._reduce_scatter_base(output, torch.arange(float(size * 4)).reshape(size * 2, 2), op=dist.ReduceOp.AVG)
    assert torch.equal(output, torch.arange(rank * 4.0, rank * 4.0 + 4).reshape(2, 2))


def all_to_alls(rank, size):
    output = torch.zeros(size, dtype=torch.int64)
    dist.all_to_all_single(output, torch.arange(size) + 10 * rank)
    assert torch.equal(output, torch.arange(size) * 10 + rank)
    # Rank r sends r + 1 rows to each rank.
    give = torch.full(((rank + 1) * size, 2), rank)
    take = torch.zeros(size * (size + 1) // 2, 2, dtype=torch.int64)
    dist.all_to_all_single(take, give, [each + 1 for each in range(size)], [rank + 1] * size)
    assert torch.equal(take, torch.cat([torch.full((each + 1, 2), each) for each in range(size)]))
    outputs = [torch.zeros(each + 1) for each in range(size)]
    dist.all_to_all(outputs, [torch.full((rank + 1,), float(rank))] * size)
    for each, output in enumerate(outputs):
        assert torch.equal(output, torch.full((each + 1,), float(each)))


def messages(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    # Received in another order than sent, before they are waited for.
    works = [dist.isend(torch.full((5,), float(100 * rank + tag)), after, tag=tag) for tag in (1, 2, 3)]
    for tag in (3, 1, 2):
        tensor = torch.zeros(5)
        dist.recv(tensor, before, tag=tag)
        assert torch.equal(tensor, torch.full((5,), float(100 * before + tag)))
    large, received = torch.full((300_000,), float(rank)), torch.zeros(300_000)
    requests = dist.batch_isend_irecv([dist.P2POp(dist.isend, large, after), dist.P2POp(dist.irecv, received, before)])
    for each in requests + works:
        each.wait()
    assert torch.equal(received, torch.full((300_000,), float(before)))
    if rank == 0:
        seen = set()
        for _ in range(size - 1):
            tensor = torch.zeros(2, dtype=torch.int64)
            sender = dist.recv(tensor, tag=7)
            assert tensor.tolist() == [sender, sender]
            seen.add(sender)
        assert seen == set(range(1, size))
    else:
        dist.send(torch.full((2,), rank), 0, tag=7)


def groups(rank, size):
    evens = dist.new_group([each for each in range(size) if each % 2 == 0], backend="weft")
    last_two = dist.new_group([size - 2, size - 1], backend="weft")
    tensor = torch.tensor([1.0])
    if rank % 2 == 0:
        dist.all_reduce(tensor, group=evens)
        assert tensor.item() == (size + 1) // 2
    if rank >= size - 2:
        tensor = torch.tensor([float(rank)])
        dist.broadcast(tensor, size - 1, group=last_two)
        assert tensor.item() == size - 1
    dist.barrier()


def asynchronous(rank, size):
    tensors = [torch.full((1000,), float(rank + each)) for each in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in reversed(works):
        work.wait()
        assert work.is_completed()
    for each, tensor in enumerate(tensors):
        assert torch.equal(tensor, torch.full((1000,), size * (size - 1) / 2 + size * each))


def futures(rank, size):
    """A callback starts another collective and waits for it."""
    def twice(future):
        tensor = future.value()[0]
        dist.all_reduce(tensor)
        return tensor

    work = dist.all_reduce(torch.ones(10), async_op=True)
    result = work.get_future().then(twice).wait()
    assert torch.equal(result, torch.full((10,), float(size * size)))


def sparse(rank, size):
    tensor = torch.sparse_coo_tensor([[rank, size]], [1.0, 2.0], (size + 1,))
    dist.all_reduce(tensor)
    assert tensor.to_dense().tolist() == [1.0] * size + [2.0 * size]


def objects(rank, size):
    outputs = [None] * size
    dist.all_gather_object(outputs, {"rank": rank})
    assert outputs == [{"rank": each} for each in range(size)]
    box = [f"from {rank}"]
    dist.broadcast_object_list(box, src=1)
    assert box == ["from 1"]


def coalescing(rank, size):
    if not HAS_BACKENDS:
        return
    outputs = [torch.zeros(size * 2) for _ in range(3)]
    with dist.distributed_c10d._coalescing_manager(async_ops=True) as works:
        for output in outputs:
            dist.all_gather_into_tensor(output, torch.full((2,), float(rank)))
    works.wait()
    for output in outputs:
        assert torch.equal(output, torch.arange(float(size)).repeat_interleave(2))
    tensors = [torch.full((each + 1,), float(rank)) for each in range(3)]
    with dist.distributed_c10d._coalescing_manager(device=torch.device("cpu"), async_ops=True) as works:
        for tensor in tensors:
            dist.all_reduce(tensor)
    works.wait()
    assert all(torch.equal(each, torch.full_like(each, size * (size - 1) / 2)) for each in tensors)


def _refused(call, *texts):
    try:
        call()
    except (RuntimeError, ValueError) as error:
        for text in texts:
            assert text in str(error), (text, str(error))
        return
    raise AssertionError(f"not refused: {texts}")


def refusals(rank, size):
    """An invalid call fails on the rank that makes it, sends nothing, and leaves the group usable."""
    _refused(lambda: dist.all_reduce(torch.ones(3), dist.ReduceOp.BAND), "Cannot use ReduceOp.BAND", "Float", "integers")
    _refused(lambda: dist.all_gather([torch.zeros(3)] * (size + 1), torch.zeros(3)), f"{size + 1}")
    _refused(lambda: dist._all_gather_base(torch.zeros(5), torch.zeros(3)), "5", str(3 * size))
    _refused(lambda: dist.all_reduce(torch.tensor([True]), dist.ReduceOp.AVG), "AVG", "Bool")
    _refused(lambda: dist.all_to_all_single(torch.zeros(size), torch.zeros(size), None, [size + 1] + [0] * (size - 1)),
             str(size + 1))
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == size


def losses_of_ddp(backend, rank, size):
    group = dist.new_group(backend=backend)
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    model = torch.nn.parallel.DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.001)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    torch.manual_seed(100 + rank)
    losses = []
    for _ in range(6):
        inputs = torch.randn(16, 8)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def data_parallel(rank, size):
    ours = losses_of_ddp("weft", rank, size)
    if dist.is_gloo_available() if hasattr(dist, "is_gloo_available") else True:
        theirs = losses_of_ddp("gloo", rank, size)
        assert torch.allclose(torch.tensor(ours), torch.tensor(theirs), rtol=1e-5), (ours, theirs)
    assert ours[-1] < ours[0]


CASES = [all_reduce_types, all_reduce_average, all_reduce_bits, all_reduce_bool, all_reduce_premultiplied,
         all_reduce_strided, all_reduce_coalesced, empty_tensors, moves_of_all_types, gathers, roots, reduce_scatters,
         all_to_alls, messages, groups, asynchronous, futures, sparse, objects, coalescing, refusals, data_parallel]
