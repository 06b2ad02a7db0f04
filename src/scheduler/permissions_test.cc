#include "scheduler/permissions.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "client/informer.h"
#include "json/parse.h"
#include "loop/sim_loop.h"
#include "scheduler/scheduler.h"

namespace muster::scheduler {
namespace {

class PlainPool final : public Pool {
 public:
  void Run(Task work, Loop& loop, Task done) override {
    work();
    loop.Post(std::move(done));
  }
};

// "create /pods/binding", "watch scheduling.k8s.io/priorityclasses" of a request.
std::string WordsOf(const std::string& request) {
  const size_t space = request.find(' ');
  const std::string method = request.substr(0, space);
  const size_t question = request.find('?');
  const std::vector<std::string_view> parts =
      SplitNonEmpty(std::string_view(request).substr(0, question).substr(space + 1), '/');
  size_t at = parts[0] == "api" ? 2 : 3;
  const std::string group(parts[0] == "api" ? "" : parts[1]);
  if (parts.size() > at + 2 && parts[at] == "namespaces") at += 2;
  const bool has_name = parts.size() > at + 1;
  std::string resource(parts[at]);
  if (parts.size() > at + 2) resource += "/" + std::string(parts[at + 2]);
  std::string verb = method == "POST" ? "create" : method == "PATCH" ? "patch" : "get";
  if (method == "PUT") verb = "update";
  if (method == "DELETE") verb = "delete";
  if (verb == "get" && !has_name)
    verb = request.find("watch=") != std::string::npos ? "watch" : "list";
  return verb + " " + group + "/" + resource;
}

std::set<std::string> Allowed(const json::Value& rules) {
  std::set<std::string> allowed;
  for (const json::Value& rule : rules.items()) {
    for (const json::Value& resource : rule["resources"].items()) {
      for (const json::Value& verb : rule["verbs"].items()) {
        allowed.insert(verb.Str() + " " + rule["apiGroups"].items()[0].Str() + "/" +
                       resource.Str());
      }
    }
  }
  return allowed;
}

json::Value Yaml(const std::string& text) { return json::ParseYaml(text).value()[0]; }

// A pod that fits, one that does not, one for whom another has to go, a gang, and a binding that
// has to be asked for.
TEST(Permissions, AreWhatTheSchedulerAsksFor) {
  SimLoop loop;
  client::FakeApi api(loop);
  int binds = 0;
  api.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.target.find("/binding") == std::string::npos) return true;
    // The answer to the first is lost, so that the pod is asked for.
    if (++binds <= 5) {
      client::FakeApi::SendError(*writer, 409, "Conflict", "somebody was faster");
    } else {
      client::FakeApi::SendError(*writer, 404, "NotFound", "gone");
    }
    return false;
  };
  const auto put_node = [&] {
    api.Put("/api/v1/nodes",
            Yaml("{metadata: {name: node-1}, status: {allocatable: {cpu: '4', pods: '110'}}}"));
  };
  put_node();
  for (const char* pod : {"{name: fits, namespace: d}", "{name: large, namespace: d}"}) {
    const std::string cpu = std::string(pod).find("large") == std::string::npos ? "1" : "100";
    api.Put("/api/v1/pods",
            Yaml(std::string("{metadata: ") + pod +
                 ", spec: {schedulerName: default-scheduler, containers: [{name: m, "
                 "resources: {requests: {cpu: '" +
                 cpu + "'}}}]}}"));
  }
  api.Put("/apis/scheduling.volcano.sh/v1beta1/podgroups",
          Yaml("{metadata: {name: g, namespace: d}, spec: {minMember: 2}}"));
  api.Put("/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
          Yaml("{metadata: {name: h, namespace: d}, spec: {minMember: 2}}"));
  api.Put("/api/v1/pods",
          Yaml("{metadata: {name: member, namespace: d, annotations: "
               "{scheduling.k8s.io/group-name: g}}, spec: {schedulerName: volcano, containers: "
               "[{name: m}]}}"));
  api.Put("/api/v1/nodes", Yaml("{metadata: {name: full, labels: {kubernetes.io/hostname: full}}, "
                                "status: {allocatable: {cpu: '1', pods: '1'}}}"));
  for (const char* pod : {"{metadata: {name: low, namespace: d}, spec: {nodeName: full, ",
                          "{metadata: {name: high, namespace: d}, spec: {priority: 9, "
                          "nodeSelector: {kubernetes.io/hostname: full}, "}) {
    api.Put("/api/v1/pods",
            Yaml(std::string(pod) + "schedulerName: default-scheduler, containers: [{name: m}]}}"));
  }
  // A claim that waits for its first pod gets a volume that is there, another one that is made.
  api.Put("/apis/storage.k8s.io/v1/storageclasses",
          Yaml("{metadata: {name: c}, provisioner: csi.example.com, volumeBindingMode: "
               "WaitForFirstConsumer}"));
  api.Put("/api/v1/persistentvolumes",
          Yaml("{metadata: {name: v}, spec: {storageClassName: c, capacity: {storage: 1Gi}}, "
               "status: {phase: Available}}"));
  for (const std::string claim : {"a", "b"}) {
    api.Put("/api/v1/persistentvolumeclaims",
            Yaml("{metadata: {name: " + claim +
                 ", namespace: d}, spec: {storageClassName: c, resources: {requests: {storage: "
                 "1Gi}}}}"));
    api.Put("/api/v1/pods",
            Yaml("{metadata: {name: claims-" + claim +
                 ", namespace: d}, spec: {schedulerName: default-scheduler, containers: [{name: "
                 "m}], volumes: [{name: v, persistentVolumeClaim: {claimName: " +
                 claim + "}}]}}"));
  }
  client::InProcessTransport transport(loop, api, {});
  client::ApiClient client(loop, transport, "scheduler");
  client::InformerSet informers(client);
  PlainPool pool;
  Scheduler scheduler(client, informers, pool);
  scheduler.Start();
  informers.Start();
  loop.RunFor(minutes(1));
  // The reason of the one that does not fit changes and comes back: its event is counted again.
  api.Remove("/api/v1/nodes", "", "node-1");
  loop.RunFor(minutes(1));
  put_node();
  loop.RunFor(minutes(1));

  const std::set<std::string> allowed = Allowed(SchedulerRules());
  std::set<std::string> asked;
  for (const std::string& request : api.requests) asked.insert(WordsOf(request));
  for (const std::string& words : asked) EXPECT_TRUE(allowed.contains(words)) << words;
  for (const std::string& words : allowed) {
    // One object of these is never asked for, but `kubectl auth can-i` reads the three together.
    const bool is_get = words.starts_with("get ");
    EXPECT_TRUE(is_get || asked.contains(words)) << words << " is allowed and never asked for";
  }
}

TEST(Permissions, ObjectsBelongTogether) {
  const std::vector<json::Value> objects = SchedulerRbac("ml");
  ASSERT_EQ(objects.size(), 5U);
  for (const json::Value& object : objects) {
    EXPECT_EQ(object["metadata"]["name"].Str(), kSchedulerName);
    if (object.Has("roleRef")) {
      EXPECT_EQ(object["roleRef"]["name"].Str(), kSchedulerName);
      EXPECT_EQ(object["subjects"].items()[0]["namespace"].Str(), "ml");
    }
  }
}

}  // namespace
}  // namespace muster::scheduler
