#include "agent/node/node_mounts.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

std::string Line(const std::string& point) {
  return "36 25 0:32 / " + point + " rw,relatime shared:1 - ext4 /dev/vda rw\n";
}

using Paths = std::vector<std::string>;

TEST(ProgramMounts, AreThoseBelowUsrWithoutWhatComesAlong) {
  const std::string mounts = Line("/") + Line("/proc") + Line("/usr/local/nvidia") +
                             Line("/usr/local/nvidia/lib64/firmware") +
                             Line("/usr/local/nvidia-extra") + Line("/usr/bin/nvidia-smi") +
                             Line("/data") + Line("/opt/tools") + Line("/usr2") +
                             Line("/usr/with\\040space") + Line("/usr/bin/nvidia-smi");
  EXPECT_EQ(ProgramMounts(mounts, ""), (Paths{"/usr/bin/nvidia-smi", "/usr/local/nvidia",
                                              "/usr/local/nvidia-extra", "/usr/with space"}));
  EXPECT_EQ(ProgramMounts(Line("/usr") + Line("/usr/local"), ""), Paths{"/usr"});
  EXPECT_EQ(ProgramMounts("", ""), Paths{});
  EXPECT_EQ(ProgramMounts("broken\nline\n", ""), Paths{});
}

TEST(ProgramMounts, TheDriverIsShownWhereverItIs) {
  const std::string mounts = Line("/") + Line("/opt") + Line("/opt/driver") + Line("/run/nvidia");
  EXPECT_EQ(ProgramMounts(mounts, "/opt/driver/lib64/libnvidia-ml.so.580"), Paths{"/opt/driver"});
  EXPECT_EQ(ProgramMounts(mounts, "/opt/other/libnvidia-ml.so.580"), Paths{"/opt"});
  EXPECT_EQ(ProgramMounts(mounts, "/usr/lib/libnvidia-ml.so.580"), Paths{})
      << "on the file system of / it is there anyway";
  EXPECT_EQ(ProgramMounts(mounts, "/run/nvidia/lib/libnvidia-ml.so.580"), Paths{})
      << "/run is each container's own";
}

TEST(ProgramMounts, AreBounded) {
  std::string mounts;
  for (size_t i = 0; i < kMaxNodeMounts + 5; ++i) mounts += Line("/usr/m" + std::to_string(i));
  EXPECT_EQ(ProgramMounts(mounts, "").size(), kMaxNodeMounts);
}

}  // namespace
}  // namespace muster::agent
