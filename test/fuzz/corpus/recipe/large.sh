torchrun --nproc_per_node 8 --nnodes=8 pretrain_gpt.py --tensor-model-parallel-size 8 --sequence-parallel
--pipeline-model-parallel-size 4 --num-layers 80 --num-layers-per-virtual-pipeline-stage 5 --micro-batch-size 1
--global-batch-size 512 --use-distributed-optimizer --overlap-grad-reduce --bf16 --recompute-granularity full
--recompute-method uniform --data-path "my data" --ddp-bucket-size 40000000
