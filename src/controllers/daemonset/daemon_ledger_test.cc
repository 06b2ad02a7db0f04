// What a DaemonSet's controller remembers makes no difference: beside random changes it wants what
// one wants that sees everything for the first time.

#include "controllers/daemonset/daemon_ledger.h"

#include <string>
#include <utility>

#include "controllers/controller_test_base.h"
#include "controllers/daemonset/daemonset_controller.h"
#include "controllers/history/history.h"
#include "controllers/pods/pod_facts.h"
#include "json/write.h"

namespace muster::controllers {
namespace {

constexpr int kStories = 40;
constexpr int kSteps = 60;

class DaemonLedgerTest : public ControllerTest {
 protected:
  explicit DaemonLedgerTest(uint64_t seed = 1) : rng_(seed) {
    auto controller = std::make_unique<DaemonSetController>();
    controller_ = controller.get();
    Start(std::move(controller));
  }
  void TestBody() override {}

 public:
  void Tell() {
    PutSet();
    for (int step = 0; step < kSteps; ++step) {
      Change();
      loop_.RunFor(milliseconds(rng_.Between(0, 3) * rng_.Between(0, 400)));
      ASSERT_EQ(Wanted(*controller_), Wanted(*std::make_unique<DaemonSetController>()))
          << "step " << step;
    }
    writes_ = api_.requests.size();
  }
  size_t writes() const { return writes_; }

 private:
  std::string Wanted(DaemonSetController& controller) {
    client::View view(informers_);
    const client::Reconciled pass = controller.Reconcile(view, {}, {"d", "agent"}, loop_.Now(), 7);
    std::string text;
    for (const client::Write& write : pass.writes) {
      text += fmt::format("{} {} {} {}\n", static_cast<int>(write.verb),
                          client::ApiClient::PathOf(write.target), json::Write(write.body),
                          write.delete_options.precondition_uid);
    }
    for (const client::EventToRecord& event : pass.events) text += event.message + "\n";
    if (pass.look_again_at.has_value()) text += FormatTime(*pass.look_again_at);
    return text;
  }

  std::string NodeName() { return fmt::format("n{}", rng_.Between(1, 8)); }
  json::Value AnyPod() {
    const std::vector<json::Value> pods = All(kPods);
    return pods.empty() ? json::Value() : pods[rng_.Below(pods.size())];
  }
  void PutSet() {
    Put(kDaemonSets,
        fmt::format(R"(
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent, namespace: d, uid: s1, generation: 1}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
  minReadySeconds: {}
  updateStrategy: {{type: {}, rollingUpdate: {{{}}}}}
  template:
    metadata: {{labels: {{app: agent}}}}
    spec: {{containers: [{{name: c, image: v{}}}], nodeSelector: {{{}}}}}
)",
                    rng_.Chance(0.5) ? 2 : 0, rng_.Chance(0.1) ? "OnDelete" : "RollingUpdate",
                    rng_.Chance(0.5) ? "maxSurge: 30%" : "maxUnavailable: 2", rng_.Between(1, 3),
                    rng_.Chance(0.2) ? "gpu: 'yes'" : ""));
  }
  void PutNode() {
    Put(kNodes, fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: {}, labels: {{{}}}}}, "
                            "spec: {{taints: [{}]}}}}",
                            NodeName(), rng_.Chance(0.7) ? "gpu: 'yes'" : "",
                            rng_.Chance(0.2)   ? "{key: k, effect: NoExecute}"
                            : rng_.Chance(0.2) ? "{key: k, effect: NoSchedule}"
                                               : ""));
  }

  void Change() {
    const json::Value pod = AnyPod();
    const uint64_t what = rng_.Below(10);
    if (what < 3) return PutNode();
    if (what == 3) return api_.Remove(kNodes, "", NodeName());
    if (what == 4 && rng_.Chance(0.5)) return PutSet();
    if (pod.IsNull()) return;
    if (what == 5) return ChangePod(pod);
    if (what == 6 && rng_.Chance(0.5)) return api_.Remove(kPods, "d", NameOf(pod));
    MakeReady(pod.SetPath({"spec", "nodeName"}, NodeOfDaemonPod(pod)));
  }
  void ChangePod(const json::Value& pod) {
    switch (rng_.Below(5)) {
      case 0:
        return api_.Put(kPods, pod.SetPath({"status", "phase"}, "Failed"));
      case 1:
        return api_.Put(kPods, pod.SetPath({"status", "conditions"}, json::Array()));
      case 2:  // released
        return api_.Put(kPods, pod.SetPath({"metadata", "labels", "app"}, "other"));
      case 3:  // adopted
        return api_.Put(kPods, pod.RemovePath({"metadata", "ownerReferences"}));
      default:
        return api_.Put(kPods, pod.SetPath({"metadata", "finalizers"}, json::List({"test/slow"})));
    }
  }

  Rng rng_;
  DaemonSetController* controller_ = nullptr;
  size_t writes_ = 0;
};

class Story final : public DaemonLedgerTest {
 public:
  explicit Story(uint64_t seed) : DaemonLedgerTest(seed) {}
};

TEST(DaemonLedger, RememberingMakesNoDifference) {
  size_t writes = 0;
  for (int seed = 1; seed <= kStories; ++seed) {
    SCOPED_TRACE(seed);
    Story story(static_cast<uint64_t>(seed));
    story.Tell();
    if (testing::Test::HasFatalFailure()) return;
    writes += story.writes();
  }
  EXPECT_GT(writes, size_t{kStories} * kSteps / 2);  // something happened
}

}  // namespace
}  // namespace muster::controllers
