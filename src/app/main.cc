// The `muster` binary: one program for every part. `up` and `down` run or stop a cluster on this
// machine; `backup`, `restore` and `check-store` work on its files; everything else is a client
// command.

#include <string_view>

#include "agent/spawner/spawner.h"
#include "app/doctor/doctor.h"
#include "app/service.h"
#include "app/store_commands.h"
#include "app/up.h"
#include "cli/cli.h"
#include "gpu/probe_process.h"

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == muster::agent::kSpawnerCommand) muster::agent::SpawnerProcess::Serve(argc, argv);
  if (command == muster::gpu::kProbeCommand) muster::gpu::ServeExecutedProbe();
  if (command == "up") return muster::app::RunUp(argc - 1, argv + 1);
  if (command == "down") return muster::app::RunDown(argc - 1, argv + 1);
  muster::cli::AddCommands(muster::app::StoreCommands());
  muster::cli::AddCommands({muster::app::DoctorCommand(), muster::app::ServiceCommand()});
  return muster::cli::RunCli(argc, argv);
}
