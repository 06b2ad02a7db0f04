#include "gpu/time_slicing.h"

#include <gtest/gtest.h>

namespace muster::gpu {
namespace {

constexpr const char* kFour = R"(
version: v1
sharing:
  timeSlicing:
    renameByDefault: false
    resources:
      - name: nvidia.com/gpu
        replicas: 4
)";

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

std::string Fault(const std::string& text) {
  const auto parsed = ParseTimeSlicing(text);
  return parsed ? "" : parsed.error().message();
}

TEST(TimeSlicing, IsWhatTheFileSays) {
  EXPECT_EQ(*ParseTimeSlicing(kFour), (TimeSlicing{4, false, false}));
  EXPECT_EQ(*ParseTimeSlicing("{version: v1, sharing: {timeSlicing: {renameByDefault: true, "
                              "failRequestsGreaterThanOne: true, "
                              "resources: [{name: gpu, replicas: 10, rename: x}]}}}"),
            (TimeSlicing{10, true, true}));
  EXPECT_EQ(*ParseTimeSlicing("version: v1"), TimeSlicing());
  EXPECT_EQ(*ParseTimeSlicing(Replaced(kFour, "nvidia.com/gpu", "nvidia.com/mig-1g.10gb")),
            TimeSlicing())
      << "of another resource";
}

TEST(TimeSlicing, FaultsSayWhere) {
  EXPECT_EQ(Fault("version: v2"), "version: expected v1, got \"v2\"");
  EXPECT_EQ(Fault("sharing: {}"), "version: expected v1, got null");
  EXPECT_EQ(Fault("[]"), "expected one object, `version: v1` and what it shares");
  EXPECT_NE(Fault("a: [b"), "");
  EXPECT_EQ(Fault("version: v1\nsharing: {mps: {}}"),
            "sharing.mps: MPS is not offered, only sharing.timeSlicing");
  EXPECT_EQ(Fault("version: v1\nsharing: {timeSlicing: {}}"),
            "sharing.timeSlicing.resources: expected nvidia.com/gpu and its replicas");
  EXPECT_EQ(Fault(Replaced(kFour, "false", "maybe")),
            "sharing.timeSlicing.renameByDefault: expected true or false, got \"maybe\"");
  for (const char* number : {"1", "0", "-4", "four", "2.5"}) {
    EXPECT_TRUE(Fault(Replaced(kFour, "4", number))
                    .starts_with("sharing.timeSlicing.resources[0].replicas: expected a whole "
                                 "number above 1, got "))
        << number;
  }
}

TEST(TimeSlicing, SharesAreNamedByTheirGpu) { EXPECT_EQ(ShareName("GPU-a", 2), "GPU-a::2"); }

}  // namespace
}  // namespace muster::gpu
