#include "schema/preemptible_nodes.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::schema {
namespace {

json::Value Of(const std::string& text) { return *json::Parse(text); }

TEST(PreemptibleNodes, AreKnownByTheLabelsOfClouds) {
  EXPECT_EQ(PreemptibleLabel(Of(R"({"karpenter.sh/capacity-type":"spot"})")),
            "karpenter.sh/capacity-type=spot");
  EXPECT_EQ(PreemptibleLabel(Of(R"({"cloud.google.com/gke-preemptible":"true"})")),
            "cloud.google.com/gke-preemptible=true");
  EXPECT_EQ(PreemptibleLabel(Of(R"({"karpenter.sh/capacity-type":"on-demand"})")), "");
  EXPECT_EQ(PreemptibleLabel(json::Value()), "");
}

TEST(PreemptibleNodes, AreAskedForBySelectorOrAffinity) {
  EXPECT_EQ(PreemptibleDemand(Of(R"({"nodeSelector":{"cloud.google.com/gke-spot":"true"}})")),
            "cloud.google.com/gke-spot=true");
  const auto affinity = [](const std::string& terms) {
    return Of(R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
              R"({"nodeSelectorTerms":[)" +
              terms + "]}}}}");
  };
  const auto in = [](const std::string& values) {
    return R"({"matchExpressions":[{"key":"karpenter.sh/capacity-type","operator":"In",)"
           R"("values":[)" +
           values + "]}]}";
  };
  const std::string spot = in(R"("spot")"), either = in(R"("spot","on-demand")");
  EXPECT_EQ(PreemptibleDemand(affinity(spot)), "karpenter.sh/capacity-type=spot");
  EXPECT_EQ(PreemptibleDemand(affinity(either)), "");
  EXPECT_EQ(PreemptibleDemand(affinity(spot + "," + either)), "");
  EXPECT_EQ(PreemptibleDemand(json::Value()), "");
}

}  // namespace
}  // namespace muster::schema
