#include "agent/devices/device_plugins.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "agent/devices/grpc_test_support.h"
#include "agent/devices/proto_wire.h"
#include "agent/runtime/files.h"
#include "agent/runtime/wire.h"

namespace muster::agent {
namespace {

std::string Bytes(int field, const std::string& value) {
  std::string out;
  AppendBytes(out, field, value);
  return out;
}

// The plugin here has one list, which ends at once; one with a stream is in tests/live.
class Plugins : public GrpcTest {
 protected:
  Plugins() {
    char path[] = "/tmp/agent-plugins-XXXXXX";
    dir = mkdtemp(path);
    plugins = std::make_unique<DevicePlugins>(
        loop, dir + "/device-plugins",
        DevicePlugins::Hooks{[this] { seen.push_back(plugins->Devices(128)); },
                             [this](std::string_view reason, const std::string& message) {
                               events.push_back(std::string(reason) + ": " + message);
                             }});
    EXPECT_TRUE(plugins->Start().ok());
  }
  ~Plugins() override {
    served.reset();
    kubelet.reset();
    plugins.reset();
    EXPECT_TRUE(RemoveTree(dir).ok());
  }

  void Serve(const std::string& socket) {
    listener = *ListenUnix(dir + "/device-plugins", socket);
    accepting = loop.WatchReadable(listener.get(), [this] {
      const int fd = accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
      served = std::make_unique<GrpcConnection>(
          loop, UniqueFd(fd), [this](const std::string& method, std::string_view request) {
            asked.push_back(method);
            if (method == kListAndWatchMethod) return Result<std::string>(list);
            if (method == kOptionsMethod) return Result<std::string>("\x08\x01");
            return Result<std::string>(std::string(request));
          });
    });
  }

  // What the node says.
  std::string Register(const std::string& version, const std::string& endpoint,
                       const std::string& resource) {
    std::optional<Status> answer;
    kubelet = std::make_unique<GrpcConnection>(
        loop, *ConnectUnix(dir + "/device-plugins", "kubelet.sock"));
    kubelet->Call(kRegisterMethod, Bytes(1, version) + Bytes(2, endpoint) + Bytes(3, resource),
                  seconds(10), {[](std::string_view) {}, [&](Status status) { answer = status; }});
    RunUntil([&] { return answer.has_value(); });
    return answer->message();
  }

  std::string dir;
  std::vector<std::vector<cluster::Device>> seen;
  std::vector<std::string> events, asked;
  std::unique_ptr<DevicePlugins> plugins;
  std::unique_ptr<GrpcConnection> kubelet, served;
  UniqueFd listener;
  std::unique_ptr<FdWatch> accepting;
  std::string list = Bytes(1, Bytes(1, "b") + Bytes(2, "Unhealthy")) +
                     Bytes(1, Bytes(1, "a") + Bytes(2, "Healthy")) +
                     Bytes(1, Bytes(1, "a") + Bytes(2, "Healthy")) + Bytes(1, Bytes(2, "Healthy"));
};

TEST_F(Plugins, OffersWhatIsListedAndNoMoreOnceThePluginIsGone) {
  Serve("foo.sock");
  EXPECT_EQ(Register("v1beta1", "foo.sock", "example.com/foo"), "");
  RunUntil([&] { return seen.size() >= 2; });
  ASSERT_EQ(seen[0].size(), 2u) << "twice the same id, and none, are left out";
  EXPECT_EQ(seen[0][0].resource + " " + seen[0][0].id, "example.com/foo a");
  EXPECT_EQ(seen[0][0].unhealthy, "");
  EXPECT_EQ(seen[0][1].unhealthy, "its device plugin says that it is unhealthy");
  EXPECT_EQ(seen[1][0].unhealthy, "its device plugin is gone");
  EXPECT_EQ(asked, (std::vector<std::string>{kOptionsMethod, kListAndWatchMethod}));
  EXPECT_TRUE(plugins->WantsPreStart("example.com/foo"));
  EXPECT_EQ(plugins->Devices(1).size(), 1u);

  std::optional<Result<PluginAllocation>> given;
  plugins->Allocate("example.com/foo", {"a"},
                    [&](Result<PluginAllocation> answer) { given = std::move(answer); });
  EXPECT_FALSE(given.has_value()) << "never from inside";
  RunUntil([&] { return given.has_value(); });
  EXPECT_EQ(given->error().reason(), Reason::kServiceUnavailable);
}

TEST_F(Plugins, RegistersAnew) {
  Serve("foo.sock");
  Register("v1beta1", "foo.sock", "example.com/foo");
  RunUntil([&] { return seen.size() >= 2; });
  seen.clear();
  list = Bytes(1, Bytes(1, "c") + Bytes(2, "Healthy"));
  Register("v1beta1", "foo.sock", "example.com/foo");
  RunUntil([&] { return !seen.empty(); });
  ASSERT_EQ(seen[0].size(), 1u);
  EXPECT_EQ(seen[0][0].id + seen[0][0].unhealthy, "c");
}

TEST_F(Plugins, RefusesWithAReason) {
  EXPECT_EQ(Register("v1", "foo.sock", "example.com/foo"),
            "requested API version \"v1\" is not supported by this node. Supported version is "
            "\"v1beta1\"");
  EXPECT_EQ(Register("v1beta1", "foo.sock", "foo"), "the ResourceName \"foo\" is invalid");
  EXPECT_NE(Register("v1beta1", "../foo.sock", "example.com/foo").find("no name of a socket"),
            std::string::npos);
  EXPECT_NE(Register("v1beta1", "foo.sock", "nvidia.com/gpu").find("offers nvidia.com/gpu itself"),
            std::string::npos);
  EXPECT_EQ(events.size(), 4u);
  EXPECT_TRUE(events[0].starts_with("DevicePluginRefused: requested API version"));
  EXPECT_TRUE(plugins->Devices(128).empty());
}

TEST_F(Plugins, OneThatIsNotThereIsGone) {
  EXPECT_EQ(Register("v1beta1", "none.sock", "example.com/foo"), "");
  RunUntil([&] { return !seen.empty(); });
  EXPECT_TRUE(seen[0].empty());
}

TEST_F(Plugins, AStartTakesFormerSocketsAwayAndNothingElse) {
  const std::string folder = dir + "/device-plugins";
  {
    const UniqueFd old = *ListenUnix(folder, "old.sock");
  }
  ASSERT_TRUE(WriteFile(folder + "/kept", "x").ok());
  plugins.reset();
  DevicePlugins again(loop, folder, {[] {}, [](std::string_view, const std::string&) {}});
  ASSERT_TRUE(again.Start().ok());
  EXPECT_EQ(ListDir(folder), (std::vector<std::string>{"kept", "kubelet.sock"}));
}

}  // namespace
}  // namespace muster::agent
