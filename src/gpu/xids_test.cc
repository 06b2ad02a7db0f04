#include "gpu/xids.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace muster::gpu {
namespace {

TEST(Xids, ThoseOfProgramsTakeNoGpuOutOfService) {
  const XidPolicy policy;
  for (const int64_t xid : {13, 31, 43, 45, 68, 109}) EXPECT_FALSE(policy.IsFatal(xid)) << xid;
  for (const int64_t xid : {48, 63, 64, 74, 79, 94, 95, 119, 1000})
    EXPECT_TRUE(policy.IsFatal(xid)) << xid;
}

TEST(Xids, AreSwitchedAsForNvidiasDevicePlugin) {
  EXPECT_FALSE(XidPolicy("79, 48,nonsense,", "").IsFatal(48));
  EXPECT_TRUE(XidPolicy("79,48", "").IsFatal(74));
  EXPECT_FALSE(XidPolicy("all", "").IsFatal(79));
  EXPECT_FALSE(XidPolicy("xids", "").IsFatal(79));
  EXPECT_TRUE(XidPolicy("all", "79").IsFatal(79));
  EXPECT_FALSE(XidPolicy("all", "79").IsFatal(48));
  EXPECT_TRUE(XidPolicy("", "31").IsFatal(31));
  setenv("DP_DISABLE_HEALTHCHECKS", "79", 1);
  EXPECT_FALSE(XidPolicy::FromEnvironment().IsFatal(79));
  unsetenv("DP_DISABLE_HEALTHCHECKS");
  EXPECT_TRUE(XidPolicy::FromEnvironment().IsFatal(79));
}

TEST(Xids, SayWhatTheyMean) {
  EXPECT_EQ(DescribeXid(79), "XID 79: the GPU has fallen off the bus");
  EXPECT_EQ(DescribeXid(1000), "XID 1000: see NVIDIA's catalog of XID errors");
}

}  // namespace
}  // namespace muster::gpu
