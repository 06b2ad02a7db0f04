// src/cli/errors.h
//
// How a command says what went wrong: as kubectl words it where kubectl has words, and with what to
// do about it.
//
// Rule:   our own objections have the reason Invalid and no details; everything else comes from a
//         server.
// Thread: any (pure function).

#pragma once

#include <string>

#include "base/status.h"

namespace muster::cli {

// Without a line feed. An answer of the server reads "Error from server (NotFound): ...".
std::string DescribeError(const Status& status);

}  // namespace muster::cli
