#include "training/reference_program.h"

namespace muster::training {

const char kReferenceProgram[] = R"PY("""Trains a small model of MODEL_TYPE on made-up data.

Bring your own program by spec.template of the DistributedTraining; it finds the same environment:
MODEL_TYPE, DATA_DIR, DATASET_SIZE_BYTES, CHECKPOINT_DIR, TRAINING_DURATION_SECONDS, and torch's
RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
"""
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = int(os.environ.get("TRAINING_STEPS", "60"))
SECONDS = float(os.environ.get("TRAINING_DURATION_SECONDS") or "inf")
CHECKPOINT = os.path.join(os.environ.get("CHECKPOINT_DIR", "/checkpoints"), "latest.pt")
CHECKPOINT_EVERY = 10
WORDS, LENGTH, WIDTH, BATCH = 16, 12, 32, 16


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.block = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.out = nn.Linear(WIDTH, WORDS)

    def forward(self, words):
        at = torch.arange(LENGTH, device=words.device)
        ahead = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool, device=words.device), 1)
        return self.out(self.block(self.words(words) + self.places(at), src_mask=ahead))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.Sequential(
            nn.ConstantPad1d((2, 0), 0.0), nn.Conv1d(WIDTH, WIDTH, 3), nn.ReLU())
        self.out = nn.Linear(WIDTH, WORDS)

    def forward(self, words):
        return self.out(self.layers(self.words(words).transpose(1, 2)).transpose(1, 2))


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(),
                         nn.Linear(2 * WIDTH, WORDS))


def made_up(generator, device):
    """Sequences that count up in steps of 3 from anywhere, and what follows each word."""
    first = torch.randint(WORDS, (BATCH, 1), generator=generator)
    words = (first + 3 * torch.arange(LENGTH + 1)) % WORDS
    return words[:, :-1].to(device), words[:, 1:].to(device)


def main():
    begin = time.monotonic()
    torch.set_num_threads(1)
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cpu")
    if on_gpu:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    torch.manual_seed(1)
    kind = os.environ.get("MODEL_TYPE", "")
    model = {"transformer": Transformer, "cnn": Cnn}.get(kind, Mlp)().to(device)
    state = torch.zeros(2, dtype=torch.int64, device=device)  # the step, and whether it is the last
    if rank == 0 and os.path.exists(CHECKPOINT):
        kept = torch.load(CHECKPOINT, map_location=device)
        model.load_state_dict(kept["model"])
        state[0] = kept["step"]
    dist.broadcast(state, 0)
    step = state[0].item()
    if rank == 0:
        print("reference %s on %s, %d workers: %s" % (
            type(model).__name__, device.type, world,
            "goes on from step %d" % step if step else "begins"), flush=True)
    model = DistributedDataParallel(model)  # gives worker 0's weights to all
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    generator = torch.Generator().manual_seed(1000 * step + rank)
    while step < STEPS and state[1] == 0:
        words, wanted = made_up(generator, device)
        loss = nn.functional.cross_entropy(model(words).reshape(-1, WORDS), wanted.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        # The clocks of two machines differ: when to stop is worker 0's to say.
        state[1] = int(step == STEPS or time.monotonic() - begin > SECONDS)
        dist.broadcast(state, 0)
        if rank == 0 and (step % CHECKPOINT_EVERY == 0 or state[1]):
            torch.save({"model": model.module.state_dict(), "step": step}, CHECKPOINT + ".new")
            os.replace(CHECKPOINT + ".new", CHECKPOINT)
            print("step %d: loss %.3f, saved" % (step, loss.item()), flush=True)
    dist.barrier()
    if rank == 0:
        print("done after step %d" % step, flush=True)


main()
)PY";

}  // namespace muster::training
