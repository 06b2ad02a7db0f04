// Names, credentials and configurations of images: what needs no programs.

#include <gtest/gtest.h>
#include <signal.h>

#include "agent/images/image_credentials.h"
#include "agent/images/image_record.h"
#include "agent/images/image_reference.h"
#include "agent/shim/container_user.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::agent {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');

TEST(ImageReference, NamesAreMadeWholeAsDockerDoes) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"nginx", "docker.io/library/nginx:latest"},
      {"nginx:1.25", "docker.io/library/nginx:1.25"},
      {"pytorch/pytorch:2.2.0-cuda12.1", "docker.io/pytorch/pytorch:2.2.0-cuda12.1"},
      {"index.docker.io/nginx", "docker.io/library/nginx:latest"},
      {"localhost/a", "localhost/a:latest"},
      {"localhost:5000/a/b:v_1", "localhost:5000/a/b:v_1"},
      {"nvcr.io/nvidia/k8s-device-plugin:v0.15.0", "nvcr.io/nvidia/k8s-device-plugin:v0.15.0"},
      {"[::1]:5000/a", "[::1]:5000/a:latest"},
      {"a__b/c---d.e", "docker.io/a__b/c---d.e:latest"},
      {"nginx@" + kDigest, "docker.io/library/nginx@" + kDigest},
      {"nginx:1@" + kDigest, "docker.io/library/nginx@" + kDigest},
  };
  for (const auto& [name, whole] : rows) {
    const auto reference = ParseImageReference(name);
    ASSERT_TRUE(reference.has_value()) << name << ": " << reference.error().message();
    EXPECT_EQ(reference->Name(), whole);
    EXPECT_EQ(ParseImageReference(whole)->Name(), whole);
  }
}

TEST(ImageReference, RefusesWhatIsNoName) {
  for (const char* name :
       {"", "Nginx", "a b", "a:", ":1", "a//b", "/a", "a/", "-a", "a.", "a..b", "a___b",
        "a@sha256:12", "a@md5:1", "a:b c", "host:99999/a", "a:-x", "https://docker.io/a", "$(X)"}) {
    const auto reference = ParseImageReference(name);
    EXPECT_FALSE(reference.has_value()) << name;
    if (!reference) {
      EXPECT_TRUE(reference.error().message().starts_with("couldn't parse image name")) << name;
    }
  }
  EXPECT_NE(ParseImageReference("a/Nginx").error().message().find("must be lowercase"),
            std::string::npos);
}

TEST(ImageReference, TwoNamesAreTheMachine) {
  EXPECT_TRUE(IsMachineImage("none") && IsMachineImage("host"));
  EXPECT_TRUE(IsMachineImage("none:1.16.0"));  // as charts write it
  for (const char* name : {"", "nonesuch", "library/none", "host:latest", "nginx"})
    EXPECT_FALSE(IsMachineImage(name)) << name;
}

TEST(ImageReference, KeepsItsLimits) {
  const std::string longest(kMaxImageNameBytes - std::string("docker.io/library/").size(), 'a');
  EXPECT_TRUE(ParseImageReference(longest).has_value());
  EXPECT_FALSE(ParseImageReference(longest + "a").has_value());
  EXPECT_TRUE(ParseImageReference("a:" + std::string(kMaxImageTagBytes, 'b')).has_value());
  EXPECT_FALSE(ParseImageReference("a:" + std::string(kMaxImageTagBytes + 1, 'b')).has_value());
}

TEST(ImageReference, KnowsRegistriesOnLoopback) {
  for (const char* name : {"localhost/a", "localhost:5000/a", "127.0.0.1:5000/a", "[::1]:5/a"})
    EXPECT_TRUE(ParseImageReference(name)->OnLoopback()) << name;
  for (const char* name : {"a", "localhost.example.com/a", "10.0.0.1:5000/a"})
    EXPECT_FALSE(ParseImageReference(name)->OnLoopback()) << name;
}

json::Value Secret(const std::string& key, const std::string& text) {
  return json::Obj({{"data", json::Obj({{key, Base64Encode(text)}})}});
}

TEST(ImageCredentials, TheLongestMatchComesFirst) {
  const std::vector<json::Value> secrets = {
      Secret(".dockerconfigjson",
             R"({"auths":{"https://index.docker.io/v1/":{"auth":"aHVi"},
                          "reg.example.com":{"username":"u","password":"p"},
                          "reg.example.com/team":{"auth":"dGVhbQ=="},
                          "*.cloud.io":{"auth":"Z2xvYg=="}, "empty.io":{}}})"),
      Secret(".dockercfg", R"({"old.example.com:5000":{"auth":"b2xk"}})"),
      Secret(".dockerconfigjson", "not JSON"),
      json::Obj({{"data", json::Obj({{"tls.crt", "!"}})}}),
  };
  const auto of = [&](const char* name) {
    return Join(CredentialsFor(*ParseImageReference(name), secrets), " ");
  };
  EXPECT_EQ(of("nginx"), "aHVi");
  EXPECT_EQ(of("reg.example.com/team/a:1"), "dGVhbQ== " + Base64Encode("u:p"));
  EXPECT_EQ(of("reg.example.com/teams/a"), Base64Encode("u:p"));
  EXPECT_EQ(of("eu.cloud.io/a"), "Z2xvYg==");
  EXPECT_EQ(of("a.eu.cloud.io/a"), "");
  EXPECT_EQ(of("old.example.com:5000/a"), "b2xk");
  EXPECT_EQ(of("old.example.com/a"), "");
  EXPECT_EQ(of("empty.io/a"), "");
  EXPECT_EQ(AuthFile(*ParseImageReference("reg.example.com/team/a"), "eA=="),
            R"({"auths":{"reg.example.com":{"auth":"eA=="}}})");
}

TEST(ImageRecord, KeepsWhatTheConfigurationSays) {
  ImageRecord record;
  record.id = kDigest;
  record.root = "r-1";
  record.names = {"docker.io/library/nginx:latest"};
  record.digests = {"docker.io/library/nginx@" + kDigest};
  record.blobs = {kDigest};
  record.size_bytes = 7;
  record.disk_bytes = 9;
  record.config = ParseImageConfig(*json::Parse(
      R"({"config":{"Entrypoint":["/e"],"Cmd":["c"],"Env":["A=1"],"User":"1:2",
          "WorkingDir":"/w","StopSignal":"SIGQUIT"}})"));
  const ImageRecord read = ImageRecordFromJson(*json::Parse(json::Write(ToJson(record))));
  EXPECT_EQ(read.config, record.config);
  EXPECT_EQ(read.config.entrypoint, std::vector<std::string>{"/e"});
  EXPECT_EQ(read.size_bytes + read.disk_bytes, 16);
  EXPECT_TRUE(read.IsCalled(*ParseImageReference("nginx")));
  EXPECT_TRUE(read.IsCalled(*ParseImageReference("nginx@" + kDigest)));
  EXPECT_FALSE(read.IsCalled(*ParseImageReference("nginx:1")));
  EXPECT_EQ(read.ImageId(), "docker.io/library/nginx@" + kDigest);
}

TEST(ContainerUser, IsOfTheContainersOwnFiles) {
  const std::string passwd =
      "root:x:0:0:root:/root:/bin/sh\nweb:x:33:34:Web:/var/www:/bin/sh\nbad line\n";
  const std::string group = "root:x:0:\nwww:x:34:\nextra:x:77:web,other\nmore:x:78:other\n";
  const auto of = [&](const char* text) -> std::string {
    const auto user = FindContainerUser(text, passwd, group);
    if (!user) return user.error().message();
    std::string out = fmt::format("{}:{} {}", user->uid, user->gid, user->home);
    for (const gid_t gid : user->groups) out += fmt::format(" +{}", gid);
    return out;
  };
  EXPECT_EQ(of(""), "0:0 /root");
  EXPECT_EQ(of("0"), "0:0 /root");
  EXPECT_EQ(of("web"), "33:34 /var/www +77");
  EXPECT_EQ(of("33"), "33:34 /var/www +77");
  EXPECT_EQ(of("1000"), "1000:0 /");
  EXPECT_EQ(of("1000:1001"), "1000:1001 /");
  EXPECT_EQ(of("web:extra"), "33:77 /var/www");
  EXPECT_EQ(of("web:5"), "33:5 /var/www");
  EXPECT_EQ(of(":www"), "0:34 /root");
  EXPECT_EQ(of("nginx"), "unable to find user nginx: no matching entries in passwd file");
  EXPECT_EQ(of("web:nobody"), "unable to find group nobody: no matching entries in group file");
  EXPECT_EQ(of("99999999999"),
            "unable to find user 99999999999: no matching entries in passwd file");
}

}  // namespace
}  // namespace muster::agent
