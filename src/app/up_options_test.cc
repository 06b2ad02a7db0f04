#include "app/up_options.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/arguments.h"

namespace muster::app {
namespace {

Result<UpOptions> Up(const std::vector<const char*>& arguments) {
  ASSIGN_OR_RETURN(const cli::Arguments parsed,
                   cli::ParseArguments(DeclareUp(), {arguments.begin(), arguments.end()}));
  return UpOptionsOf(parsed);
}

TEST(UpOptions, ReadsEveryFlag) {
  const Result<UpOptions> options =
      Up({"--data-dir", "/tmp/x/", "--listen", "[::1]:7443", "--detach", "--simulate-gpus",
          "4:H100", "--simulate-nodes", "3", "--node-name", "n1",
          "--horizontal-pod-autoscaler-sync-period", "2s"});
  ASSERT_TRUE(options.has_value()) << options.error().ToString();
  EXPECT_EQ(options->data_dir, "/tmp/x");
  EXPECT_EQ(options->listen_host, "::1");
  EXPECT_EQ(options->listen_port, 7443);
  EXPECT_TRUE(options->detach);
  EXPECT_EQ(options->simulate_gpus, 4);
  EXPECT_EQ(options->simulated_gpu_model, "H100");
  EXPECT_EQ(options->simulate_nodes, 3);
  EXPECT_EQ(options->horizontal_pod_autoscaler_sync_period, seconds(2));
  EXPECT_EQ(options->node_name, "n1");
}

TEST(UpOptions, RefusesBadValuesAndSaysWhatIsExpected) {
  const std::vector<std::pair<std::vector<const char*>, const char*>> cases = {
      {{"--listen", "6443"}, "expected HOST:PORT"},
      {{"--listen", "a:70000"}, "expected HOST:PORT"},
      {{"--listen", "localhost:6443"}, "--listen localhost:6443: HOST must be an IP address"},
      {{"--simulate-gpus", "-1"}, "expected N or N:MODEL"},
      {{"--simulate-gpus", "65"}, "expected N or N:MODEL"},
      {{"--simulate-gpus", "4:a b"}, "the model must be"},
      {{"--simulate-nodes", "1000000"}, "--simulate-nodes"},
      {{"--data-dir", "/"}, "must not be /"},
      {{"--data-dir", ""}, "expected a directory"},
      {{"--node-name", "A_B"}, "--node-name \"A_B\": a lowercase RFC 1123 subdomain"},
      {{"--node-name", ""}, "--node-name \"\""},
      {{"--no-such-flag"}, "--no-such-flag"},
      {{"--simulate-nodes", "-1"}, "expected 0 to"},
      {{"--kubelet-port", "65536"}, "expected 0 to 65535"},
      {{"--gpu-steady", "x"}, "expected a whole number"},
      {{"--gpu-idle", "-1"}, "expected 0 to"},
      {{"--horizontal-pod-autoscaler-sync-period", "999ms"}, "expected 1s or more"},
      {{"--horizontal-pod-autoscaler-sync-period", "-1s"}, "expected a duration"},
      {{"--horizontal-pod-autoscaler-sync-period", "200h"}, "at most a week"},
      {{"--images", "push"}, "expected one of pull, machine"},
      {{"bogus"}, "bogus"},
  };
  for (const auto& [arguments, text] : cases) {
    const Result<UpOptions> options = Up(arguments);
    ASSERT_FALSE(options.has_value()) << text;
    EXPECT_NE(options.error().message().find(text), std::string::npos) << options.error().message();
    // Who prints it says first which command it was.
    EXPECT_FALSE(options.error().message().starts_with("muster")) << options.error().message();
  }
}

TEST(UpOptions, AMachinesNameBecomesANodesName) {
  const std::pair<const char*, const char*> cases[] = {
      {"gpu-1", "gpu-1"}, {"My_Box", "my-box"}, {"a..b", "a.b"}, {"-x", "x"},
      {"host.", "host"},  {"(none)", "none"},   {"", "node"},    {"_._", "node"}};
  for (const auto& [host, node] : cases) EXPECT_EQ(NodeNameOf(host), node) << host;
}

}  // namespace
}  // namespace muster::app
