"""Trains a small convolutional network on scikit-learn's handwritten digits with PyTorch DDP over gloo.

Every rank reads MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE from its environment, as the PyTorchJob controller
sets them; alone (no RANK) it trains on one process. The test accuracy must be above 95 %, or the job fails.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

EPOCHS = int(os.environ.get("EPOCHS", "30"))
BATCH = 16


def log(message):
    print(message, flush=True)


def load():
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
    labels = torch.tensor(digits.target, dtype=torch.long)
    return [torch.as_tensor(part) for part in train_test_split(
        images, labels, test_size=0.25, random_state=7, stratify=labels)]


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 2 * 2, 64), nn.ReLU(), nn.Linear(64, 10))


def main():
    torch.manual_seed(7)
    torch.set_num_threads(1)
    if "RANK" not in os.environ:
        os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="23456")
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    log(f"rank {rank} of {world} ready on {os.uname().nodename}, gpus: "
        f"{os.environ.get('NVIDIA_VISIBLE_DEVICES', 'none')}")

    x_train, x_test, y_train, y_test = load()
    train = TensorDataset(x_train, y_train)
    sampler = DistributedSampler(train, num_replicas=world, rank=rank, shuffle=True, seed=7)
    loader = DataLoader(train, batch_size=BATCH, sampler=sampler)
    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss_of = nn.CrossEntropyLoss()

    start = time.monotonic()
    accuracy = 0.0
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        model.train()
        total = 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
        if rank == 0:
            log(f"epoch {epoch + 1:2}/{EPOCHS}  loss {total / len(loader):.4f}  test accuracy {accuracy:.4f}  "
                f"{time.monotonic() - start:.1f} s")
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        log(f"final test accuracy {accuracy:.4f} on {len(y_test)} images, trained by {world} processes")
    return 0 if accuracy > 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
