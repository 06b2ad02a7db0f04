// muster version: of this program and of the server.

#include "cli/command.h"
#include "cli/console.h"
#include "cli/session.h"
#include "json/write.h"

namespace muster::cli {
namespace {

constexpr const char* kClientVersion = "v0.1.0";

Result<int> Run(const Arguments& arguments, Console& console) {
  json::Value out = json::Obj({{"clientVersion", json::Obj({{"gitVersion", kClientVersion}})}});
  Status server_status;
  if (!arguments.Has("client")) {
    Result<std::unique_ptr<Session>> session = Session::Open(arguments);
    if (session) {
      Result<json::Value> server = (*session)->GetJson("/version");
      if (server) out = out.Set("serverVersion", *server);
      if (!server) server_status = server.error();
    } else {
      server_status = session.error();
    }
  }
  if (arguments.Get("output") == "json") {
    console.Out(json::WritePretty(out) + "\n");
  } else if (arguments.Get("output") == "yaml") {
    console.Out(json::WriteYaml(out));
  } else {
    console.Print("Client Version: {}\n", kClientVersion);
    if (out.Has("serverVersion"))
      console.Print("Server Version: {}\n", out["serverVersion"]["gitVersion"].AsString());
  }
  if (!server_status.ok()) console.Err("No server: " + server_status.message());
  return 0;
}

}  // namespace

Command VersionCommand() {
  Command command;
  command.name = "version";
  command.summary = "versions of muster and of the server";
  command.usage = "[flags]";
  command.flags = {{"output", 'o', "FORMAT", "json or yaml", "", {"json", "yaml"}},
                   {"client", 0, "", "do not ask a server", "", {}}};
  command.examples = {{"muster version", "both"},
                      {"muster version --client -o json", "this program only"}};
  command.run_offline = Run;
  return command;
}

}  // namespace muster::cli
