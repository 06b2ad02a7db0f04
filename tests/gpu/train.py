"""A small transformer learns to copy the first half of a sequence into the second, data-parallel over NCCL.

Prints its loss; fails unless it has learned (the loss of guessing is ln 32 = 3.47).
With a folder CHECKPOINT it begins with what it left there, which it does every 50 steps, and adds "STEP LOSS" to its file
"losses" every 10 steps, "begin STEP" when it begins. STEPS: how many in all; RATE: the learning rate.
"""

import math
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TOKENS, HALF, WIDTH, BATCH = 32, 16, 256, 128
STEPS = int(os.environ.get("STEPS", 400))
RATE = float(os.environ.get("RATE", 1e-3))
CHECKPOINT = os.environ.get("CHECKPOINT")
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


class Checkpoints:
    """What rank 0 keeps of the training, and all ranks begin with."""

    def __init__(self, rank, device, model, optimizer):
        self.rank, self.model, self.optimizer, self.first_step = rank, model, optimizer, 0
        self.file = os.path.join(CHECKPOINT, "last.pt")
        if os.path.exists(self.file):
            kept = torch.load(self.file, map_location=device)
            model.load_state_dict(kept["model"])
            optimizer.load_state_dict(kept["optimizer"])
            self.first_step = kept["step"]
        self.note(f"begin {self.first_step}")

    def note(self, line):
        if self.rank == 0:
            with open(os.path.join(CHECKPOINT, "losses"), "a", encoding="utf-8") as file:
                file.write(line + "\n")

    def after(self, step, loss):
        if self.rank != 0:
            return
        if step % 10 == 0:
            self.note(f"{step} {loss.item():.4g}")
        if step % 50 == 0:
            torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": step}, self.file + ".new")
            os.replace(self.file + ".new", self.file)


def main():
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))  # the first process of a container is deaf to it otherwise
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    model = DistributedDataParallel(Copier().to(device), device_ids=[0])
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    generator = torch.Generator(device=device).manual_seed(100 + rank)
    begin = time.monotonic()
    loss = None
    checkpoints = Checkpoints(rank, device, model, optimizer) if CHECKPOINT else None
    for step in range(checkpoints.first_step if checkpoints else 0, STEPS):
        half = torch.randint(TOKENS, (BATCH, HALF), device=device, generator=generator)
        both = torch.cat([half, half], dim=1)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(both[:, :-1])
        loss = nn.functional.cross_entropy(logits[:, HALF - 1:].float().reshape(-1, TOKENS), half.reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if checkpoints:
            checkpoints.after(step + 1, loss)
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
