#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/runtime/files.h"
#include "agent/volumes/atomic_files.h"
#include "agent/volumes/volume_plan.h"
#include "base/strings.h"
#include "json/parse.h"

namespace muster::agent {
namespace {

class Volumes : public testing::Test {
 protected:
  Volumes() {
    char path[] = "/tmp/agent-volumes-XXXXXX";
    dir_ = mkdtemp(path);
  }
  ~Volumes() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  std::string Read(const std::string& path) {
    return ReadSmallFile(dir_ + path).value_or("(absent)");
  }

  std::string dir_;
};

TEST_F(Volumes, WritesFilesBehindALink) {
  ASSERT_TRUE(WriteVolumeFiles(dir_, {{"a", "1", 0600}, {"sub/b", "2"}}, "v1").ok());
  EXPECT_EQ(Read("/a"), "1");
  EXPECT_EQ(Read("/sub/b"), "2");
  EXPECT_EQ(Read("/..data/a"), "1");
  struct stat info = {};
  ASSERT_EQ(stat((dir_ + "/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(Volumes, AnUpdateReplacesAllAtOnceAndRemovesWhatIsGone) {
  ASSERT_TRUE(WriteVolumeFiles(dir_, {{"a", "1"}, {"old", "x"}}, "v1").ok());
  ASSERT_TRUE(WriteVolumeFiles(dir_, {{"a", "2"}, {"new", "y"}}, "v2").ok());
  EXPECT_EQ(Read("/a"), "2");
  EXPECT_EQ(Read("/new"), "y");
  EXPECT_EQ(Read("/old"), "(absent)");
  EXPECT_EQ(ListDir(dir_), (std::vector<std::string>{"..data", "..muster_v2", "a", "new"}));
}

TEST_F(Volumes, TheFolderOfDevicePluginsIsTheNodesOwn) {
  for (const std::string& path : {std::string("/var/lib/kubelet/device-plugins"),
                                  std::string("/var/lib/kubelet/device-plugins/")}) {
    VolumePlan plan;
    plan.host_paths.push_back({"v", path, "Directory", "v", "", false, false});
    const Status status = PrepareVolumes(plan, dir_);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(plan.sources["v"], dir_ + "/kubelet/device-plugins");
  }
  VolumePlan beside;
  beside.host_paths.push_back({"v", dir_ + "/kubelet/device-plugins", "", "v", "", false, false});
  EXPECT_FALSE(PrepareVolumes(beside, dir_).ok()) << "by its own path it is the data folder's";
}

TEST_F(Volumes, RefusesPathsThatLeadOut) {
  for (const char* path : {"/etc/passwd", "../x", "a/../../x", "", "..data", "a//b"}) {
    EXPECT_FALSE(WriteVolumeFiles(dir_, {{path, "x"}}, "v1").ok()) << path;
  }
  const std::vector<VolumeFile> many(kMaxVolumeFiles + 1, {"a", ""});
  EXPECT_FALSE(WriteVolumeFiles(dir_, many, "v1").ok());
  EXPECT_FALSE(WriteVolumeFiles(dir_, {{"a", std::string(kMaxVolumeBytes + 1, 'x')}}, "v1").ok());
}

json::Value Pod(const std::string& volumes) {
  return *json::Parse(R"({"metadata":{"name":"p","namespace":"d"},"spec":{"volumes":[)" + volumes +
                      "]}}");
}

TEST_F(Volumes, PlansSecretsConfigMapsAndEmptyDirs) {
  PodInputs inputs;
  inputs.secrets["s"] = *json::Parse(R"({"data":{"k":"djE="}})");
  const json::Value pod =
      Pod(R"({"name":"s","secret":{"secretName":"s"}},{"name":"e","emptyDir":{}},)"
          R"({"name":"m","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}},{"name":"o",)"
          R"("configMap":{"name":"no","optional":true}})");
  const Result<VolumePlan> plan = PlanVolumes(pod, inputs, {}, "/pods/u");
  ASSERT_TRUE(plan.has_value()) << plan.error().message();
  EXPECT_EQ(plan->sources.at("e"), "/pods/u/volumes/e");
  EXPECT_EQ(plan->sources.at("s"), "/pods/u/sandbox/volumes/s");
  EXPECT_EQ(plan->directories, std::vector<std::string>{"/pods/u/volumes/e"});
  ASSERT_EQ(plan->shim_volumes.size(), 3u);
  EXPECT_EQ(plan->shim_volumes.At(0)["files"].At(0)["data"].AsString(), "djE=");
  EXPECT_EQ(plan->shim_volumes.At(1)["sizeBytes"].AsInt(), 1 << 20);
}

json::Value FilesOf(const VolumePlan& plan) {
  json::Value out = json::Obj();
  for (const json::Value& file : plan.shim_volumes.At(0)["files"].items()) {
    out = out.Set(file["path"].Str(),
                  fmt::format("{:o} {}", file["mode"].AsInt(),
                              Base64Decode(file["data"].AsString()).value_or("(broken)")));
  }
  return out;
}

TEST_F(Volumes, PutsAllSourcesOfAProjectedVolumeIntoOneFolder) {
  PodInputs inputs;
  inputs.config_maps["cm"] = *json::Parse(R"({"data":{"a":"of cm","both":"of cm"}})");
  inputs.secrets["s"] = *json::Parse(R"({"data":{"both":"dHdv"}})");
  inputs.tokens.emplace(TokenNeed{"vault", 600}, ServiceAccountToken{"jwt", {}, {}});
  const json::Value pod = Pod(
      R"({"name":"v","projected":{"defaultMode":288,"sources":[{"configMap":{"name":"cm"}},)"
      R"({"secret":{"name":"s"}},{"configMap":{"name":"none","optional":true}},)"
      R"({"serviceAccountToken":{"path":"sub/token","audience":"vault","expirationSeconds":600}},)"
      R"({"downwardAPI":{"items":[{"path":"ns","mode":256,)"
      R"("fieldRef":{"fieldPath":"metadata.namespace"}}]}}]}})");
  const Result<VolumePlan> plan = PlanVolumes(pod, inputs, {}, "/pods/u");
  ASSERT_TRUE(plan.has_value()) << plan.error().message();
  ASSERT_EQ(plan->shim_volumes.size(), 1u);
  EXPECT_EQ(
      FilesOf(*plan),
      json::Obj(
          {{"a", "440 of cm"}, {"both", "440 two"}, {"sub/token", "440 jwt"}, {"ns", "400 d"}}))
      << "the later of two sources with one path counts";
  EXPECT_TRUE(HasFiles(*plan));
  inputs.tokens.at({"vault", 600}) = ServiceAccountToken{"new", {}, {}};
  EXPECT_NE(PlanVolumes(pod, inputs, {}, "/pods/u")->shim_volumes, plan->shim_volumes);
}

TEST_F(Volumes, SaysWhyAProjectedSourceFails) {
  const auto error = [](const std::string& source, const PodInputs& inputs = {}) {
    const auto plan = PlanVolumes(Pod(R"({"name":"v","projected":{"sources":[)" + source + "]}}"),
                                  inputs, {}, "/pods/u");
    return plan.has_value() ? "" : plan.error().message();
  };
  const std::string prefix = "MountVolume.SetUp failed for volume \"v\" : ";
  PodInputs inputs;
  inputs.config_maps["cm"] = *json::Parse(R"({"data":{"a":"1"}})");
  inputs.secrets["s"] = *json::Parse(R"({"data":{"a":"MQ=="}})");
  inputs.tokens.emplace(TokenNeed{},
                        Error(Reason::kNotFound, "serviceaccounts \"builder\" not found"));
  EXPECT_EQ(error(R"({"serviceAccountToken":{"path":"t"}})", inputs),
            prefix + "failed to fetch token: serviceaccounts \"builder\" not found");
  EXPECT_EQ(error(R"({"secret":{"name":"x"}})"), prefix + "secret \"x\" not found");
  EXPECT_EQ(error(R"({"configMap":{"name":"cm","items":[{"key":"b","path":"b"}]}})", inputs),
            prefix + "references non-existent config key: b");
  EXPECT_EQ(error(R"({"secret":{"name":"s","items":[{"key":"b","path":"b"}]}})", inputs),
            prefix + "references non-existent secret key: b");
  EXPECT_EQ(error(R"({"clusterTrustBundle":{"name":"x","path":"ca"}})"),
            prefix + "projected source clusterTrustBundle is not supported on this node");
}

TEST_F(Volumes, PlansWhatAServerKeepsWithoutAClaim) {
  const json::Value pod = Pod(R"({"name":"rw","nfs":{"server":"s","path":"/e"}},)"
                              R"({"name":"ro","nfs":{"server":"s","path":"/e","readOnly":true}})")
                              .SetPath({"spec", "securityContext", "fsGroup"}, int64_t{5000});
  Result<VolumePlan> plan = PlanVolumes(pod, {}, {}, dir_ + "/pods/u");
  ASSERT_TRUE(plan.has_value()) << plan.error().message();
  ASSERT_EQ(plan->network_volumes.size(), 2u);
  EXPECT_EQ(plan->network_volumes[0].shown, "rw");
  EXPECT_TRUE(plan->network_volumes[0].options.empty());
  EXPECT_EQ(plan->network_volumes[1].options, std::vector<std::string>{"ro"});
  EXPECT_EQ(plan->read_only, std::set<std::string>{"ro"});
  // Its group is the server's business: nothing there is touched.
  ASSERT_TRUE(PrepareVolumes(*plan, dir_).ok());
  EXPECT_FALSE(PathExists(dir_ + "/pods"));
  const auto mounts =
      ContainerMounts(*json::Parse(R"({"name":"c","volumeMounts":[{"name":"ro","mountPath":"/ro"},)"
                                   R"({"name":"rw","mountPath":"/rw","subPath":"mine"},)"
                                   R"({"name":"rw","mountPath":"/x","readOnly":true}]})"),
                      *plan, {});
  ASSERT_TRUE(mounts.has_value());
  EXPECT_TRUE((*mounts)[0].read_only);
  EXPECT_EQ((*mounts)[0].source, dir_ + "/pods/u/volumes/kubernetes.io~nfs/ro");
  EXPECT_FALSE((*mounts)[1].read_only);
  EXPECT_EQ((*mounts)[1].sub_path, "mine");
  EXPECT_TRUE((*mounts)[2].read_only);
}

TEST_F(Volumes, SaysWhatIsMissingOrNotSupported) {
  const auto missing =
      PlanVolumes(Pod(R"({"name":"c","configMap":{"name":"cm"}})"), {}, {}, "/pods/u");
  EXPECT_EQ(missing.error().message(),
            "MountVolume.SetUp failed for volume \"c\" : configmap \"cm\" not found");
  const auto kind = PlanVolumes(Pod(R"({"name":"c","iscsi":{"lun":0}})"), {}, {}, "/p");
  EXPECT_NE(kind.error().message().find("volumes of kind iscsi are not supported"),
            std::string::npos);
}

TEST_F(Volumes, ChecksHostPathTypes) {
  const auto prepare = [&](const std::string& path, const std::string& type) {
    VolumePlan plan;
    plan.host_paths.push_back({"v", path, type});
    return PrepareVolumes(plan, dir_ + "/data");
  };
  ASSERT_TRUE(MakeDirs(dir_ + "/data").ok());
  ASSERT_TRUE(WriteFile(dir_ + "/file", "").ok());
  EXPECT_TRUE(prepare(dir_ + "/file", "File").ok());
  EXPECT_FALSE(prepare(dir_ + "/file", "Directory").ok());
  EXPECT_FALSE(prepare(dir_ + "/none", "Directory").ok());
  EXPECT_TRUE(prepare(dir_ + "/made", "DirectoryOrCreate").ok());
  EXPECT_TRUE(PathExists(dir_ + "/made"));
  EXPECT_FALSE(prepare("relative", "").ok());
  EXPECT_FALSE(prepare(dir_ + "/../x", "").ok());
  EXPECT_FALSE(prepare(dir_ + "/data/x", "DirectoryOrCreate").ok());
  EXPECT_FALSE(PathExists(dir_ + "/data/x"));
  ASSERT_EQ(symlink((dir_ + "/data").c_str(), (dir_ + "/link").c_str()), 0);
  EXPECT_FALSE(prepare(dir_ + "/link", "").ok()) << "a link into the data folder";
}

TEST_F(Volumes, HidesTheDataFolderInsideAHostPath) {
  ASSERT_TRUE(MakeDirs(dir_ + "/data").ok());
  VolumePlan plan;
  plan.host_paths.push_back({"v", dir_, ""});
  ASSERT_TRUE(PrepareVolumes(plan, dir_ + "/data").ok());
  EXPECT_EQ(plan.hidden.at("v"), "data");
}

TEST_F(Volumes, MountsExpandSubPathsAndRefuseBadOnes) {
  VolumePlan plan;
  plan.sources["v"] = "/src";
  const auto mounts = [&](const std::string& text) {
    return ContainerMounts(*json::Parse(R"({"name":"c","volumeMounts":[)" + text + "]}"), plan,
                           {{"POD", "p"}});
  };
  const auto good =
      mounts(R"j({"name":"v","mountPath":"/m","subPathExpr":"a/$(POD)","readOnly":true})j");
  ASSERT_TRUE(good.has_value());
  EXPECT_EQ((*good)[0].sub_path, "a/p");
  EXPECT_TRUE((*good)[0].read_only);
  EXPECT_FALSE(mounts(R"({"name":"v","mountPath":"/m","subPath":"../x"})").has_value());
  EXPECT_FALSE(mounts(R"({"name":"nope","mountPath":"/m"})").has_value());
}

}  // namespace
}  // namespace muster::agent
