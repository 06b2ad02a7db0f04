// src/agent/user_node/outside_network.h
//
// The way from the node of an ordinary user to the outside: pasta or slirp4netns, where one is
// installed, joins the node's network with the machine's by ordinary sockets. Pods do not reach
// what listens on the machine's loopback.
//
// Life cycle: a keeper process starts the program again when it ends; it is the first one of a PID
//             namespace, so the program ends with it. It holds the ProcessLock DIR/run/outside.lock
//             and outlives the control plane.
// Thread:     a process with one thread.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace muster::agent {

struct OutsideProgram {
  std::string path;
  bool is_pasta = false;
};

// pasta goes first: it is several times faster. `dirs` are where programs are.
std::optional<OutsideProgram> FindOutsideProgram(const std::vector<std::string>& dirs);
std::optional<OutsideProgram> FindOutsideProgram();

// `network` is the path of the node's network namespace.
std::vector<std::string> OutsideArguments(const OutsideProgram& program,
                                          const std::string& network);

// Nothing changes if there is a keeper already. REQUIRES: in the node's user namespace.
Status KeepOutsideNetwork(const std::string& data_dir, const OutsideProgram& program, int network);
// Ok if there is none.
Status EndOutsideNetwork(const std::string& data_dir);

}  // namespace muster::agent
