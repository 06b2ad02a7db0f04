"""A small transformer learns to copy the first half of a sequence into the second, data-parallel over NCCL.

Prints its loss; fails unless it has learned (the loss of guessing is ln 32 = 3.47).
"""

import math
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TOKENS, HALF, WIDTH, STEPS, BATCH = 32, 16, 256, 400, 128
GOOD_LOSS = 0.5


class Copier(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, WIDTH)
        self.places = nn.Embedding(2 * HALF, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.out = nn.Linear(WIDTH, TOKENS)

    def forward(self, x):
        length = x.shape[1]
        mask = torch.triu(torch.full((length, length), float("-inf"), device=x.device), 1)
        return self.out(self.layers(self.tokens(x) + self.places.weight[:length], mask=mask))


def main():
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    model = DistributedDataParallel(Copier().to(device), device_ids=[0])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator(device=device).manual_seed(100 + rank)
    begin = time.monotonic()
    loss = None
    for step in range(STEPS):
        half = torch.randint(TOKENS, (BATCH, HALF), device=device, generator=generator)
        both = torch.cat([half, half], dim=1)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(both[:, :-1])
        loss = nn.functional.cross_entropy(logits[:, HALF - 1:].float().reshape(-1, TOKENS), half.reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if rank == 0 and (step + 1) % 100 == 0:
            print(f"step {step + 1:4} loss {loss.item():.4f} {time.monotonic() - begin:.1f} s", flush=True)
    final = loss.detach().clone()
    dist.all_reduce(final, op=dist.ReduceOp.AVG)
    if rank == 0:
        print(f"final loss {final.item():.4f} (guessing: {math.log(TOKENS):.2f}), trained by {world} processes on "
              f"{torch.cuda.get_device_name(0)}", flush=True)
    dist.destroy_process_group()
    return 0 if final.item() < GOOD_LOSS else 1


if __name__ == "__main__":
    sys.exit(main())
