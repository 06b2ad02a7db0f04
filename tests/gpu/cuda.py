"""CUDA's driver library alone, without the toolkit or torch: has it compile a kernel for this GPU, runs that, and prints
what it found. For a container whose image has neither."""
import ctypes
import sys

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry add_one(.param .u64 numbers) {
  .reg .u32 %r<5>;
  .reg .u64 %a<3>;
  ld.param.u64 %a1, [numbers];
  cvta.to.global.u64 %a1, %a1;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  mul.wide.u32 %a2, %r1, 4;
  add.u64 %a1, %a1, %a2;
  ld.global.u32 %r4, [%a1];
  add.u32 %r4, %r4, 1;
  st.global.u32 [%a1], %r4;
  ret;
}
"""
COUNT, BLOCK = 4096, 256
cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    error = getattr(cuda, name)(*arguments)
    if error != 0:
        sys.exit(f"{name}: CUDA error {error}")


gpus, device, label = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(100)
context, module, kernel, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
numbers = (ctypes.c_uint32 * COUNT)(*range(COUNT))
call("cuInit", 0)
call("cuDeviceGetCount", ctypes.byref(gpus))
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDeviceGetName", label, len(label), device)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), PTX)
call("cuModuleGetFunction", ctypes.byref(kernel), module, b"add_one")
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(ctypes.sizeof(numbers)))
call("cuMemcpyHtoD_v2", memory, numbers, ctypes.c_size_t(ctypes.sizeof(numbers)))
parameters = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(memory), ctypes.c_void_p))
call("cuLaunchKernel", kernel, COUNT // BLOCK, 1, 1, BLOCK, 1, 1, 0, None, parameters, None)
call("cuCtxSynchronize")
call("cuMemcpyDtoH_v2", numbers, memory, ctypes.c_size_t(ctypes.sizeof(numbers)))
right = list(numbers) == list(range(1, COUNT + 1))
print(f"cuda: {gpus.value} GPU, {label.value.decode()}, numbers {'right' if right else 'WRONG'}")
with open("/proc/self/maps") as maps:
    print("cuda: loaded", sorted({line.split()[-1] for line in maps if "libcuda" in line or "nvidia" in line}))
sys.exit(0 if right else 1)
