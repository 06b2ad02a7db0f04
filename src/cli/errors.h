// src/cli/errors.h
//
// How a command says what went wrong: as kubectl words it where kubectl has words, and with what to
// do about it.
//
// Rule:   our own objections have the reason Invalid and no details; everything else comes from a
//         server.
// Thread: any (pure functions).

#pragma once

#include <string>

#include "base/status.h"
#include "base/time.h"

namespace muster::cli {

// Without a line feed. An answer of the server reads "Error from server (NotFound): ...".
std::string DescribeError(const Status& status);
// Whether a client certificate (PEM) is expired or not yet valid at `now`, and what to do; "" if it
// is neither, or no certificate at all.
std::string DescribeCertificate(const std::string& certificate_pem, Time now);

}  // namespace muster::cli
