

def mesh(device_type="cuda"):
    """The device mesh of the plan. Call it on every rank, after init_process_group."""
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(device_type, tuple(MESH.values()), mesh_dim_names=tuple(MESH))


def apply(model, mesh, loss=None, names=None, device=None):
    """Distributes `model` on this rank as planned. Returns (parts, schedule).

    parts     the modules that this rank trains: the model, or its stages. Give their parameters to
              the optimizer
    schedule  None without stages; otherwise for step()
    loss      with stages: loss(outputs, targets), averaged over a micro-batch
    names     modules whose names differ from the plan's: {"wq": "attention.q_proj"}

    With stages, modules of other stages become None, so that forward() must skip those; absent
    layers return their first argument.
    """
    _check_model(model, mesh)
    layers = _layers_of(model)
    styles = _styles_of(model, layers, names or {})
    if "pp" not in MESH:
        return [_distribute(model, mesh, layers, range(LAYERS), styles)], None
    if loss is None:
        raise ValueError("this plan has stages: expected loss(outputs, targets), found none")
    import copy
    from torch.distributed.pipelining import PipelineStage

    if device is None:
        device = next(model.parameters()).device
    rank, parts, stages = mesh["pp"].get_local_rank(), [], []
    own = [stage for stage, owner in enumerate(_owners()) if owner == rank]
    for stage in own:
        part = copy.deepcopy(model) if stage != own[-1] else model
        held = _cut(part, stage, layers)
        parts.append(_distribute(part, mesh, layers, held, styles))
        stages.append(PipelineStage(parts[-1], stage, len(STAGE_LAYERS), device, group=mesh.get_group("pp")))
    return parts, _schedule(stages, loss)


def step(schedule, inputs, targets):
    """Runs the forward and backward passes of a batch with the same arguments on every rank.

    Returns the losses of the micro-batches on the rank of the last stage, and [] on others.
    """
    first = any(stage.is_first for stage in schedule._stages)
    last = any(stage.is_last for stage in schedule._stages)
    losses = []
    schedule.step(*((inputs,) if first else ()), target=targets if last else None, losses=losses if last else None)
    return losses


def _check_model(model, mesh):
    import torch

    # Private names of torch.distributed.pipelining and FSDP2's module path are those of 2.6 and later.
    if tuple(int(n) for n in torch.__version__.split("+")[0].split(".")[:2]) < NEEDS_TORCH:
        raise RuntimeError(f"expected torch {'.'.join(map(str, NEEDS_TORCH))} or later, found {torch.__version__}")
    found = dict(zip(mesh.mesh_dim_names or (), mesh.mesh.shape))
    if found != MESH:
        raise ValueError(f"expected the mesh {MESH}, found {found}; mesh() makes it")


def _layers_of(model):
    """The name of the container of the model's repeated layers; None without one."""
    if LAYERS < 2:
        return None
    for name, module in model.named_modules():
        if name and [child for child, _ in module.named_children()] == [str(i) for i in range(LAYERS)]:
            return name
    raise ValueError(f"expected a ModuleList or ModuleDict of {LAYERS} layers, 0 to {LAYERS - 1}, found none")


def _flat(name):
    return name.replace(".", "_")


def _styles_of(model, layers, names):
    """TENSOR by module name: "*" stands for the number of a layer."""
    import re

    known = {}
    for name, _ in model.named_parameters():
        module, _, own = name.rpartition(".")
        inside = ""
        if layers and module.startswith(layers + "."):
            inside, module = "*.", module[len(layers) + 1:].partition(".")[2]
        known.setdefault(inside + _flat(f"{module}.{own}" if module else own), (inside, module))
        known.setdefault(inside + _flat(module), (inside, module))
    styles = {}
    for name, style in TENSOR.items():
        inside, plain = ("*.", name[2:]) if name.startswith("*.") else ("", name)
        whole = known.get(re.sub(r"_\d+$", "", name)) if name not in known else None
        if whole is not None:
            raise ValueError(f"{whole[0]}{whole[1]} computes several tensors of the plan, such as {name}, in one product: its "
                             "slices on tensor-parallel ranks would mix them; use one module for each")
        other = names.get(plain)
        found = (inside, other) if other is not None else known.get(name)
        if found is None:
            raise ValueError(f"expected a module for the plan's tensor {name}, found none; names={{{plain!r}: ..}} names it")
        if "".join(found) in styles:
            raise ValueError(f"expected a module for each tensor of the plan, found several for {''.join(found)}")
        styles["".join(found)] = style
    return styles


def _distribute(part, mesh, layers, held, styles):
    """Tensor parallelism, then checkpoints, then FSDP, of the model or of a stage."""
    _slice(part, mesh, layers, held, styles)
    blocks = [part.get_submodule(f"{layers}.{i}") for i in held] if layers else []
    if RECOMPUTE != "none" and blocks:
        _checkpoint(part, layers, held)
        blocks = [part.get_submodule(f"{layers}.{i}") for i in held]
    if "dp_shard" in MESH:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        import torch

        copies = "dp_replicate" in MESH
        options = {"mesh": mesh["dp_replicate", "dp_shard"] if copies else mesh["dp_shard"],
                   "reshard_after_forward": RESHARD_AFTER_FORWARD}
        if PRECISION == "bf16":
            options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for block in blocks:
            fully_shard(block, **options)
        fully_shard(part, **options)
        if mesh.device_type == "cpu":
            for module in (*blocks, part):
                module.set_force_sum_reduction_for_comms(True)  # Gloo cannot average
    return part


def _slice(part, mesh, layers, held, styles):
    if "tp" not in MESH:
        return
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

    outer = Shard(1) if SEQUENCE_PARALLEL else Replicate()
    makers = {
        "colwise": lambda edge: ColwiseParallel(input_layouts=edge),
        "colwise, gathered": lambda edge: ColwiseParallel(input_layouts=edge, output_layouts=Replicate()),
        "rowwise": lambda edge: RowwiseParallel(output_layouts=edge),
        "embedding rows": lambda edge: RowwiseParallel(input_layouts=Replicate()),
        "embedding columns": lambda edge: ColwiseParallel(output_layouts=Replicate()),
    }
    present = {name for name, _ in part.named_modules()}
    plan = {}
    for name, style in styles.items():
        places = [f"{layers}.{i}.{name[2:]}" for i in held] if name.startswith("*.") else [name]
        for place in places:
            if place in present:
                plan[place] = makers[style](outer if name.startswith("*.") else Replicate())
    if SEQUENCE_PARALLEL and layers:
        for i in held:
            for name, module in part.get_submodule(f"{layers}.{i}").named_modules():
                if type(module).__name__ in ("LayerNorm", "RMSNorm"):
                    plan[f"{layers}.{i}.{name}"] = SequenceParallel()
    parallelize_module(part, mesh["tp"], plan)
    if SEQUENCE_PARALLEL and layers:
        _at_ends(part, mesh["tp"], layers, held)


def _at_ends(part, mesh, layers, held):
    """Slices the sequence before the first layer, and joins it after the last."""
    from torch.distributed.tensor import DTensor, Replicate, Shard

    def convert(tensor, old, new):
        return DTensor.from_local(tensor, mesh, [old], run_check=False).redistribute(placements=[new]).to_local()

    def before(module, arguments):
        return (convert(arguments[0], Replicate(), Shard(1)), *arguments[1:])

    def after(module, arguments, result):
        return convert(result, Shard(1), Replicate())

    if 0 in held:
        part.get_submodule(f"{layers}.0").register_forward_pre_hook(before)
    if LAYERS - 1 in held:
        part.get_submodule(f"{layers}.{LAYERS - 1}").register_forward_hook(after)


def _checkpoint(part, layers, held):
    """Recomputes layers in the backward pass: whole, or all but the products of matrices."""
    import functools
    import torch
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    from torch.utils.checkpoint import create_selective_checkpoint_contexts

    options = {}
    if RECOMPUTE == "selective":
        aten = torch.ops.aten
        kept = [aten.mm.default, aten.addmm.default, aten.linear.default]
        options["context_fn"] = functools.partial(create_selective_checkpoint_contexts, kept)
    container = part.get_submodule(layers)
    for i in held:
        container.register_module(str(i), checkpoint_wrapper(container.get_submodule(str(i)), **options))


def _owners():
    """The rank of each stage, from the schedule."""
    import re

    owners = {}
    for rank, row in enumerate(SCHEDULE.strip().splitlines()):
        for stage in re.findall(r"(\d+)[FIBW]\d", row):
            owners[int(stage)] = rank
    return [owners[stage] for stage in range(len(STAGE_LAYERS))]


def _absent():
    from torch import nn

    class Absent(nn.Module):
        """A layer of another stage."""

        def forward(self, x, *rest, **options):
            return x

    return Absent()


def _cut(part, stage, layers):
    """Removes what other stages hold. Returns the numbers of the layers that remain.

    Modules registered before the layers belong to the first stage and those after them to the last,
    unless STAGE_OF names their stage.
    """
    if layers is None:
        raise ValueError("a plan with stages needs a model with repeated layers, found none")
    first = sum(STAGE_LAYERS[:stage])
    held = range(first, first + STAGE_LAYERS[stage])
    container = part.get_submodule(layers)
    for i in range(LAYERS):
        if i not in held:
            container.register_module(str(i), _absent())
    place, path = 0, ""
    for name in layers.split("."):
        parent = part.get_submodule(path)
        for child, module in list(parent.named_children()):
            if child == name:
                place = len(STAGE_LAYERS) - 1
                continue
            tensors = [_flat(f"{path}.{child}.{one}" if path else f"{child}.{one}") for one, _ in module.named_parameters()]
            stages = {STAGE_OF[one] for one in tensors if one in STAGE_OF} or {place}
            if tensors and stage not in stages:
                setattr(parent, child, None)
        place, path = 0, f"{path}.{name}" if path else name
    return held


def _schedule(stages, loss):
    import os
    import tempfile
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

    made = _PipelineScheduleRuntime(stages, MICRO_BATCHES, loss_fn=loss)
    file, path = tempfile.mkstemp(suffix=".csv")
    try:
        with os.fdopen(file, "w") as csv:
            csv.write(SCHEDULE.strip() + "\n")
        made._load_csv(path)
    finally:
        os.remove(path)
    return made
