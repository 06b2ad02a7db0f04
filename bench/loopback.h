// bench/loopback.h
//
// A TCP connection to a server on this machine, without Nagle's delay. Failure ends the program
// (CHECK).

#pragma once

#include <cstdint>

namespace muster::bench {

// A blocking socket, the caller's to close.
int ConnectToLoopback(uint16_t port);

}  // namespace muster::bench
