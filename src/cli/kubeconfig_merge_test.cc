#include "cli/kubeconfig_merge.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "client/kubeconfig.h"
#include "json/parse.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

class KubeconfigMerge : public testing::Test {
 protected:
  KubeconfigMerge() {
    char name[] = "/tmp/muster-kubeconfig-XXXXXX";
    dir_ = mkdtemp(name);
    fs::create_directory(dir_ + "/lab");
    Write("lab/kubeconfig", "muster", "https://127.0.0.1:6443");
    setenv("KUBECONFIG", (File("own") + ":" + File("a") + ":" + File("b")).c_str(), 1);
  }
  ~KubeconfigMerge() override {
    unsetenv("KUBECONFIG");
    fs::remove_all(dir_);
  }
  std::string File(const std::string& name) const { return dir_ + "/" + name; }
  void Write(const std::string& file, const char* context, const char* server) {
    ASSERT_TRUE(client::WriteKubeconfig(
                    File(file), client::MakeKubeconfig(context, server, "CA", "CERT", "KEY"))
                    .ok());
  }
  std::string Current(const std::string& file) const {
    return client::Kubeconfig::LoadFile(File(file)).value().current_context();
  }
  std::vector<std::string> Contexts(const std::string& file) const {
    return client::Kubeconfig::LoadFile(File(file)).value().contexts();
  }
  MergeRequest Request(const std::string& name = "") const {
    return {.own_file = File("lab/kubeconfig"), .name = name};
  }

  std::string dir_;
};

TEST_F(KubeconfigMerge, GoesToTheFirstFileThatExistsAndBack) {
  Write("b", "cloud", "https://cloud");
  ASSERT_TRUE(MergeCluster(Request()).has_value());
  EXPECT_FALSE(fs::exists(File("a")));
  EXPECT_EQ(Contexts("b"), (std::vector<std::string>{"cloud", "lab"}));
  EXPECT_EQ(Current("b"), "lab");
  EXPECT_NE(MergeCluster(Request())->find("nothing to change"), std::string::npos);
  EXPECT_TRUE(IsMerged(File("lab/kubeconfig")));
  {
    const auto done = UnmergeCluster(Request());
    ASSERT_TRUE(done.has_value()) << done.error().message();
  }
  EXPECT_EQ(Contexts("b"), std::vector<std::string>{"cloud"});
  EXPECT_EQ(Current("b"), "cloud");
  EXPECT_FALSE(IsMerged(File("lab/kubeconfig")));
}

// Users may have put others into the cluster's own file.
TEST_F(KubeconfigMerge, ItIsTheClusterWhoseFileItIs) {
  Write("lab/kubeconfig", "cloud", "https://cloud");
  ASSERT_TRUE(client::RenewKubeconfigFile(
                  File("lab/kubeconfig"),
                  client::MakeKubeconfig("muster", "https://127.0.0.1:2", "CA", "CERT", "KEY"))
                  .ok());
  EXPECT_EQ(Current("lab/kubeconfig"), "cloud");
  ASSERT_TRUE(MergeCluster(Request()).has_value());
  const auto connection = client::Kubeconfig::LoadFile(File("b")).value().Connect("lab");
  ASSERT_TRUE(connection.has_value()) << connection.error().message();
  EXPECT_EQ(connection->endpoint.ToString(), "https://127.0.0.1:2");
}

TEST_F(KubeconfigMerge, AnEntryStaysInItsFileAndTheFirstCurrentContextCounts) {
  Write("lab/kubeconfig", "muster", "https://127.0.0.1:1");
  ASSERT_TRUE(MergeCluster(Request()).has_value());  // into the last one
  Write("a", "cloud", "https://cloud");
  Write("lab/kubeconfig", "muster", "https://127.0.0.1:6443");
  ASSERT_TRUE(MergeCluster(Request()).has_value());
  EXPECT_EQ(Contexts("a"), std::vector<std::string>{"cloud"});
  EXPECT_EQ(Current("a"), "lab");
  EXPECT_EQ(client::Kubeconfig::LoadFile(File("b"))->Connect("lab")->endpoint.port, 6443);
  {
    const auto done = UnmergeCluster(Request());
    ASSERT_TRUE(done.has_value()) << done.error().message();
  }
  EXPECT_EQ(Current("a"), "cloud");
  EXPECT_EQ(Contexts("b"), std::vector<std::string>());
}

TEST_F(KubeconfigMerge, ANewFileIsTheLastOfTheList) {
  ASSERT_TRUE(MergeCluster(Request()).has_value());
  EXPECT_FALSE(fs::exists(File("a")));
  EXPECT_EQ(Current("b"), "lab");
  {
    const auto done = UnmergeCluster(Request());
    ASSERT_TRUE(done.has_value()) << done.error().message();
  }
  EXPECT_EQ(Current("b"), "");
}

TEST_F(KubeconfigMerge, IsFoundUnderAnyName) {
  Write("a", "cloud", "https://cloud");
  ASSERT_TRUE(MergeCluster(Request("mine")).has_value());
  fs::remove_all(File("lab"));  // as after down --purge
  ASSERT_TRUE(IsMerged(File("lab/kubeconfig")));
  {
    const auto done = UnmergeCluster(Request());
    ASSERT_TRUE(done.has_value()) << done.error().message();
  }
  EXPECT_EQ(Contexts("a"), std::vector<std::string>{"cloud"});
}

TEST_F(KubeconfigMerge, AFormerContextThatIsGoneIsNotCurrentAgain) {
  Write("a", "cloud", "https://cloud");
  ASSERT_TRUE(MergeCluster(Request()).has_value());
  const auto merged = json::ParseYaml(ReadSmallFile(File("a")).value());
  ASSERT_TRUE(merged.has_value());
  ASSERT_TRUE(
      client::WriteKubeconfig(File("a"), client::UnmergeKubeconfig(merged->front(), "cloud")).ok());
  {
    const auto done = UnmergeCluster(Request());
    ASSERT_TRUE(done.has_value()) << done.error().message();
  }
  EXPECT_EQ(Current("a"), "");
}

TEST_F(KubeconfigMerge, EveryNameOfAClusterIsTakenAway) {
  Write("a", "cloud", "https://cloud");
  ASSERT_TRUE(MergeCluster(Request()).has_value());
  ASSERT_TRUE(MergeCluster(Request("mine")).has_value());
  EXPECT_EQ(Contexts("a"), (std::vector<std::string>{"cloud", "lab", "mine"}));
  ASSERT_TRUE(UnmergeCluster(Request()).has_value());
  EXPECT_EQ(Contexts("a"), std::vector<std::string>{"cloud"});
  EXPECT_EQ(Current("a"), "cloud");
}

// $KUBECONFIG is the own file of another cluster, as the README says to set it.
TEST_F(KubeconfigMerge, TheOwnFileOfAnotherClusterStaysAsItIs) {
  fs::create_directory(File("muster"));
  Write("muster/kubeconfig", "muster", "https://127.0.0.1:7443");
  setenv("KUBECONFIG", File("lab/kubeconfig").c_str(), 1);
  const MergeRequest other = {.own_file = File("muster/kubeconfig")};
  const auto merged = MergeCluster(other);
  ASSERT_FALSE(merged.has_value());
  EXPECT_NE(merged.error().message().find("choose another name"), std::string::npos);
  const auto unmerged = UnmergeCluster(other);
  ASSERT_FALSE(unmerged.has_value());
  EXPECT_NE(unmerged.error().message().find("did not put there"), std::string::npos);
  EXPECT_EQ(Contexts("lab/kubeconfig"), std::vector<std::string>{"muster"});
}

TEST_F(KubeconfigMerge, LeavesWhatIsSomebodyElses) {
  Write("a", "lab", "https://elsewhere");
  const auto merged = MergeCluster(Request());
  ASSERT_FALSE(merged.has_value());
  EXPECT_NE(merged.error().message().find("choose another name"), std::string::npos);
  const auto unmerged = UnmergeCluster(Request());
  ASSERT_FALSE(unmerged.has_value());
  EXPECT_NE(unmerged.error().message().find("did not put there"), std::string::npos);
  EXPECT_EQ(Contexts("a"), std::vector<std::string>{"lab"});
}

}  // namespace
}  // namespace muster::cli
