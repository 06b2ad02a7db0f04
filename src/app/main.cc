// The `muster` binary: one program for every part. The commands of app/app_commands.h work on this
// machine; everything else is a client command.

#include <string_view>

#include "agent/spawner/spawner.h"
#include "app/app_commands.h"
#include "cli/cli.h"
#include "gpu/probe_process.h"

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == muster::agent::kSpawnerCommand) muster::agent::SpawnerProcess::Serve(argc, argv);
  if (command == muster::gpu::kProbeCommand) muster::gpu::ServeExecutedProbe();
  muster::cli::AddCommands(muster::app::AppCommands());
  return muster::cli::RunCli(argc, argv);
}
