#include "serving/serving_controller.h"

#include <gtest/gtest.h>

#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "client/informer.h"
#include "loop/sim_loop.h"
#include "serving/graph_controller.h"
#include "serving/test_services.h"

namespace muster::serving {
namespace {

using client::ObjectKey;
using json::Value;
namespace resources = client::resources;

using Keys = std::vector<ObjectKey>;

// Whom a change of `object` concerns.
Keys Woken(const std::vector<client::Trigger>& triggers, const client::Resource& resource,
           const Value& before, const Value& after) {
  Keys keys;
  const ObjectKey key = client::KeyOf(after.IsNull() ? before : after);
  for (const client::Trigger& trigger : triggers) {
    if (!(trigger.resource == resource)) continue;
    for (ObjectKey& one : trigger.keys(key, before, after)) keys.push_back(std::move(one));
  }
  return keys;
}

template <typename Controller>
class Looks {
 public:
  Looks() {
    informers_.Start();
    loop_.RunFor(seconds(1));
  }
  const std::vector<client::Trigger>& triggers() const { return triggers_; }
  void At(const char* path, const Value& object) {
    api_.Put(path, object);
    loop_.RunFor(seconds(1));
    controller_.Reconcile(client::View(informers_), {}, client::KeyOf(object), loop_.Now(), 1);
  }

 private:
  SimLoop loop_;
  client::FakeApi api_{loop_};
  client::InProcessTransport transport_{loop_, api_, {"", "serving", {}}};
  client::ApiClient client_{loop_, transport_, "serving"};
  client::InformerSet informers_{client_};
  Controller controller_{GatewayAddress{"10.42.0.1", 8012}};
  const std::vector<client::Trigger> triggers_ = controller_.Setup(informers_);
};

// Who was told to delete it, or to rename his own, does so, and it goes on.
TEST(ServingController, LooksAgainWhenWhatSomebodyElseHadOfItsNamesGoes) {
  Looks<ServingController> looks;
  looks.At("/apis/serving.kserve.io/v1beta1/inferenceservices", Iris());
  const Keys iris = {{"ml", "iris"}};
  for (const char* name : {"iris", "iris-predictor", "iris-predictor-canary"}) {
    const Value stranger = Yaml(fmt::format("{{metadata: {{name: {}, namespace: ml}}}}", name));
    EXPECT_EQ(Woken(looks.triggers(), resources::kServices, stranger, {}), iris) << name;
    EXPECT_EQ(Woken(looks.triggers(), resources::kServices, {}, stranger), iris) << name;
    EXPECT_EQ(Woken(looks.triggers(), resources::kServices, stranger, stranger), Keys{}) << name;
  }
  EXPECT_EQ(Woken(looks.triggers(), resources::kDeployments,
                  Yaml("{metadata: {name: iris-predictor, namespace: ml}}"), {}),
            iris);
  EXPECT_EQ(Woken(looks.triggers(), resources::kServices,
                  Yaml("{metadata: {name: rose, namespace: ml}}"), {}),
            Keys{});
}

TEST(GraphController, LooksAgainWhenWhatSomebodyElseHadOfItsNamesGoes) {
  Looks<GraphController> looks;
  looks.At("/apis/serving.kserve.io/v1alpha1/inferencegraphs",
           Yaml("{kind: InferenceGraph, metadata: {name: chain, namespace: ml, uid: g1}}"));
  const Keys chain = {{"ml", "chain"}};
  EXPECT_EQ(Woken(looks.triggers(), resources::kServices,
                  Yaml("{metadata: {name: chain, namespace: ml}}"), {}),
            chain);
  EXPECT_EQ(Woken(looks.triggers(), resources::kEndpointSlices,
                  Yaml("{metadata: {name: chain-gateway, namespace: ml}}"), {}),
            chain);
  EXPECT_EQ(Woken(looks.triggers(), resources::kServices,
                  Yaml("{metadata: {name: other, namespace: ml}}"), {}),
            Keys{});
}

}  // namespace
}  // namespace muster::serving
