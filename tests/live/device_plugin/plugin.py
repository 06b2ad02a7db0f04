#!/usr/bin/python3
"""A device plugin as any other: serves v1beta1.DevicePlugin on a socket of its own beside kubelet.sock, registers there, and
again whenever kubelet.sock is made anew. What it offers and how it answers are files in a folder.

  plugin.py RESOURCE STATE [DIRECTORY]

STATE/devices    a line for each device: ID Healthy|Unhealthy
STATE/allocate   "cdi": answers with CDI devices; "fail": with an error; else, or absent: variables, a mount, a device node
STATE/calls      what it was asked, a line for each call
"""
import concurrent.futures
import os
import sys
import time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

resource, state = sys.argv[1:3]
directory = sys.argv[3] if len(sys.argv) > 3 else "/var/lib/kubelet/device-plugins"
KUBELET = directory + "/kubelet.sock"
ENDPOINT = resource.replace("/", "-") + ".sock"


def messages():
    """The contract's messages, as protobuf's own library makes them."""
    T = descriptor_pb2.FieldDescriptorProto
    kinds = {"string": T.TYPE_STRING, "bool": T.TYPE_BOOL, "int32": T.TYPE_INT32, "int64": T.TYPE_INT64}
    file = descriptor_pb2.FileDescriptorProto(name="v1beta1.proto", package="v1beta1", syntax="proto3")

    def message(name, *fields):
        made = file.message_type.add(name=name)
        for number, (field, kind, repeated) in enumerate(fields, 1):
            added = made.field.add(name=field, number=number, label=T.LABEL_REPEATED if repeated else T.LABEL_OPTIONAL)
            if kind in kinds:
                added.type = kinds[kind]
            elif kind == "map":
                entry = made.nested_type.add(name=field.capitalize() + "Entry")
                entry.options.map_entry = True
                for n, part in enumerate(("key", "value"), 1):
                    entry.field.add(name=part, number=n, type=T.TYPE_STRING, label=T.LABEL_OPTIONAL)
                added.type, added.type_name, added.label = T.TYPE_MESSAGE, f".v1beta1.{name}.{entry.name}", T.LABEL_REPEATED
            else:
                added.type, added.type_name = T.TYPE_MESSAGE, ".v1beta1." + kind

    message("Empty")
    message("DevicePluginOptions", ("pre_start_required", "bool", False), ("get_preferred_allocation_available", "bool", False))
    message("RegisterRequest", ("version", "string", False), ("endpoint", "string", False), ("resource_name", "string", False),
            ("options", "DevicePluginOptions", False))
    message("NUMANode", ("ID", "int64", False))
    message("TopologyInfo", ("nodes", "NUMANode", True))
    message("Device", ("ID", "string", False), ("health", "string", False), ("topology", "TopologyInfo", False))
    message("ListAndWatchResponse", ("devices", "Device", True))
    message("PreStartContainerRequest", ("devices_ids", "string", True))
    message("ContainerAllocateRequest", ("devices_ids", "string", True))
    message("AllocateRequest", ("container_requests", "ContainerAllocateRequest", True))
    message("Mount", ("container_path", "string", False), ("host_path", "string", False), ("read_only", "bool", False))
    message("DeviceSpec", ("container_path", "string", False), ("host_path", "string", False), ("permissions", "string", False))
    message("CDIDevice", ("name", "string", False))
    message("ContainerAllocateResponse", ("envs", "map", True), ("mounts", "Mount", True), ("devices", "DeviceSpec", True),
            ("annotations", "map", True), ("cdi_devices", "CDIDevice", True))
    message("AllocateResponse", ("container_responses", "ContainerAllocateResponse", True))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return {m.name: factory.GetPrototype(pool.FindMessageTypeByName("v1beta1." + m.name)) for m in file.message_type}


M = messages()


def read(name):
    try:
        with open(f"{state}/{name}") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def note(*words):
    with open(f"{state}/calls", "a") as file:
        print(*words, file=file)


def devices():
    out = M["ListAndWatchResponse"]()
    for line in read("devices").splitlines():
        name, health = line.split()
        device = out.devices.add(ID=name, health=health)
        device.topology.nodes.add(ID=1)
    return out


def options(request, context):
    return M["DevicePluginOptions"](pre_start_required=True)


def list_and_watch(request, context):
    told = None
    while context.is_active():
        now = devices()
        if now != told:
            yield now
            told = now
        time.sleep(0.1)


def allocate(request, context):
    out = M["AllocateResponse"]()
    for container in request.container_requests:
        ids = list(container.devices_ids)
        note("allocate", *ids)
        how = read("allocate").strip()
        if how == "fail":
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "the plugin says no")
        answer = out.container_responses.add()
        if how == "cdi":
            answer.cdi_devices.add(name="example.com/foo=" + ids[0])
            continue
        answer.envs["FOO_DEVICES"] = ",".join(ids)
        answer.envs["FOO_MODE"] = "plugin"
        answer.mounts.add(container_path="/opt/foo", host_path=state, read_only=True)
        for name in ids:
            answer.devices.add(container_path="/dev/foo/" + name, host_path="/dev/zero", permissions="mrw")
    return out


def pre_start(request, context):
    note("pre-start", *request.devices_ids)
    return M["Empty"]()


def method(function, request, response, stream=False):
    kind = grpc.unary_stream_rpc_method_handler if stream else grpc.unary_unary_rpc_method_handler
    return kind(function, M[request].FromString, M[response].SerializeToString)


HANDLER = grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", {
    "GetDevicePluginOptions": method(options, "Empty", "DevicePluginOptions"),
    "ListAndWatch": method(list_and_watch, "Empty", "ListAndWatchResponse", stream=True),
    "Allocate": method(allocate, "AllocateRequest", "AllocateResponse"),
    "PreStartContainer": method(pre_start, "PreStartContainerRequest", "Empty"),
})


def made(path):
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None


def register():
    with grpc.insecure_channel("unix://" + KUBELET) as channel:
        call = channel.unary_unary("/v1beta1.Registration/Register", M["RegisterRequest"].SerializeToString, M["Empty"].FromString)
        call(M["RegisterRequest"](version="v1beta1", endpoint=ENDPOINT, resource_name=resource), timeout=10)


registered_at = None
running = None
while True:
    kubelet = made(KUBELET)
    if kubelet is not None and (kubelet != registered_at or made(f"{directory}/{ENDPOINT}") is None):
        if running is not None:
            running.stop(0).wait()
        if os.path.exists(f"{directory}/{ENDPOINT}"):
            os.unlink(f"{directory}/{ENDPOINT}")
        running = grpc.server(concurrent.futures.ThreadPoolExecutor(8), handlers=[HANDLER])
        running.add_insecure_port(f"unix://{directory}/{ENDPOINT}")
        running.start()
        try:
            register()
        except grpc.RpcError as error:
            print("refused:", error.code().name, error.details(), flush=True)
            if error.code() != grpc.StatusCode.UNAVAILABLE:
                sys.exit(3)
            continue
        registered_at = kubelet
        note("registered")
        print("registered", resource, flush=True)
    time.sleep(0.1)
