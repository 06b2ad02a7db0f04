#include "agent/shim/capabilities.h"

#include <linux/capability.h>

#include <gtest/gtest.h>

#include "schema/registry.h"

namespace muster::agent {
namespace {

uint64_t Bit(int capability) { return uint64_t{1} << capability; }

TEST(ContainerCapabilities, TheDefaultLessDropPlusAdd) {
  const uint64_t standard = DefaultCapabilities();
  EXPECT_EQ(*ContainerCapabilities({}, {}), standard);
  EXPECT_EQ(*ContainerCapabilities({}, {"NET_RAW", "CAP_KILL"}),
            standard & ~Bit(CAP_NET_RAW) & ~Bit(CAP_KILL));
  EXPECT_EQ(*ContainerCapabilities({}, {"ALL"}), 0u);
  EXPECT_EQ(*ContainerCapabilities({"net_bind_service"}, {"all"}), Bit(CAP_NET_BIND_SERVICE));
  EXPECT_EQ(*ContainerCapabilities({"IPC_LOCK"}, {}), standard | Bit(CAP_IPC_LOCK));
  EXPECT_EQ(*ContainerCapabilities({"ALL"}, {"IPC_LOCK"}), standard);
  EXPECT_EQ(*ContainerCapabilities({"CHOWN"}, {"CHOWN"}), standard & ~Bit(CAP_CHOWN));
}

TEST(ContainerCapabilities, NothingLeadsOutOfTheContainer) {
  EXPECT_EQ(*ContainerCapabilities({"SYS_ADMIN", "SYS_PTRACE", "MKNOD", "BPF"}, {}),
            DefaultCapabilities());
  EXPECT_EQ(*ContainerCapabilities({"ALL"}, {}), GrantableCapabilities());
}

// The API warns of `add` but for what is given.
TEST(ContainerCapabilities, TheApiKnowsWhatIsGranted) {
  const schema::Schema* pod = schema::Registry::BuiltIn().Find("", "v1", "pods")->schema.get();
  const schema::Schema* spec = pod->Find("spec")->schema;
  const schema::Schema* container = spec->Find("containers")->schema->items;
  const schema::Schema* security = container->Find("securityContext")->schema;
  uint64_t granted = 0;
  const schema::Schema* capabilities = security->Find("capabilities")->schema;
  for (const std::string& name : capabilities->Find("add")->acted_on_values)
    granted |= CapabilityBit(name);
  EXPECT_EQ(granted, GrantableCapabilities());
}

TEST(ContainerCapabilities, NamesAreKnown) {
  EXPECT_EQ(ContainerCapabilities({}, {"NET_RAWW"}).error().message(),
            "no capability is named \"NET_RAWW\"");
  EXPECT_FALSE(ContainerCapabilities({""}, {}).has_value());
  EXPECT_EQ(CapabilityBit("CAP_CHECKPOINT_RESTORE"), Bit(CAP_CHECKPOINT_RESTORE));
}

}  // namespace
}  // namespace muster::agent
