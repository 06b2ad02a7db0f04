#include <gtest/gtest.h>

#include "cli/cli_testing.h"

namespace muster::cli {
namespace {

constexpr char kModelsPath[] = "/apis/registry.muster.dev/v1alpha1/registeredmodels";
constexpr char kVersionsPath[] = "/apis/registry.muster.dev/v1alpha1/modelversions";
constexpr char kRunsPath[] = "/apis/registry.muster.dev/v1alpha1/runs";

class ModelsCommandTest : public testing::Test {
 protected:
  ModelsCommandTest() {
    cluster_.api.Put(kModelsPath, Yaml(R"(
metadata: {name: digits, namespace: default}
spec: {description: of MNIST, aliases: {champion: 1}}
status: {latestVersion: 2})"));
    cluster_.api.Put(kVersionsPath, Yaml(R"(
metadata: {name: digits.1, namespace: default}
spec: {model: digits, version: 1, stage: Production, source: 'pvc://models/1', runID: r1})"));
    cluster_.api.Put(kRunsPath, Yaml(R"(
metadata: {name: r1, namespace: default}
spec: {name: first, params: {rate: '0.1'}}
status: {state: FINISHED, metrics: {loss: {value: '0.25'}}})"));
  }

  FakeCluster cluster_;
};

TEST_F(ModelsCommandTest, ListsAndDescribes) {
  const Outcome list = cluster_.Run("models", {"list"});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_NE(list.out.find("digits   1          2        1            champion=1"),
            std::string::npos)
      << list.out;
  const Outcome described = cluster_.Run("models", {"describe", "digits"});
  EXPECT_EQ(described.code, 0) << described.err;
  for (const char* part : {"version 1  stage Production  aliases champion", "pvc://models/1",
                           "r1 (first), FINISHED", "rate=0.1", "loss=0.25"})
    EXPECT_NE(described.out.find(part), std::string::npos) << part << " in " << described.out;
}

// Who may register a model writes to the terminal of who lists them.
TEST_F(ModelsCommandTest, ControlCharactersOfOthersAreWrittenOut) {
  cluster_.api.Put(kModelsPath, Yaml(R"(
metadata: {name: digits, namespace: default}
spec: {name: "a\eb", description: "\e[2J", tags: {k: "\e]0;x"}, aliases: {"c\nd": 1}}
status: {latestVersion: 1})"));
  cluster_.api.Put(kVersionsPath, Yaml(R"(
metadata: {name: digits.1, namespace: default}
spec: {model: digits, version: 1, source: "x\n  version 9", description: "\e", runID: r1})"));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"list"}, {"describe", "digits"}}) {
    const Outcome shown = cluster_.Run("models", words);
    EXPECT_EQ(shown.out.find('\x1b'), std::string::npos) << shown.out;
    EXPECT_NE(shown.out.find("a\\x1bb"), std::string::npos) << shown.out;
    EXPECT_EQ(shown.out.find("\n  version 9"), std::string::npos) << shown.out;
    EXPECT_NE(shown.out.find("c\\nd"), std::string::npos) << shown.out;
  }
}

TEST_F(ModelsCommandTest, DeletesAVersionOrTheModel) {
  EXPECT_EQ(cluster_.Run("models", {"delete", "digits/1"}).code, 0);
  EXPECT_EQ(cluster_.api.Find(kVersionsPath, "default", "digits.1"), nullptr);
  const json::Value* model = cluster_.api.Find(kModelsPath, "default", "digits");
  ASSERT_NE(model, nullptr);
  EXPECT_TRUE((*model)["spec"]["aliases"].empty());
  EXPECT_EQ(cluster_.Run("models", {"delete", "digits"}).code, 0);
  EXPECT_EQ(cluster_.api.Find(kModelsPath, "default", "digits"), nullptr);
  const Outcome none = cluster_.Run("models", {"describe", "digits"});
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.err.find("no model \"digits\""), std::string::npos) << none.err;
}

}  // namespace
}  // namespace muster::cli
