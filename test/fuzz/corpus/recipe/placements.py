mesh = init_device_mesh("cuda", (2, 4, 8), mesh_dim_names=("pp", "dp_shard", "tp"))
placements = {
    "norm.weight": (Shard(0), Replicate()),
    "activation[batch, sequence, features]": (Shard(0), Shard(1)),
}
