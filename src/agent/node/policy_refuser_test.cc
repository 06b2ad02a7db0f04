// Pods that a network policy selects, on a node that cannot enforce it.

#include "agent/node/policy_refuser.h"

#include "agent/pod_machine_test_support.h"

namespace muster::agent {
namespace {

constexpr const char* kPolicies = "/apis/networking.k8s.io/v1/networkpolicies";

json::Value Policy(const std::string& name, const std::string& selector) {
  return *json::Parse(R"({"metadata":{"namespace":"d","name":")" + name +
                      R"("},"spec":{"podSelector":)" + selector + "}}");
}

struct RefusingNode {
  explicit RefusingNode(Machine& m)
      : machine(m),
        refuser(m.node->informers, m.node->pods, m.node->events,
                {.name = "n1",
                 .pods = [&m] { return m.node->manager.Objects(); },
                 .on_policies_changed = [&m] { m.node->manager.PoliciesChanged(); }}) {
    m.node->context.policies = &refuser;
  }
  ~RefusingNode() { machine.node->context.policies = nullptr; }
  Machine& machine;
  PolicyRefuser refuser;
};

std::string EventAbout(const Machine& m, const std::string& name) {
  for (const auto& [key, object] : m.api->objects) {
    if (object["reason"].AsString() == kPolicyNotEnforced &&
        object["involvedObject"]["name"].AsString() == name)
      return object["message"].Str();
  }
  return "";
}

TEST(PolicyRefuser, APodThatAPolicySelectsIsRefused) {
  InNetworkNamespace([] {
    Machine m;
    RefusingNode node(m);
    m.api->Put(kPolicies, Policy("deny", R"({"matchLabels":{"app":"web"}})"));
    m.Create(R"({"metadata":{"name":"web","labels":{"app":"web"}},"spec":{"restartPolicy":"Always",
        "containers":[{"name":"main","image":"x","command":["sleep","1000"]}]}})");
    m.Create(OneContainer("other", "echo fine"));
    m.Create(R"({"metadata":{"name":"host","labels":{"app":"web"}},"spec":{"hostNetwork":true,
        "restartPolicy":"Never","containers":[{"name":"main","image":"x","command":["true"]}]}})");
    // Before the policies are known, nobody knows who is selected.
    m.Until([] { return false; }, milliseconds(300));
    EXPECT_FALSE(m.ShimOf("other"));
    node.refuser.Start();
    ASSERT_TRUE(m.UntilPhase("web", "Failed"));
    EXPECT_EQ(m.Pod("web")["status"]["reason"].AsString(), kPolicyNotEnforced);
    EXPECT_NE(m.Pod("web")["status"]["message"].AsString().find("network policy deny"),
              std::string::npos);
    EXPECT_FALSE(m.ShimOf("web"));
    EXPECT_TRUE(m.UntilPhase("other", "Succeeded"));
    EXPECT_TRUE(m.UntilPhase("host", "Succeeded"));
    EXPECT_TRUE(m.Until([&] { return !EventAbout(m, "web").empty(); }));
  });
}

TEST(PolicyRefuser, OneThatRunsGoesOnWithAWarning) {
  InNetworkNamespace([] {
    Machine m;
    RefusingNode node(m);
    node.refuser.Start();
    m.Create(OneContainer("web", "sleep 1000"));
    ASSERT_TRUE(m.UntilPhase("web", "Running"));
    m.api->Put(kPolicies, Policy("deny", "{}"));
    EXPECT_TRUE(m.Until([&] { return !EventAbout(m, "web").empty(); }));
    EXPECT_TRUE(m.Until([&] { return !EventAbout(m, "n1").empty(); }));
    EXPECT_EQ(m.Phase("web"), "Running");
  });
}

}  // namespace
}  // namespace muster::agent
