// src/app/service.h
//
// `muster service`: muster as a service of systemd, root's or a user's own, that starts with the
// machine. Pods outlive it: only the main process is ended when the service is restarted.
//
// Thread: the main thread; blocking.

#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace muster::app {

struct ServiceUnit {
  std::string program;             // absolute path of muster
  std::vector<std::string> words;  // of the command line after "up"
  std::string data_dir;
  bool is_root = true;
};

// The text of the unit file (pure).
std::string UnitText(const ServiceUnit& unit);
// One word of ExecStart as systemd reads it: quoted, with % and $ as themselves (pure).
std::string QuoteForSystemd(const std::string& word);

cli::Command ServiceCommand();

}  // namespace muster::app
