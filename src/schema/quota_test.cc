#include "schema/quota.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "json/parse.h"

namespace muster::schema {
namespace {

json::Value Yaml(std::string_view text) {
  auto documents = json::ParseYaml(text);
  CHECK_MSG(documents.has_value() && documents->size() == 1, "not one document");
  return (*documents)[0];
}

GroupResource Core(const char* plural) { return {"", plural}; }

struct UsageRow {
  const char* name;
  const char* plural;
  const char* object;
  const char* hard;  // names, each with a bound
  const char* usage;
};

constexpr const char* kTwoContainers =
    "{spec: {containers: [{name: a, resources: {requests: {cpu: 500m, memory: 1Gi, "
    "nvidia.com/gpu: 2, ephemeral-storage: 1G, hugepages-2Mi: 4Mi}, limits: {cpu: '2', "
    "memory: 2Gi, nvidia.com/gpu: 2, ephemeral-storage: 2G}}}, "
    "{name: b, resources: {requests: {cpu: '1', memory: 512Mi}}}]}}";

const UsageRow kUsageRows[] = {
    {"cpu is what is requested", "pods", kTwoContainers, "{cpu: 9, requests.cpu: 9}",
     "cpu=1500m,requests.cpu=1500m"},
    {"limits of those that have one", "pods", kTwoContainers, "{limits.cpu: 9, limits.memory: 9}",
     "limits.cpu=2,limits.memory=2Gi"},
    {"memory", "pods", kTwoContainers, "{memory: 9, requests.memory: 9}",
     "memory=1536Mi,requests.memory=1536Mi"},
    {"storage of the node", "pods", kTwoContainers,
     "{ephemeral-storage: 9, requests.ephemeral-storage: 9, limits.ephemeral-storage: 9}",
     "ephemeral-storage=1G,limits.ephemeral-storage=2G,requests.ephemeral-storage=1G"},
    {"GPUs only as requests", "pods", kTwoContainers,
     "{requests.nvidia.com/gpu: 9, nvidia.com/gpu: 9, limits.nvidia.com/gpu: 9}",
     "requests.nvidia.com/gpu=2"},
    {"huge pages", "pods", kTwoContainers, "{hugepages-2Mi: 9, requests.hugepages-2Mi: 9}",
     "hugepages-2Mi=4Mi,requests.hugepages-2Mi=4Mi"},
    {"pods and count", "pods", kTwoContainers, "{pods: 9, count/pods: 9}", "count/pods=1,pods=1"},
    {"an ended pod is an object still", "pods",
     "{spec: {containers: [{resources: {requests: {cpu: 1}}}]}, status: {phase: Succeeded}}",
     "{pods: 9, count/pods: 9, cpu: 9}", "count/pods=1"},
    {"a failed pod as well", "pods", "{status: {phase: Failed}}", "{pods: 9}", ""},
    {"the init container that needs most", "pods",
     "{spec: {initContainers: [{resources: {requests: {cpu: 3}}}, {resources: {requests: {cpu: "
     "2}}}], containers: [{resources: {requests: {cpu: 1}}}]}}",
     "{cpu: 9}", "cpu=3"},
    {"sidecars beside the others", "pods",
     "{spec: {initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}, "
     "{resources: {requests: {cpu: 3}}}], containers: [{resources: {requests: {cpu: 2}}}]}}",
     "{cpu: 9}", "cpu=4"},
    {"overhead, of limits only where there is one", "pods",
     "{spec: {overhead: {cpu: 250m, memory: 1Mi}, containers: [{resources: {requests: {cpu: 1}, "
     "limits: {cpu: 1}}}]}}",
     "{cpu: 9, limits.cpu: 9, limits.memory: 9}", "cpu=1250m,limits.cpu=1250m"},
    {"nothing else of a pod", "pods", kTwoContainers, "{services: 1, configmaps: 1}", ""},
    {"a service", "services", "{spec: {type: ClusterIP, ports: [{}]}}",
     "{services: 9, count/services: 9, services.nodeports: 9, services.loadbalancers: 9}",
     "count/services=1,services=1"},
    {"node ports", "services", "{spec: {type: NodePort, ports: [{}, {}]}}",
     "{services: 9, services.nodeports: 9, services.loadbalancers: 9}",
     "services=1,services.nodeports=2"},
    {"a load balancer", "services", "{spec: {type: LoadBalancer, ports: [{}, {}]}}",
     "{services.nodeports: 9, services.loadbalancers: 9}",
     "services.loadbalancers=1,services.nodeports=2"},
    {"a load balancer that wants no node ports", "services",
     "{spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{}, {nodePort: "
     "30001}]}}",
     "{services.nodeports: 9}", "services.nodeports=1"},
    {"a claim", "persistentvolumeclaims",
     "{spec: {storageClassName: gold, resources: {requests: {storage: 5Gi}}}}",
     "{persistentvolumeclaims: 9, requests.storage: 9, "
     "gold.storageclass.storage.k8s.io/requests.storage: 9, "
     "gold.storageclass.storage.k8s.io/persistentvolumeclaims: 9, "
     "silver.storageclass.storage.k8s.io/requests.storage: 9}",
     "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,"
     "gold.storageclass.storage.k8s.io/requests.storage=5Gi,"
     "persistentvolumeclaims=1,requests.storage=5Gi"},
    {"a claim whose growth was given up", "persistentvolumeclaims",
     "{spec: {resources: {requests: {storage: 5Gi}}}, status: {allocatedResources: {storage: "
     "8Gi}}}",
     "{requests.storage: 9}", "requests.storage=8Gi"},
    {"secrets", "secrets", "{data: {}}", "{secrets: 9, count/secrets: 9}",
     "count/secrets=1,secrets=1"},
    {"quotas", "resourcequotas", "{spec: {}}", "{resourcequotas: 9}", "resourcequotas=1"},
    {"events never", "events", "{}", "{count/events: 9}", ""},
};

TEST(Quota, UsageOfOneObject) {
  for (const UsageRow& row : kUsageRows) {
    const Quota quota(Yaml(std::string("{metadata: {name: q}, spec: {hard: ") + row.hard + "}}"));
    EXPECT_EQ(ToText(quota.UsageOf(Core(row.plural), Yaml(row.object), false)), row.usage)
        << row.name;
  }
}

TEST(Quota, CountsKindsOfEveryGroup) {
  const Quota quota(
      Yaml("{spec: {hard: {count/jobs.batch: 1, count/widgets.example.com: 1, count/pods: 1}}}"));
  EXPECT_EQ(ToText(quota.UsageOf({"batch", "jobs"}, Yaml("{a: b}"), false)), "count/jobs.batch=1");
  EXPECT_EQ(ToText(quota.UsageOf({"example.com", "widgets"}, Yaml("{a: b}"), false)),
            "count/widgets.example.com=1");
  EXPECT_EQ(ToText(quota.UsageOf({"other.com", "widgets"}, Yaml("{a: b}"), false)), "");
  EXPECT_TRUE(quota.OnlyCounts({"example.com", "widgets"}));
  EXPECT_TRUE(quota.OnlyCounts(Core("pods")));
  EXPECT_FALSE(Quota(Yaml("{spec: {hard: {count/pods: 1, pods: 1}}}")).OnlyCounts(Core("pods")));
}

TEST(Quota, ALapsedPodIsAnObjectStill) {
  const Quota quota(Yaml("{spec: {hard: {pods: 1, count/pods: 1}}}"));
  EXPECT_EQ(ToText(quota.UsageOf(Core("pods"), Yaml("{spec: {}}"), true)), "count/pods=1");
}

struct ScopeRow {
  const char* scope;  // an item of matchExpressions, or the name of a scope
  const char* spec;   // of a pod
  bool matches;
};

constexpr const char* kIdle = "{containers: [{}]}";
constexpr const char* kBusy = "{containers: [{resources: {requests: {cpu: 1}}}]}";

const ScopeRow kScopeRows[] = {
    {"Terminating", "{activeDeadlineSeconds: 0}", true},
    {"Terminating", "{}", false},
    {"NotTerminating", "{}", true},
    {"NotTerminating", "{activeDeadlineSeconds: 5}", false},
    {"BestEffort", kIdle, true},
    {"BestEffort", kBusy, false},
    {"NotBestEffort", kBusy, true},
    {"NotBestEffort", kIdle, false},
    {"PriorityClass", "{priorityClassName: high}", true},
    {"PriorityClass", "{}", false},
    {"CrossNamespacePodAffinity", "{}", false},
    {"CrossNamespacePodAffinity",
     "{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "
     "a}]}}}",
     false},
    {"CrossNamespacePodAffinity",
     "{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{namespaces: "
     "[b]}]}}}",
     true},
    {"CrossNamespacePodAffinity",
     "{affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
     "[{podAffinityTerm: {namespaceSelector: {}}}]}}}",
     true},
    {"{scopeName: PriorityClass, operator: In, values: [high, low]}", "{priorityClassName: low}",
     true},
    {"{scopeName: PriorityClass, operator: In, values: [high]}", "{priorityClassName: low}", false},
    {"{scopeName: PriorityClass, operator: In, values: [high]}", "{}", false},
    {"{scopeName: PriorityClass, operator: NotIn, values: [high]}", "{}", true},
    {"{scopeName: PriorityClass, operator: NotIn, values: [high]}", "{priorityClassName: high}",
     false},
    {"{scopeName: PriorityClass, operator: Exists}", "{priorityClassName: high}", true},
    {"{scopeName: PriorityClass, operator: DoesNotExist}", "{priorityClassName: high}", false},
    {"{scopeName: PriorityClass, operator: DoesNotExist}", "{}", true},
};

TEST(Quota, ScopesSayWhichPodsCount) {
  for (const ScopeRow& row : kScopeRows) {
    const std::string scope = row.scope;
    const std::string scopes = scope.starts_with('{')
                                   ? "scopeSelector: {matchExpressions: [" + scope + "]}"
                                   : "scopes: [" + scope + "]";
    const Quota quota(Yaml("{spec: {hard: {pods: 1, services: 1}, " + scopes + "}}"));
    const json::Value pod = Yaml(std::string("{spec: ") + row.spec + "}");
    EXPECT_EQ(quota.Matches(Core("pods"), pod), row.matches) << row.scope << " " << row.spec;
    EXPECT_FALSE(quota.Matches(Core("services"), Yaml("{spec: {}}"))) << row.scope;
  }
  const Quota both(Yaml("{spec: {hard: {pods: 1}, scopes: [BestEffort, Terminating]}}"));
  EXPECT_FALSE(both.Matches(Core("pods"), Yaml("{spec: {containers: [{}]}}")));
}

TEST(Quota, NamesWhatContainersMustState) {
  const Quota quota(Yaml(
      "{spec: {hard: {limits.cpu: 1, limits.memory: 1, cpu: 1, requests.nvidia.com/gpu: 1}}}"));
  const json::Value pod = Yaml(
      "{spec: {containers: [{name: c2}, {name: c1, resources: {requests: {cpu: 1}}}], "
      "initContainers: [{name: i, resources: {requests: {cpu: 1}, limits: {cpu: 1, memory: "
      "1}}}]}}");
  EXPECT_EQ(quota.MissingIn(Core("pods"), pod),
            "cpu for: c2; limits.cpu for: c1,c2; limits.memory for: c1,c2");
  EXPECT_EQ(quota.MissingIn(Core("services"), pod), "");
  EXPECT_EQ(Quota(Yaml("{spec: {hard: {requests.nvidia.com/gpu: 1, pods: 1}}}"))
                .MissingIn(Core("pods"), pod),
            "");
}

TEST(Quota, GrowthIsWhatComesOnTop) {
  const Quota quota(Yaml("{spec: {hard: {services.nodeports: 9, services.loadbalancers: 9}}}"));
  const auto usage = [&](const char* service) {
    return quota.UsageOf(Core("services"), Yaml(service), false);
  };
  const Amounts node_ports = usage("{spec: {type: NodePort, ports: [{}, {}]}}");
  const Amounts balancer = usage("{spec: {type: LoadBalancer, ports: [{}]}}");
  EXPECT_EQ(ToText(GrowthOf(node_ports, balancer)), "services.loadbalancers=1");
  EXPECT_EQ(ToText(GrowthOf(balancer, node_ports)), "services.nodeports=1");
}

TEST(QuotaTally, APodThatDoesNotGoInTimeLapses) {
  const Time start = *ParseTime("2026-01-01T00:00:00Z");
  QuotaTally tally(Quota(Yaml("{spec: {hard: {pods: 5, count/pods: 5, nvidia.com/gpu: 1}}}")),
                   start);
  EXPECT_EQ(ToText(tally.used()), "count/pods=0,pods=0") << "nothing counts nvidia.com/gpu";
  const json::Value pod = Yaml("{metadata: {uid: u}}");
  const json::Value going = Yaml(
      "{metadata: {uid: u, deletionTimestamp: '2026-01-01T00:00:30Z', "
      "deletionGracePeriodSeconds: 30}}");
  EXPECT_TRUE(tally.Change(Core("pods"), {}, pod));
  EXPECT_FALSE(tally.Change(Core("pods"), pod, going));
  EXPECT_EQ(tally.NextLapse(), start + seconds(60));
  EXPECT_FALSE(tally.Advance(start + seconds(60)));
  EXPECT_EQ(ToText(tally.used()), "count/pods=1,pods=1");
  EXPECT_TRUE(tally.Advance(start + seconds(61)));
  EXPECT_EQ(ToText(tally.used()), "count/pods=1,pods=0");
  EXPECT_FALSE(tally.NextLapse().has_value());
  EXPECT_TRUE(tally.Change(Core("pods"), going, {}));
  EXPECT_EQ(ToText(tally.used()), "count/pods=0,pods=0");
}

TEST(QuotaTally, APodThatGoesInTimeLapsesNever) {
  const Time start = *ParseTime("2026-01-01T00:00:00Z");
  QuotaTally tally(Quota(Yaml("{spec: {hard: {pods: 5}}}")), start);
  const json::Value going = Yaml(
      "{metadata: {uid: u, deletionTimestamp: '2026-01-01T00:00:30Z', "
      "deletionGracePeriodSeconds: 30}}");
  tally.Change(Core("pods"), {}, going);
  tally.Change(Core("pods"), going, {});
  EXPECT_FALSE(tally.NextLapse().has_value());
  EXPECT_FALSE(tally.Advance(start + hours(1)));
  EXPECT_EQ(ToText(tally.used()), "pods=0");
}

}  // namespace
}  // namespace muster::schema
