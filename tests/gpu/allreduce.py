"""Bus bandwidth of NCCL's all-reduce, as nccl-tests counts it: 2 (n-1)/n x bytes / time, for n processes with a GPU each.

Reads RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT (and LOCAL_RANK, under torchrun). Rank 0 prints "busbw GB/s: X".
"""

import os
import time

import torch
import torch.distributed as dist

BYTES = 256 * 1024 * 1024
SECONDS = 2.0  # long enough for the clocks of the GPUs to settle
MAX_TURNS = 10000


def main():
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    rank, world = dist.get_rank(), dist.get_world_size()
    data = torch.ones(BYTES // 4, dtype=torch.float32, device=device)

    def run(turns):
        torch.cuda.synchronize()
        begin = time.monotonic()
        for _ in range(turns):
            dist.all_reduce(data, op=dist.ReduceOp.AVG)
        torch.cuda.synchronize()
        return (time.monotonic() - begin) / turns

    run(200)  # warm up
    first = torch.tensor([run(20)], device=device)
    dist.broadcast(first, 0)  # as many turns in every process
    turns = max(3, min(MAX_TURNS, int(SECONDS / first.item())))
    took = run(turns)
    if not torch.all(data == 1.0):
        raise SystemExit("the sum is wrong")
    if rank == 0:
        print(f"busbw GB/s: {2 * (world - 1) / world * BYTES / took / 1e9:.2f}", flush=True)
    dist.destroy_process_group()


main()
