#include "agent/pod_workers/device_allocator.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::agent {
namespace {

cluster::Device Gpu(const std::string& id, int64_t number) {
  cluster::Device device{"nvidia.com/gpu", id, number, "m"};
  device.minor = number;
  return device;
}

// A pod whose container c asks for `count` GPUs.
json::Value Pod(const std::string& uid, const std::string& annotation, int count) {
  json::Value container = *json::Parse(R"({"name":"c","resources":{"limits":{}}})");
  if (count > 0)
    container = container.SetPath({"resources", "limits", "nvidia.com/gpu"}, std::to_string(count));
  json::Value pod = json::Obj().SetPath({"metadata", "uid"}, uid);
  if (!annotation.empty())
    pod = pod.SetPath({"metadata", "annotations", "muster.dev/assigned-devices"}, annotation);
  return pod.SetPath({"spec", "containers"}, json::List({container}));
}

std::string Named(const std::string& ids) { return R"({"c":{"nvidia.com/gpu":[)" + ids + "]}}"; }

std::string Refused(DeviceAllocator& devices, const json::Value& pod) {
  const auto assigned = devices.Assign(pod, false);
  EXPECT_FALSE(assigned.has_value());
  return assigned ? "" : assigned.error().message();
}

using Ids = std::vector<std::string>;

TEST(DeviceAllocator, ADeviceHasOneOwner) {
  DeviceAllocator devices({Gpu("g0", 0), Gpu("g1", 1)});
  const auto named = devices.Assign(Pod("a", Named(R"("g1")"), 1), false);
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(DevicesOf(*named, "c"), Ids{"g1"});
  EXPECT_EQ(devices.OwnerOf("nvidia.com/gpu", "g1"), "a");
  EXPECT_EQ(Refused(devices, Pod("b", Named(R"("g1")"), 1)),
            "Allocate failed due to device nvidia.com/gpu g1 belongs to another pod (uid a), which "
            "is unexpected");
  EXPECT_EQ(Refused(devices, Pod("b", "", 2)),
            "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
            "Requested: 2, Available: 1, which is unexpected");
  const auto own = devices.Assign(Pod("b", "", 1), false);
  ASSERT_TRUE(own.has_value());
  EXPECT_EQ(DevicesOf(*own, "c"), Ids{"g0"});
  EXPECT_EQ(DevicesOf(*devices.Assign(Pod("n", "", 0), false), "c"), Ids{});
  devices.Release("a");
  EXPECT_TRUE(devices.Assign(Pod("d", "", 1), false).has_value());
}

TEST(DeviceAllocator, WhatIsAssignedIsVerified) {
  std::vector<cluster::Device> both = {Gpu("g0", 0), Gpu("g1", 1)};
  both[1].unhealthy = "GPU is lost";
  DeviceAllocator devices(both);
  EXPECT_NE(Refused(devices, Pod("a", Named(R"("g9")"), 1)).find("is not on this node"),
            std::string::npos);
  EXPECT_EQ(Refused(devices, Pod("a", Named(R"("g1")"), 1)),
            "Allocate failed due to previously allocated devices are no longer healthy; cannot "
            "allocate unhealthy devices nvidia.com/gpu g1 (GPU is lost), which is unexpected");
  // A user may write the annotation: it gives nothing that the containers do not ask for.
  EXPECT_NE(Refused(devices, Pod("a", Named(R"("g0")"), 0)).find("asks for 0 nvidia.com/gpu"),
            std::string::npos);
  EXPECT_NE(Refused(devices, Pod("a", Named(R"("g0","g0")"), 2)).find("assigned twice"),
            std::string::npos);
  EXPECT_NE(Refused(devices, Pod("a", R"({"o":{"nvidia.com/gpu":["g0"]}})", 1))
                .find("asks for 1 nvidia.com/gpu, and 0 are assigned"),
            std::string::npos);
  EXPECT_NE(Refused(devices, Pod("a", R"({"o":{"nvidia.com/gpu":["g0"]}})", 0))
                .find("assigned to o, which is no container"),
            std::string::npos);
  EXPECT_EQ(devices.OwnerOf("nvidia.com/gpu", "g0"), "") << "who is refused keeps nothing";
  EXPECT_TRUE(devices.Assign(Pod("a", Named(R"("g0")"), 1), false).has_value());
}

TEST(DeviceAllocator, WhereTheSchedulerCouldNotKnowAnotherDeviceWillDo) {
  DeviceAllocator devices({Gpu("g0", 0), Gpu("g1", 1)});
  ASSERT_EQ(DevicesOf(*devices.Assign(Pod("own", "", 1), false), "c"), Ids{"g0"});
  const json::Value late = Pod("late", Named(R"("g0")"), 1);
  // A gang that shares its sandbox was told of g0.
  const std::string taken =
      "Allocate failed due to device nvidia.com/gpu g0 belongs to another pod (uid own), which is "
      "unexpected";
  EXPECT_EQ(Refused(devices, late.SetPath({"metadata", "annotations", "muster.dev/gang-devices"},
                                          R"({"nvidia.com/gpu":["g0"]})")),
            taken);
  EXPECT_EQ(DevicesOf(*devices.Assign(late, false), "c"), Ids{"g1"});
  EXPECT_EQ(devices.OwnerOf("nvidia.com/gpu", "g1"), "late");
  // None is left; and what the scheduler gave is nobody else's.
  EXPECT_EQ(Refused(devices, Pod("third", Named(R"("g0")"), 1)), taken);
  devices.Release("own");
  EXPECT_NE(Refused(devices, Pod("thief", Named(R"("g1")"), 1)), "");
}

TEST(DeviceAllocator, WhatAPodThatEndsHasIsWaitedFor) {
  DeviceAllocator devices({Gpu("g0", 0), Gpu("g1", 1)});
  ASSERT_TRUE(devices.Assign(Pod("old", Named(R"("g1")"), 1), false).has_value());
  const auto reason = [&](const json::Value& pod) {
    const auto assigned = devices.Assign(pod, false);
    return assigned ? Reason::kUnknown : assigned.error().reason();
  };
  devices.OnAskEnding([](const std::string& uid) { return uid == "old"; });
  EXPECT_EQ(reason(Pod("new", Named(R"("g1")"), 1)), Reason::kServiceUnavailable);
  EXPECT_EQ(reason(Pod("new", "", 2)), Reason::kServiceUnavailable);
  EXPECT_EQ(reason(Pod("new", "", 3)), Reason::kConflict) << "more than will ever be free";
  EXPECT_EQ(devices.OwnerOf("nvidia.com/gpu", "g1"), "old");
  devices.Release("old");
  EXPECT_TRUE(devices.Assign(Pod("new", "", 2), false).has_value());
}

TEST(DeviceAllocator, APodOfAnEarlierRunKeepsWhatItHas) {
  std::vector<cluster::Device> both = {Gpu("g0", 0), Gpu("g1", 1)};
  DeviceAllocator devices;
  EXPECT_FALSE(devices.known());
  devices.Adopt("old", {{"c", {{"nvidia.com/gpu", {"g1"}}}}}, 0);
  both[1].unhealthy = "GPU is lost";
  devices.SetDevices(both, {});
  EXPECT_FALSE(devices.Assign(Pod("new", Named(R"("g1")"), 1), false).has_value());
  // It came without an annotation: what it has is known from its folder alone.
  const auto running = devices.Assign(Pod("old", "", 1), true);
  ASSERT_TRUE(running.has_value()) << "it runs: the device's state changes nothing";
  EXPECT_EQ(DevicesOf(*running, "c"), Ids{"g1"});
  EXPECT_NE(Refused(devices, Pod("old", "", 1)).find("no longer healthy"), std::string::npos);
  devices.Release("old");
  EXPECT_EQ(devices.OwnerOf("nvidia.com/gpu", "g1"), "");
}

json::Value SharePod(const std::string& uid, const std::string& annotation, int milli) {
  json::Value pod = Pod(uid, annotation, 0);
  const json::Value container = pod["spec"]["containers"].At(0).SetPath(
      {"resources", "limits", "muster.dev/gpu-milli"}, std::to_string(milli));
  return pod.SetPath({"spec", "containers"}, json::List({container}));
}

TEST(DeviceAllocator, SharesOfAGpuComeToAllOfItAtMost) {
  DeviceAllocator devices({Gpu("g0", 0), Gpu("g1", 1)});
  ASSERT_TRUE(devices.Assign(SharePod("a", Named(R"("g1")"), 600), false).has_value());
  EXPECT_EQ(Refused(devices, SharePod("b", Named(R"("g1")"), 500)),
            "Allocate failed due to 600 thousandths of device nvidia.com/gpu g1 belong to other "
            "pods (one has uid a), and 500 are asked for, which is unexpected");
  ASSERT_TRUE(devices.Assign(SharePod("b", Named(R"("g1")"), 400), false).has_value());
  EXPECT_EQ(devices.OwnersOf("nvidia.com/gpu", "g1"), (Ids{"a", "b"}));
  EXPECT_EQ(devices.OwnerOf("nvidia.com/gpu", "g1"), "");
  EXPECT_EQ(Refused(devices, Pod("w", Named(R"("g1")"), 1)),
            "Allocate failed due to device nvidia.com/gpu g1 belongs to another pod (uid b), which "
            "is unexpected");
  // Without an annotation: where the least is left, else the other.
  const auto chosen = devices.Assign(SharePod("c", "", 300), false);
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(DevicesOf(*chosen, "c"), Ids{"g0"});
  EXPECT_EQ(Refused(devices, SharePod("d", "", 800)),
            "Allocate failed due to no GPU of this node has 800 of its thousandths left for the "
            "pod, which is unexpected");
  devices.Release("a");
  const auto after = devices.Assign(SharePod("d", "", 600), false);
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(DevicesOf(*after, "c"), Ids{"g1"});
}

TEST(DeviceAllocator, AShareIsOneGpuForThoseThatAskForIt) {
  DeviceAllocator devices({Gpu("g0", 0), Gpu("g1", 1)});
  EXPECT_EQ(Refused(devices, SharePod("a", Named(R"("g0","g1")"), 600)),
            "Allocate failed due to container c asks for 600 thousandths of a GPU, and 2 devices "
            "are assigned to it, which is unexpected");
  EXPECT_EQ(Refused(devices, SharePod("a", R"({"x":{"nvidia.com/gpu":["g0"]}})", 600)),
            "Allocate failed due to container c asks for 600 thousandths of a GPU, and 0 devices "
            "are assigned to it, which is unexpected");
  // Shares of pods that end are waited for; those of an earlier run count.
  devices.Adopt("old", {{"c", {{"nvidia.com/gpu", {"g0"}}}}}, 700);
  devices.Adopt("ends", {{"c", {{"nvidia.com/gpu", {"g1"}}}}}, 700);
  devices.OnAskEnding([](const std::string& uid) { return uid == "ends"; });
  for (const json::Value& pod : {SharePod("a", Named(R"("g1")"), 400), SharePod("a", "", 400)}) {
    const auto later = devices.Assign(pod, false);
    ASSERT_FALSE(later.has_value());
    EXPECT_EQ(later.error().reason(), Reason::kServiceUnavailable) << later.error().message();
  }
  EXPECT_TRUE(devices.Assign(SharePod("a", Named(R"("g0")"), 300), false).has_value());
}

TEST(DeviceAllocator, OnlyRealGpusHaveFilesAndWantTheDriver) {
  DeviceAllocator devices;
  devices.SetDevices({Gpu("g0", 0), Gpu("g7", 7), {"nvidia.com/gpu", "sim", 9, "m"}},
                     {"/dev/nvidiactl", "/dev/nvidia-uvm"});
  const auto files = [&](Ids ids, const cluster::DeviceLists& peers = {}) {
    return devices.FilesOf({{"c", {{"nvidia.com/gpu", std::move(ids)}}}}, "c", peers);
  };
  const cluster::DeviceLists gang = {{"nvidia.com/gpu", {"g0", "g7", "g99"}}};
  EXPECT_EQ(files({"g7"}, gang),
            (Ids{"/dev/nvidia7", "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"}));
  EXPECT_EQ(files({}, gang), Ids{}) << "a container without a GPU sees none";
  EXPECT_EQ(files({"g7"}), (Ids{"/dev/nvidia7", "/dev/nvidiactl", "/dev/nvidia-uvm"}));
  EXPECT_EQ(files({"sim"}), Ids{});
  EXPECT_EQ(files({}), Ids{});
  EXPECT_TRUE(devices.Wants(Pod("a", "", 1)));
  EXPECT_TRUE(devices.Wants(Pod("a", Named(R"("g0")"), 0)));
  EXPECT_FALSE(devices.Wants(Pod("a", "", 0)));
}

// Four shares of one GPU.
std::vector<cluster::Device> Shares() {
  std::vector<cluster::Device> shares;
  for (int number = 0; number < 4; ++number)
    shares.push_back(Gpu("g0::" + std::to_string(number), 0));
  return shares;
}

TEST(DeviceAllocator, SharesAreOwnedOneByOneAndHaveTheFilesOfTheirGpu) {
  DeviceAllocator devices(Shares());
  const auto a = devices.Assign(Pod("a", Named(R"("g0::1")"), 1), false);
  const auto b = devices.Assign(Pod("b", "", 2), false);
  ASSERT_TRUE(a.has_value() && b.has_value());
  EXPECT_EQ(DevicesOf(*b, "c"), (Ids{"g0::0", "g0::2"}));
  EXPECT_EQ(devices.FilesOf(*b, "c", {}), Ids{"/dev/nvidia0"});
  EXPECT_EQ(devices.UsesOf("g0").size(), 3u);
  EXPECT_EQ(devices.UsesOf("g0")[1].id, "g0::1");
  EXPECT_EQ(devices.UsesOf("g0")[1].owners, Ids{"a"});
  EXPECT_TRUE(devices.UsesOf("g").empty());
  json::Value milli = Pod("m", "", 0);
  milli =
      milli.SetPath({"spec", "containers"}, *json::Parse(R"([{"name":"c","resources":{"limits":{)"
                                                         R"("muster.dev/gpu-milli":"10"}}}])"));
  EXPECT_FALSE(devices.Assign(milli, false).has_value()) << "a share of a share";
  int released = 0;
  devices.OnRelease([&] { ++released; });
  devices.Release("b");
  EXPECT_EQ(released, 1);
  EXPECT_EQ(devices.UsesOf("g0").size(), 1u);
}

TEST(DeviceAllocator, OneShareEachWhereMoreAreNoMore) {
  DeviceAllocator devices;
  devices.SetDevices(Shares(), {}, true);
  EXPECT_EQ(Refused(devices, Pod("a", "", 2)),
            "Allocate failed due to invalid request: maximum request size for shared resources is "
            "1; found 2, which is unexpected");
  EXPECT_TRUE(devices.Assign(Pod("a", "", 1), false).has_value());
  devices.SetDevices({Gpu("g0", 0), Gpu("g1", 1)}, {}, true);
  EXPECT_TRUE(devices.Assign(Pod("b", "", 2), false).has_value()) << "whole ones";
}

// The scheduler knew the GPU as it was before.
TEST(DeviceAllocator, WhatWasCutMeanwhileIsChosenAnew) {
  DeviceAllocator devices(Shares());
  const auto a = devices.Assign(Pod("a", Named(R"("g0")"), 1), false);
  ASSERT_TRUE(a.has_value());
  EXPECT_EQ(DevicesOf(*a, "c"), Ids{"g0::0"});
  // It chooses for the next one before it hears of that.
  const auto b = devices.Assign(Pod("b", Named(R"("g0::0")"), 1), false);
  ASSERT_TRUE(b.has_value());
  EXPECT_EQ(DevicesOf(*b, "c"), Ids{"g0::1"});
  EXPECT_FALSE(devices.Assign(Pod("c", Named(R"("g1")"), 1), false).has_value()) << "never here";
}

TEST(DeviceAllocator, RenamedSharesAreWanted) {
  const json::Value pod =
      Pod("a", "", 0)
          .SetPath({"spec", "containers"},
                   *json::Parse(
                       R"([{"name":"c","resources":{"limits":{"nvidia.com/gpu.shared":"1"}}}])"));
  EXPECT_TRUE(DeviceAllocator().Wants(pod));
  EXPECT_FALSE(DeviceAllocator().Wants(Pod("a", "", 0)));
}

}  // namespace
}  // namespace muster::agent
