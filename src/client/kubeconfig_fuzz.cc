// A kubeconfig, and a second one on the lines after "---": whatever is read can be connected with
// or is refused, and merging the same one twice changes nothing more.

#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "client/kubeconfig.h"
#include "json/parse.h"
#include "json/write.h"

FUZZ_TARGET(kubeconfig, input) {
  using muster::client::Kubeconfig;
  using muster::client::MergeKubeconfig;
  // Files that a config names are read: none of those that block or never end.
  for (const char* folder : {"/dev", "/proc", "/sys"})
    if (input.find(folder) != std::string_view::npos) return;
  const auto config = Kubeconfig::Parse(input, "/nonexistent");
  if (config) {
    (void)config->Connect();
    for (const std::string& context : config->contexts()) {
      const auto connection = config->Connect(context);
      if (connection) CHECK(connection->context == context && !connection->ns.empty());
    }
  }
  const auto documents = muster::json::ParseYaml(input);
  if (!documents || documents->size() != 2) return;
  const muster::json::Value merged = MergeKubeconfig((*documents)[0], (*documents)[1]);
  CHECK(MergeKubeconfig(merged, (*documents)[1]) == merged);
}
