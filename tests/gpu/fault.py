"""Writes to GPU memory that is not mapped: the driver reports XID 31 for it."""

import ctypes

import torch

PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry k() {
  .reg .u64 %a;
  .reg .u32 %b;
  mov.u64 %a, 0x123456780000;
  mov.u32 %b, 1;
  st.global.u32 [%a], %b;
  ret;
}
"""

torch.zeros(1, device="cuda")  # makes a context
cuda = ctypes.CDLL("libcuda.so.1")
module, function = ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuModuleLoadData(ctypes.byref(module), PTX) == 0
assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"k") == 0
assert cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 0
print("result of the kernel:", cuda.cuCtxSynchronize(), flush=True)  # 700: illegal address
