#include "client/kubeconfig.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"
#include "json/parse.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;

constexpr const char* kText = R"(
apiVersion: v1
kind: Config
current-context: lab
clusters:
- name: lab
  cluster:
    server: https://10.0.0.1:6443/k8s/
    certificate-authority: pki/ca.crt
- name: cloud
  cluster: {server: "https://api.example.com", insecure-skip-tls-verify: true, tls-server-name: inner}
users:
- name: me
  user: {client-certificate-data: Y2VydA==, client-key-data: a2V5}
- name: robot
  user: {token: t0ken}
- name: plugin
  user: {exec: {command: aws}}
contexts:
- name: lab
  context: {cluster: lab, user: me, namespace: team}
- name: cloud
  context: {cluster: cloud, user: robot}
- name: nobody
  context: {cluster: cloud}
- name: broken
  context: {cluster: gone, user: me}
- name: plugged
  context: {cluster: cloud, user: plugin}
)";

class KubeconfigTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("muster-kubeconfig-test-" + std::to_string(getpid()));
    fs::create_directories(dir_ / "pki");
    std::ofstream(dir_ / "pki" / "ca.crt") << "authority";
    std::ofstream(dir_ / "config") << kText;
  }
  void TearDown() override { fs::remove_all(dir_); }
  fs::path dir_;
};

TEST_F(KubeconfigTest, FollowsTheCurrentContext) {
  auto config = Kubeconfig::LoadFile(dir_ / "config");
  ASSERT_TRUE(config.has_value()) << config.error().ToString();
  auto lab = config->Connect();
  ASSERT_TRUE(lab.has_value()) << lab.error().ToString();
  EXPECT_EQ(lab->endpoint.ToString(), "https://10.0.0.1:6443");
  EXPECT_EQ(lab->path_prefix, "/k8s");
  EXPECT_EQ(lab->tls.ca_pem, "authority") << "relative to the file";
  EXPECT_EQ(lab->tls.certificate_pem, "cert");
  EXPECT_EQ(lab->tls.key_pem, "key");
  EXPECT_EQ(lab->ns, "team");
}

TEST_F(KubeconfigTest, ConnectsToAnotherContext) {
  auto config = Kubeconfig::LoadFile(dir_ / "config");
  auto cloud = config->Connect("cloud");
  ASSERT_TRUE(cloud.has_value()) << cloud.error().ToString();
  EXPECT_EQ(cloud->bearer_token, "t0ken");
  EXPECT_EQ(cloud->endpoint.server_name, "inner");
  EXPECT_TRUE(cloud->tls.insecure_skip_verify);
  EXPECT_EQ(cloud->ns, "default");
  EXPECT_TRUE(config->Connect("nobody").has_value());
}

TEST_F(KubeconfigTest, SaysWhatIsWrong) {
  auto config = Kubeconfig::LoadFile(dir_ / "config");
  EXPECT_NE(config->Connect("none").error().message().find("there is: lab, cloud"),
            std::string::npos);
  EXPECT_NE(config->Connect("broken").error().message().find("cluster \"gone\" not found"),
            std::string::npos);
  EXPECT_NE(config->Connect("plugged").error().message().find("exec"), std::string::npos);
  EXPECT_EQ(Kubeconfig::LoadFile(dir_ / "absent").error().reason(), Reason::kNotFound);
  EXPECT_FALSE(Kubeconfig::Parse("[1, 2]", ".").has_value());
  EXPECT_EQ(Kubeconfig::Parse("", ".")->Connect().error().message(),
            "kubeconfig: it names no context");
}

TEST_F(KubeconfigTest, MergesFilesAndTheFirstWins) {
  std::ofstream(dir_ / "second")
      << "current-context: other\ncontexts:\n- name: lab\n  context: {cluster: x}\n"
         "- name: other\n  context: {cluster: lab, user: me}\n";
  auto config = Kubeconfig::LoadFiles({dir_ / "absent", dir_ / "config", dir_ / "second"});
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->current_context(), "lab");
  EXPECT_TRUE(config->Connect("lab").has_value());
  EXPECT_TRUE(config->Connect("other").has_value());
  EXPECT_FALSE(Kubeconfig::LoadFiles({dir_ / "absent"}).has_value());
}

TEST_F(KubeconfigTest, WritesWhatItReads) {
  std::string path = dir_ / "written";
  json::Value made = MakeKubeconfig("muster", "https://127.0.0.1:6443", "CA", "CERT", "KEY");
  ASSERT_TRUE(WriteKubeconfig(path, made).ok());
  struct stat info{};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  auto connection = Kubeconfig::LoadFile(path)->Connect();
  ASSERT_TRUE(connection.has_value()) << connection.error().ToString();
  EXPECT_EQ(connection->tls.ca_pem, "CA");
  EXPECT_EQ(connection->tls.key_pem, "KEY");
  EXPECT_EQ(connection->endpoint.ToString(), "https://127.0.0.1:6443");
}

TEST_F(KubeconfigTest, UnmergeTakesOneAwayAndLeavesOthers) {
  const json::Value other = MakeKubeconfig("other", "https://10.0.0.2", "CA2", "CERT2", "KEY2");
  const json::Value ours = MakeKubeconfig("muster", "https://127.0.0.1:6443", "CA", "CERT", "KEY");
  const json::Value merged = MergeKubeconfig(other, ours);
  EXPECT_EQ(UnmergeKubeconfig(merged, "muster"), other.Set("current-context", ""));
  EXPECT_EQ(UnmergeKubeconfig(other, "muster"), other);
  EXPECT_EQ(FindEntry(merged, "clusters", "other")["cluster"]["server"].Str(), "https://10.0.0.2");
  EXPECT_TRUE(FindEntry(merged, "clusters", "none").IsNull());
}

TEST_F(KubeconfigTest, MergesIntoAnExistingFileWithoutLosingOthers) {
  json::Value other = MakeKubeconfig("other", "https://10.0.0.2", "CA2", "CERT2", "KEY2")
                          .Set("preferences", json::Obj());
  json::Value stale = MakeKubeconfig("muster", "https://old", "CA0", "CERT0", "KEY0");
  json::Value merged = MergeKubeconfig(
      MergeKubeconfig(other, stale), MakeKubeconfig("muster", "https://new", "CA", "CERT", "KEY"));
  EXPECT_EQ(merged["clusters"].size(), 2u);
  EXPECT_EQ(merged["clusters"].At(1)["cluster"]["server"].AsString(), "https://new");
  EXPECT_EQ(merged["current-context"].AsString(), "muster");
  EXPECT_TRUE(merged.Has("preferences"));
}

TEST_F(KubeconfigTest, ARenewedOneKeepsWhatUsersPutThere) {
  const auto made = [](const char* url, const char* key) {
    return MakeKubeconfig("muster", url, "CA", "CERT", key);
  };
  const json::Value fresh = made("https://127.0.0.1:2", "NEW");
  EXPECT_EQ(RenewKubeconfig({}, fresh), fresh);
  EXPECT_EQ(RenewKubeconfig(made("https://127.0.0.1:1", "OLD"), fresh), fresh);
  // As kubectl writes it.
  const json::Value mine = json::ParseYaml(R"(
apiVersion: v1
clusters:
- {cluster: {insecure-skip-tls-verify: true, server: "https://127.0.0.1:1"}, name: muster}
- {cluster: {server: "https://192.0.2.1"}, name: cloud}
contexts:
- {context: {cluster: cloud, namespace: team, user: ada}, name: muster}
- {context: {cluster: muster, namespace: other, user: muster}, name: second}
current-context: second
kind: Config
preferences: {}
users:
- {name: muster, user: {client-key-data: b2xk}}
- {name: ada, user: {token: t0ken}}
)")
                               ->front();
  const json::Value renewed = RenewKubeconfig(mine, fresh);
  EXPECT_EQ(RenewKubeconfig(renewed, fresh), renewed);
  EXPECT_EQ(renewed["current-context"].Str(), "second");
  EXPECT_TRUE(renewed.Has("preferences"));
  EXPECT_EQ(FindEntry(renewed, "clusters", "muster"), FindEntry(fresh, "clusters", "muster"));
  EXPECT_EQ(FindEntry(renewed, "users", "muster"), FindEntry(fresh, "users", "muster"));
  for (const char* field : {"clusters", "contexts", "users"})
    EXPECT_EQ(renewed[field].size(), 2u) << field;
  EXPECT_EQ(FindEntry(renewed, "contexts", "second"), FindEntry(mine, "contexts", "second"));
  const json::Value context = FindEntry(renewed, "contexts", "muster")["context"];
  EXPECT_EQ(context, json::Obj({{"cluster", "muster"}, {"namespace", "team"}, {"user", "ada"}}));
  // Who is not there cannot be who connects; and the current context must be one.
  const json::Value poor = mine.Set("users", json::List({})).Set("current-context", "gone");
  const json::Value mended = RenewKubeconfig(poor, fresh);
  EXPECT_EQ(FindEntry(mended, "contexts", "muster")["context"]["user"].Str(), "muster");
  EXPECT_EQ(mended["current-context"].Str(), "muster");
}

TEST_F(KubeconfigTest, RenewsAFileOfAnyState) {
  const std::string path = dir_ / "own";
  const json::Value fresh = MakeKubeconfig("muster", "https://127.0.0.1:1", "CA", "CERT", "KEY");
  for (const char* before : {"", "- a\n", "contexts: [\n", "contexts: 5\n"}) {
    std::ofstream(path) << before;
    ASSERT_TRUE(RenewKubeconfigFile(path, fresh).ok()) << before;
    EXPECT_TRUE(Kubeconfig::LoadFile(path)->Connect().has_value()) << before;
  }
  fs::remove(path);
  ASSERT_TRUE(RenewKubeconfigFile(path, fresh).ok());
  EXPECT_EQ(Kubeconfig::LoadFile(path)->Connect()->ns, "default");
  std::ofstream(path) << "contexts: [{name: muster, context: {namespace: team}}]\n";
  ASSERT_TRUE(RenewKubeconfigFile(path, fresh).ok());
  EXPECT_EQ(Kubeconfig::LoadFile(path)->Connect()->ns, "team");
}

}  // namespace
}  // namespace muster::client
