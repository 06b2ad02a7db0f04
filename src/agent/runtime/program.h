// src/agent/runtime/program.h
//
// Runs another program to its end, for the short tools of the machine (nft, iptables).
//
// Thread: any that may block. Standard input and output are memory files: no pipe can fill up,
//         whatever the program does first. Its environment is LC_ALL=C alone.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::agent {

struct ProgramResult {
  int exit_code = 0;   // 128: it was killed
  std::string output;  // standard output and error together, the first bytes
};

Result<ProgramResult> RunProgram(const std::string& path, const std::vector<std::string>& arguments,
                                 std::string_view input, size_t max_output_bytes);

}  // namespace muster::agent
