

def config(base=None):
    """torchtitan's Trainer.Config with this plan.

    base    a function that returns the configuration of the model; otherwise the one that MODEL names
    """
    import dataclasses
    from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC

    made = (base or _named(MODEL))()
    _check_layers(made)
    changes = dict(PARALLELISM)
    if PARALLELISM["pipeline_parallel_degree"] > 1:
        changes.update(module_fqns_per_model_part=STAGES, pipeline_parallel_schedule_csv=_write_schedule())
    recompute = {"none": lambda: None, "selective": SelectiveAC.Config, "full": FullAC.Config}[RECOMPUTE]
    return dataclasses.replace(made, training=dataclasses.replace(made.training, **TRAINING),
                               parallelism=dataclasses.replace(made.parallelism, **changes),
                               activation_checkpoint=recompute())


def _named(name):
    import importlib

    module, colon, function = name.partition(":")
    if not colon:
        raise ValueError(f"expected MODEL = 'module:function', found {name!r}; the function returns the model's Trainer.Config")
    return getattr(importlib.import_module(module), function)


def _check_layers(made):
    found = len(getattr(made.model_spec.model, "layers", ())) if made.model_spec else LAYERS
    if LAYERS and found != LAYERS:
        raise ValueError(f"expected a model of {LAYERS} layers, found {found}")


def _write_schedule():
    """Writes the schedule beside this file, and returns its path. Every process writes the same text."""
    import os

    path = os.path.splitext(os.path.abspath(__file__))[0] + ".csv"
    text = SCHEDULE.lstrip()
    try:
        with open(path) as file:
            if file.read() == text:
                return path
    except OSError:
        pass
    own = f"{path}.{os.uname().nodename}.{os.getpid()}"
    with open(own, "w") as file:
        file.write(text)
    os.replace(own, path)
    return path
