// src/agent/volumes/nfs_support.h
//
// What a machine has of what NFS volumes need: the kernel's client and the program that mount(8)
// calls for it.
//
// Thread: any; ProbeNfs() reads a few small files.

#pragma once

#include <string>

namespace muster::agent {

struct NfsSupport {
  bool kernel = false;  // built in, loaded, or a module that can be
  bool helper = false;  // mount.nfs
  std::string release;  // of the kernel
};

NfsSupport ProbeNfs();
// What is missing and what to install, as "mount.nfs is missing: install ..."; "": nothing.
std::string MissingForNfs(const NfsSupport& support);

}  // namespace muster::agent
