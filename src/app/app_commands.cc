#include "app/app_commands.h"

#include "app/doctor/doctor.h"
#include "app/scheduler_process.h"
#include "app/service.h"
#include "app/simulate_command.h"
#include "app/store_commands.h"
#include "app/up.h"

namespace muster::app {

std::vector<cli::Command> AppCommands() {
  std::vector<cli::Command> commands = {UpCommand(),      DownCommand(),      DoctorCommand(),
                                        ServiceCommand(), SchedulerCommand(), RbacCommand(),
                                        SimulateCommand()};
  for (cli::Command& command : StoreCommands()) commands.push_back(std::move(command));
  return commands;
}

}  // namespace muster::app
