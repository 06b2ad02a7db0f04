#include "controllers/clusterroles/cluster_role_aggregation_controller.h"

#include <fmt/core.h>

#include "controllers/controller_test_base.h"

namespace muster::controllers {
namespace {

constexpr char kRoles[] = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

class ClusterRoleAggregationTest : public ControllerTest {
 protected:
  void PutRole(const std::string& name, const std::string& labels, const std::string& resource) {
    Put(kRoles, fmt::format("{{metadata: {{name: {}, labels: {{{}}}}}, rules: [{{apiGroups: [''], "
                            "resources: [{}], verbs: [get]}}]}}",
                            name, labels, resource));
  }
  std::vector<std::string> Resources(const std::string& name) {
    std::vector<std::string> out;
    for (const json::Value& rule : Get(kRoles, "", name)["rules"].items())
      out.push_back(rule["resources"].At(0).Str());
    return out;
  }
};

TEST_F(ClusterRoleAggregationTest, GathersWhatTheSelectorsMatch) {
  PutRole("c", "to: view", "pods");
  PutRole("a", "to: edit", "secrets");
  PutRole("b", "to: none", "nodes");
  Put(kRoles,
      "{metadata: {name: sum}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: view}}, "
      "{matchLabels: {to: edit}}]}, rules: [{apiGroups: [''], resources: [foreign], verbs: "
      "[get]}]}");
  Start(std::make_unique<ClusterRoleAggregationController>());
  EXPECT_EQ(Resources("sum"), (std::vector<std::string>{"secrets", "pods"}));

  PutRole("b", "to: view", "nodes");
  Settle();
  EXPECT_EQ(Resources("sum"), (std::vector<std::string>{"secrets", "nodes", "pods"}));
  api_.Remove(kRoles, "", "a");
  api_.Remove(kRoles, "", "b");
  PutRole("d", "to: view", "pods");  // the same rule once more
  Settle();
  EXPECT_EQ(Resources("sum"), std::vector<std::string>{"pods"});
  api_.Remove(kRoles, "", "c");
  api_.Remove(kRoles, "", "d");
  Settle();
  EXPECT_TRUE(Resources("sum").empty());
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(ClusterRoleAggregationTest, LeavesOthersAlone) {
  PutRole("a", "to: view", "pods");
  Put(kRoles, "{metadata: {name: none}, rules: []}");
  Put(kRoles, "{metadata: {name: empty}, aggregationRule: {}}");
  Start(std::make_unique<ClusterRoleAggregationController>());
  EXPECT_EQ(Requests("PATCH"), 0u);
  // A rule that is taken away leaves what was gathered, as upstream.
  Put(kRoles,
      "{metadata: {name: empty}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: "
      "view}}]}}");
  Settle();
  EXPECT_EQ(Resources("empty"), std::vector<std::string>{"pods"});
}

}  // namespace
}  // namespace muster::controllers
