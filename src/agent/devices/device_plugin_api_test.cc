#include "agent/devices/device_plugin_api.h"

#include <gtest/gtest.h>

#include "agent/devices/proto_wire.h"

namespace muster::agent {
namespace {

std::string Bytes(int field, const std::string& value) {
  std::string out;
  AppendBytes(out, field, value);
  return out;
}

TEST(ProtoWire, WritesAsProtobufDoes) {
  std::string out;
  AppendBytes(out, 1, "ab");
  AppendNumber(out, 2, 300);
  EXPECT_EQ(out, std::string("\x0a\x02"
                             "ab\x10\xac\x02",
                             7));
}

TEST(ProtoWire, PassesOverWhatItDoesNotKnow) {
  std::string message;
  AppendNumber(message, 7, 1);
  message += std::string("\x41", 1) + std::string(8, 'x');  // field 8, 64 bits
  message += std::string("\x4d", 1) + std::string(4, 'x');  // field 9, 32 bits
  AppendBytes(message, 1, "v1beta1");
  const auto read = ReadRegisterRequest(message);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->version, "v1beta1");
}

TEST(ProtoWire, RefusesWhatIsNoMessage) {
  for (const std::string& bad :
       {std::string("\x0a\x05"
                    "ab"),
        std::string("\x0a"), std::string("\x08"), std::string("\x0b"), std::string(1, '\0'),
        std::string("\x41xx"), std::string(11, '\xff')}) {
    EXPECT_FALSE(ReadRegisterRequest(bad).has_value()) << bad;
  }
}

TEST(DevicePluginApi, Registration) {
  const auto read = ReadRegisterRequest(Bytes(1, "v1beta1") + Bytes(2, "foo.sock") +
                                        Bytes(3, "example.com/foo") + Bytes(4, "\x08\x01"));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->endpoint, "foo.sock");
  EXPECT_EQ(read->resource, "example.com/foo");
  const auto options = ReadPluginOptions("\x08\x01\x10\x01");
  EXPECT_TRUE(options->pre_start_required && options->preferred_allocation);
  EXPECT_FALSE(ReadPluginOptions("")->pre_start_required);
}

TEST(DevicePluginApi, DevicesWithHealthAndPlace) {
  const std::string node_2 = Bytes(1, "\x08\x02"), node_0 = Bytes(1, "");
  const auto list =
      ReadDeviceList(Bytes(1, Bytes(1, "a") + Bytes(2, "Healthy") + Bytes(3, node_2 + node_0)) +
                     Bytes(1, Bytes(1, "b") + Bytes(2, "Unhealthy") + Bytes(3, node_0)) +
                     Bytes(1, Bytes(1, "c") + Bytes(2, "healthy")));
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(*list, (std::vector<PluginDevice>{{"a", true, 2}, {"b", false, 0}, {"c", false, -1}}));
  EXPECT_TRUE(ReadDeviceList("")->empty());
}

TEST(DevicePluginApi, Allocation) {
  EXPECT_EQ(WriteAllocateRequest({"a", "bc"}), Bytes(1, Bytes(1, "a") + Bytes(1, "bc")));
  EXPECT_EQ(WritePreStartRequest({"a"}), Bytes(1, "a"));
  const std::string container =
      Bytes(1, Bytes(1, "NAME") + Bytes(2, "value")) + Bytes(1, Bytes(1, "EMPTY")) +
      Bytes(2, Bytes(1, "/in") + Bytes(2, "/host") + "\x18\x01") +
      Bytes(3, Bytes(1, "/dev/in") + Bytes(2, "/dev/host") + Bytes(3, "rw")) +
      Bytes(4, Bytes(1, "key") + Bytes(2, "note")) + Bytes(5, Bytes(1, "v.com/c=n"));
  const auto read = ReadAllocateResponse(Bytes(1, container));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->environment,
            (std::map<std::string, std::string>{{"EMPTY", ""}, {"NAME", "value"}}));
  ASSERT_EQ(read->mounts.size(), 1u);
  EXPECT_EQ(read->mounts[0].container_path + read->mounts[0].host_path, "/in/host");
  EXPECT_TRUE(read->mounts[0].read_only);
  ASSERT_EQ(read->devices.size(), 1u);
  EXPECT_EQ(read->devices[0].container_path + read->devices[0].host_path, "/dev/in/dev/host");
  EXPECT_EQ(read->devices[0].permissions, "rw");
  EXPECT_EQ(read->annotations.at("key"), "note");
  EXPECT_EQ(read->cdi_devices, std::vector<std::string>{"v.com/c=n"});
  EXPECT_FALSE(ReadAllocateResponse("").has_value()) << "for no container";
}

}  // namespace
}  // namespace muster::agent
