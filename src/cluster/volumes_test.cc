#include "cluster/volumes.h"

#include <string>

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::cluster {
namespace {

json::Value Yaml(const std::string& text) { return json::ParseYaml(text).value()[0]; }

VolumeInfo VolumeIn(const std::string& label, const std::string& zones) {
  return ToVolumeInfo(Yaml("{metadata: {name: v, labels: {" + label + ": '" + zones + "'}}}"));
}

bool IsIn(const VolumeInfo& volume, const Labels& labels) {
  return IsInZoneOf(volume, {labels, "", false, "n0"});
}

TEST(Volumes, ReadsWhatPodsClaimOnceEach) {
  const std::vector<ClaimUse> uses = ToClaimUses(Yaml(
      "{metadata: {namespace: d, name: p, uid: u}, spec: {volumes: [{name: a, "
      "persistentVolumeClaim: {claimName: x}}, {name: b, persistentVolumeClaim: {claimName: x}}, "
      "{name: c, emptyDir: {}}, {name: e, ephemeral: {volumeClaimTemplate: {spec: {}}}}]}}"));
  EXPECT_EQ(uses, (std::vector<ClaimUse>{{{"d", "x"}, "", ""}, {{"d", "p-e"}, "p", "u"}}));
}

TEST(Volumes, AClaimIsBoundOnceBothSidesAgree) {
  const std::string spec = "spec: {volumeName: v, accessModes: [ReadWriteOncePod]}";
  EXPECT_FALSE(ToClaimInfo(Yaml("{metadata: {name: c}, " + spec + "}")).bound);
  const ClaimInfo claim = ToClaimInfo(
      Yaml("{metadata: {name: c, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, " + spec +
           "}"));
  EXPECT_TRUE(claim.bound);
  EXPECT_EQ(claim.modes, kReadWriteOncePod);
}

TEST(Volumes, TheAnnotationOfOldBeatsTheClass) {
  const std::string text =
      "{metadata: {name: c, annotations: {volume.beta.kubernetes.io/storage-class: old}}, "
      "spec: {storageClassName: new}}";
  EXPECT_EQ(ToClaimInfo(Yaml(text)).class_name, "old");
  EXPECT_EQ(ToVolumeInfo(Yaml(text)).class_name, "old");
}

// Nothing is large enough for a claim that cannot be read, and a volume that cannot be read is not.
TEST(Volumes, AbsurdSizesMatchNothing) {
  const ClaimInfo claim =
      ToClaimInfo(Yaml("{metadata: {name: c}, spec: {resources: {requests: {storage: many}}}}"));
  const VolumeInfo volume =
      ToVolumeInfo(Yaml("{metadata: {name: v}, spec: {capacity: {storage: much}}}"));
  const VolumeInfo huge =
      ToVolumeInfo(Yaml("{metadata: {name: v}, spec: {capacity: {storage: 4096Pi}}}"));
  EXPECT_GT(claim.bytes, huge.bytes);
  EXPECT_GT(huge.bytes, int64_t{1} << 60);
  EXPECT_EQ(volume.bytes, 0);
}

TEST(Volumes, AnUnreadableSelectorSelectsNothing) {
  EXPECT_TRUE(ToClaimInfo(Yaml("{metadata: {name: c}, spec: {selector: {matchExpressions: "
                               "[{key: a, operator: Like}]}}}"))
                  .selector.selects_nothing());
  EXPECT_TRUE(ToClaimInfo(Yaml("{metadata: {name: c}}")).selector.empty());
}

TEST(Volumes, ZonesAreSetsAndLabelsOfOldMeanThoseOfToday) {
  const std::string zone = "topology.kubernetes.io/zone";
  const std::string old = "failure-domain.beta.kubernetes.io/zone";
  EXPECT_TRUE(IsIn(VolumeIn(zone, "a__b"), {{zone, "b"}}));
  EXPECT_FALSE(IsIn(VolumeIn(zone, "a__b"), {{zone, "c"}}));
  EXPECT_TRUE(IsIn(VolumeIn(old, "a"), {{zone, "a"}}));
  EXPECT_FALSE(IsIn(VolumeIn(zone, "a"), {{old, "a"}}));
  // A node without any of the labels is everywhere; one with another of them is not.
  EXPECT_TRUE(IsIn(VolumeIn(zone, "a"), {{"rack", "1"}}));
  EXPECT_FALSE(IsIn(VolumeIn(zone, "a"), {{"topology.kubernetes.io/region", "r"}}));
  // A label that cannot be read says nothing.
  EXPECT_TRUE(IsIn(VolumeIn(zone, "a____b"), {{zone, "c"}}));
}

TEST(Volumes, AVolumeLooksAtLabelsNotAtNames) {
  const VolumeInfo volume =
      ToVolumeInfo(Yaml("{metadata: {name: v}, spec: {nodeAffinity: {required: {nodeSelectorTerms: "
                        "[{matchFields: [{key: metadata.name, operator: In, values: [n0]}]}]}}}}"));
  const Labels none;
  EXPECT_FALSE(Reaches(volume, {none, "", false, "n0"}));
  EXPECT_TRUE(Reaches(ToVolumeInfo(Yaml("{metadata: {name: v}}")), {none, "", false, "n0"}));
}

TEST(Volumes, ADecisionStandsWhileSomePodNeedsIt) {
  Storage storage;
  const VolumeChoice choice{{"d", "c"}, "v", "n"};
  storage.Decide(choice);
  storage.Decide(choice);
  storage.Undo(choice);
  EXPECT_TRUE(storage.taken.contains("v"));
  storage.Undo(choice);
  EXPECT_TRUE(storage.taken.empty());
  EXPECT_TRUE(storage.decided.empty());
}

}  // namespace
}  // namespace muster::cluster
