#!/usr/bin/python3
"""Adds an image to an OCI layout: make_image.py LAYOUT TAG CONFIG-JSON FOLDER..., each folder being one layer, without
compression. `CONFIG-JSON` is the "config" object of the image: {"Entrypoint": [...], "User": "1000"}."""

import hashlib
import json
import pathlib
import subprocess
import sys

layout, tag, config, *folders = sys.argv[1:]
layout = pathlib.Path(layout)
blobs = layout / "blobs/sha256"
blobs.mkdir(parents=True, exist_ok=True)
(layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


def add(path):
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    size = path.stat().st_size
    path.rename(blobs / digest)
    return {"digest": f"sha256:{digest}", "size": size}


def add_json(value):
    path = layout / "new"
    path.write_text(json.dumps(value))
    return add(path)


layers = []
for folder in folders:
    subprocess.run(["tar", "-C", folder, "--numeric-owner", "--sort=name", "--mtime=@0", "-cf", layout / "new", "."], check=True)
    layers.append({"mediaType": "application/vnd.oci.image.layer.v1.tar", **add(layout / "new")})
architecture = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout.strip()
image = add_json({"architecture": architecture, "os": "linux", "config": json.loads(config),
                  "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]}})
manifest = add_json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": layers,
                     "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **image}})
index_file = layout / "index.json"
index = json.loads(index_file.read_text()) if index_file.exists() else {"schemaVersion": 2, "manifests": []}
index["manifests"].append({"mediaType": "application/vnd.oci.image.manifest.v1+json", **manifest,
                           "annotations": {"org.opencontainers.image.ref.name": tag}})
index_file.write_text(json.dumps(index))
print(manifest["digest"])
