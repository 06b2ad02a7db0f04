// src/agent/shim/container_user.h
//
// Who a container's program is: a user of the container's own /etc/passwd and /etc/group.
//
// Thread:     FindContainerUser any (pure); BecomeContainerUser the child, alone, before exec.
// Source:     runc's libcontainer/user: `user`, `uid`, `user:group`, `uid:gid`; a number need not
//             be in the files.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/status.h"

namespace muster::agent {

struct ContainerUser {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary
  std::string home = "/";
};

// Invalid: "unable to find user nginx: no matching entries in passwd file".
Result<ContainerUser> FindContainerUser(std::string_view user, std::string_view passwd,
                                        std::string_view group);

struct ContainerIdentity {
  std::string user;
  std::vector<int64_t> groups;  // besides those of the container's /etc/group
  bool only_groups = false;     // instead of those
};

// Becomes `identity` and, with a user, adds HOME to `environment` if it is not there. REQUIRES: the
// container's root is the process'.
Status BecomeContainerUser(const ContainerIdentity& identity,
                           std::vector<std::string>& environment);

}  // namespace muster::agent
