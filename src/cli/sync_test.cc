#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/cli_testing.h"
#include "cli/git_repository.h"
#include "cli/run_program.h"
#include "cli/sync_plan.h"
#include "cli/three_way.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

TEST(SyncPlan, NamesAreMadeOfRepositoryAndPath) {
  EXPECT_EQ(SyncNameOf("https://example.com/Team/Jobs.git", "training"), "jobs-training");
  EXPECT_EQ(SyncNameOf("git@example.com:jobs.git/", ""), "jobs");
  EXPECT_EQ(SyncNameOf("/srv/a_b", "x/y.z"), "a-b-x-y-z");
  EXPECT_EQ(SyncNameOf("...", ""), "sync");
  const std::string cut = SyncNameOf(std::string(80, 'a'), "one");
  EXPECT_LE(cut.size(), 50u);
  EXPECT_NE(cut, SyncNameOf(std::string(80, 'a'), "two"));
}

TEST(SyncPlan, EntriesAndWhatIsLeftOut) {
  const client::Target target{{"apps", "v1", "deployments"}, "d", "web", ""};
  EXPECT_EQ(EntryOf(target), "apps|v1|deployments|d|web");
  EXPECT_EQ(TargetOf(EntryOf(target)).resource, target.resource);
  EXPECT_EQ(TargetOf(EntryOf(target)).name, "web");
  EXPECT_EQ(TargetOf("x").name, "");
  EXPECT_EQ(*EntriesOf(TextOf({"b|v1|x||1", "a|v1|x||2"})), (Entries{"a|v1|x||2", "b|v1|x||1"}));
  EXPECT_FALSE(EntriesOf(R"(["x"])").has_value());
  EXPECT_EQ(LeftOut({"a", "b", "c"}, {"b"}), (std::vector<std::string>{"a", "c"}));
}

TEST(SyncPlan, DriftIsWhatOthersChanged) {
  const json::Value manifest = Yaml("{kind: X, metadata: {name: x}, spec: {a: 1, b: {c: 2}}}");
  Applied applied;
  applied.outcome = "configured";
  applied.before = WithLastApplied(manifest).SetPath({"spec", "a"}, 5);
  applied.patch = Yaml(
      "{spec: {a: 1, d: null}, metadata: {annotations: {kubectl.kubernetes.io/"
      "last-applied-configuration: x}}}");
  EXPECT_EQ(DriftOf(applied, manifest),
            (std::vector<std::string>{"spec.a: 5 -> 1", "spec.d: nothing -> nothing"}));
  // The repository changed it: no drift.
  EXPECT_TRUE(DriftOf(applied, manifest.SetPath({"spec", "a"}, 7)).empty());
  applied.outcome = "unchanged";
  EXPECT_TRUE(DriftOf(applied, manifest).empty());
  applied.outcome = "configured";
  json::Value many = json::Obj();
  for (int i = 0; i < 8; ++i) many = many.Set("f" + std::to_string(i), i);
  applied.patch = json::Obj({{"spec", many}});
  EXPECT_EQ(DriftOf(applied, manifest).size(), kMaxDriftLines + 1);
  EXPECT_EQ(DriftOf(applied, manifest).back(), "and 3 more");
}

TEST(SyncPlan, NothingOfASecretIsTold) {
  const json::Value manifest = Yaml("{kind: Secret, metadata: {name: x}, data: {a: b25l}}");
  Applied applied;
  applied.outcome = "configured";
  applied.before = WithLastApplied(manifest).SetPath({"data", "a"}, "dHdv");
  applied.patch = Yaml("{data: {a: b25l}}");
  EXPECT_EQ(DriftOf(applied, manifest), std::vector<std::string>{"data.a"});
}

TEST(SyncPlan, CredentialsOfARepositoryAreNotRemembered) {
  EXPECT_EQ(WithoutCredentials("https://u:t@example.com/a@b.git"), "https://example.com/a@b.git");
  EXPECT_EQ(WithoutCredentials("https://u:p@t@example.com"), "https://example.com");
  for (const char* plain : {"https://example.com/a@b.git", "git@example.com:jobs.git", "/srv/a@b"})
    EXPECT_EQ(WithoutCredentials(plain), plain);
}

TEST(SyncPlan, AStateInOneWord) {
  EXPECT_EQ(StateOf(Yaml("{status: {phase: Running}}")), "Running");
  EXPECT_EQ(StateOf(Yaml("{status: {conditions: [{type: Created, status: 'True'}, {type: Running, "
                         "status: 'False'}, {type: Succeeded, status: 'True'}]}}")),
            "Succeeded");
  EXPECT_EQ(StateOf(Yaml("{status: {conditions: [{type: Odd, status: 'True'}]}}")), "Odd");
  EXPECT_EQ(StateOf(Yaml("{data: {}}")), "");
}

// Commands on a repository in a folder of its own.
class SyncTest : public testing::Test {
 protected:
  void SetUp() override {
    if (RunProgram({"git", "--version"}).value_or(ProgramEnd{1, ""}).code != 0)
      GTEST_SKIP() << "git is not installed";
    dir_ = fs::temp_directory_path() / ("muster-sync-test-" + std::to_string(getpid()));
    fs::remove_all(dir_);
    fs::create_directories(dir_ / "repo" / "jobs");
    setenv("XDG_CACHE_HOME", (dir_ / "cache").c_str(), 1);
    Git({"init", "-q", "-b", "main"});
  }
  void TearDown() override {
    if (!dir_.empty()) fs::remove_all(dir_);
  }
  std::string Git(std::vector<std::string> words) {
    words.insert(words.begin(), {"git", "-C", (dir_ / "repo").string(), "-c", "user.name=t", "-c",
                                 "user.email=t@localhost"});
    const auto end = RunProgram(words);
    EXPECT_TRUE(end && end->code == 0) << (end ? end->output : end.error().message());
    return end ? end->output : "";
  }
  void Commit(const std::string& file, const std::string& text, const std::string& message) {
    if (text.empty()) {
      fs::remove(dir_ / "repo" / file);
    } else {
      std::ofstream(dir_ / "repo" / file) << text;
    }
    Git({"add", "-A"});
    Git({"commit", "-q", "--allow-empty", "-m", message});
  }
  Outcome Sync(std::vector<std::string> flags = {}) {
    std::vector<std::string> words = {(dir_ / "repo").string(), "jobs", "--once"};
    words.insert(words.end(), flags.begin(), flags.end());
    return cluster_.Run("sync", words);
  }
  static std::string Map(const std::string& name, const std::string& value) {
    return fmt::format(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}}}\ndata: {{a: '{}'}}\n", name,
        value);
  }
  const json::Value* Find(const std::string& name) {
    return cluster_.api.Find("/api/v1/configmaps", "default", name);
  }

  fs::path dir_;
  FakeCluster cluster_;
};

TEST_F(SyncTest, AppliesWhatIsCommittedAndFollows) {
  Commit("jobs/x.yaml", Map("x", "1"), "first");
  std::ofstream(dir_ / "repo/jobs/y.yaml") << Map("two", "not committed");
  const Outcome first = Sync();
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.out.find(": first\nconfigmap/x created\n"), std::string::npos) << first.out;
  ASSERT_NE(Find("x"), nullptr);
  EXPECT_EQ((*Find("x"))["metadata"]["labels"][kSyncLabel].AsString(), "repo-jobs");
  EXPECT_EQ(Find("two"), nullptr);
  Commit("jobs/x.yaml", Map("x", "2"), "second");
  EXPECT_NE(Sync().out.find("configmap/x configured\n"), std::string::npos);
  EXPECT_EQ((*Find("x"))["data"]["a"].AsString(), "2");
  Git({"checkout", "-q", "-b", "other"});
  Commit("jobs/x.yaml", Map("x", "3"), "third");
  Git({"checkout", "-q", "main"});
  Sync({"--branch", "other"});
  EXPECT_EQ((*Find("x"))["data"]["a"].AsString(), "3");
}

TEST_F(SyncTest, ReportsDriftAndPutsItBack) {
  Commit("jobs/x.yaml", Map("x", "1"), "first");
  Sync();
  cluster_.api.Put("/api/v1/configmaps", Find("x")->SetPath({"data", "a"}, "by hand"));
  const Outcome outcome = Sync();
  EXPECT_NE(outcome.out.find("configmap/x had drifted: data.a: \"by hand\" -> \"1\"\n"),
            std::string::npos)
      << outcome.out;
  EXPECT_EQ((*Find("x"))["data"]["a"].AsString(), "1");
  cluster_.api.Remove("/api/v1/configmaps", "default", "x");
  EXPECT_NE(Sync().out.find("configmap/x had been deleted, created again\n"), std::string::npos);
}

TEST_F(SyncTest, PrunesOnlyWhatItAppliedAndOnlyWhenAsked) {
  Commit("jobs/x.yaml", Map("x", "1"), "first");
  Commit("jobs/y.yaml", Map("two", "1"), "second");
  cluster_.api.Put("/api/v1/configmaps",
                   Yaml(Map("own", "1")).SetPath({"metadata", "namespace"}, "default"));
  Sync();
  Commit("jobs/y.yaml", "", "without y");
  EXPECT_NE(Sync().out.find("configmaps/two is not in the folder any more (--prune deletes it)"),
            std::string::npos);
  EXPECT_NE(Find("two"), nullptr);
  EXPECT_NE(Sync({"--prune"}).out.find("configmaps/two pruned\n"), std::string::npos);
  EXPECT_EQ(Find("two"), nullptr);
  EXPECT_NE(Find("x"), nullptr);
  EXPECT_NE(Find("own"), nullptr);
  EXPECT_EQ(Sync({"--prune"}).out.find("pruned"), std::string::npos);
}

// Killed, or cut off, after some objects were applied: what then leaves the folder goes, too.
TEST_F(SyncTest, WhatAKilledRoundAppliedIsKnownToTheNext) {
  Commit("jobs/x.yaml", Map("x", "1"), "first");
  Sync();
  Commit("jobs/y.yaml", Map("two", "1"), "second");
  cluster_.api.before_handle = [this](const net::Request&, const net::ResponseWriterPtr& writer) {
    if (Find("two") == nullptr) return true;
    client::FakeApi::SendError(*writer, 500, "InternalError", "gone");
    return false;
  };
  EXPECT_EQ(Sync({"--prune"}).code, 1);
  ASSERT_NE(Find("two"), nullptr);
  cluster_.api.before_handle = nullptr;
  Commit("jobs/y.yaml", "", "without y");
  const Outcome next = Sync({"--prune"});
  EXPECT_NE(next.out.find("configmaps/two pruned\n"), std::string::npos) << next.out << next.err;
  EXPECT_EQ(Find("two"), nullptr);
  EXPECT_NE(Find("x"), nullptr);
  EXPECT_FALSE((*Find("muster-sync-repo-jobs"))["data"].Has("pending"));
}

TEST_F(SyncTest, WhatWasNeverAppliedIsForgottenWithItsManifest) {
  Commit("jobs/x.yaml", Map("x", "1"), "first");
  Commit("jobs/y.yaml", Map("two", "1"), "second");
  cluster_.api.Put("/api/v1/configmaps", Yaml(Map("two", "mine"))
                                             .SetPath({"metadata", "namespace"}, "default")
                                             .SetPath({"metadata", "labels", kSyncLabel}, "other"));
  EXPECT_EQ(Sync({"--prune"}).code, 1);
  EXPECT_TRUE((*Find("muster-sync-repo-jobs"))["data"].Has("pending"));
  Commit("jobs/y.yaml", "", "without y");
  EXPECT_EQ(Sync({"--prune"}).code, 0);
  ASSERT_NE(Find("two"), nullptr);
  EXPECT_EQ((*Find("two"))["data"]["a"].AsString(), "mine");
  EXPECT_FALSE((*Find("muster-sync-repo-jobs"))["data"].Has("pending"));
}

TEST_F(SyncTest, AnInventoryThatCannotBeReadIsNoEmptyOne) {
  Commit("jobs/x.yaml", Map("x", "1"), "first");
  Sync();
  const char* kName = "muster-sync-repo-jobs";
  for (const char* text : {"[", "{}", "[1]", "[\"x\"]", ""}) {
    cluster_.api.Put("/api/v1/configmaps", Find(kName)->SetPath({"data", "inventory"}, text));
    const Outcome outcome = Sync({"--prune"});
    EXPECT_EQ(outcome.code, 1) << text;
    EXPECT_NE(outcome.err.find("configmap/muster-sync-repo-jobs: data.inventory: expected"),
              std::string::npos)
        << outcome.err;
    EXPECT_EQ((*Find(kName))["data"]["inventory"].AsString(), text);
  }
}

TEST_F(SyncTest, WhatAnotherSyncHasIsLeftAlone) {
  Commit("jobs/x.yaml", Map("x", "1"), "first");
  Sync();
  const Outcome other = Sync({"--name", "other"});
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("jobs/x.yaml: ConfigMap x: it belongs to the sync \"repo-jobs\""),
            std::string::npos)
      << other.err;
  // Somebody took it over: it is not pruned.
  cluster_.api.Put("/api/v1/configmaps", Find("x")->SetPath({"metadata", "labels"}, json::Obj()));
  Commit("jobs/z.yaml", Map("z", "1"), "z");
  Commit("jobs/x.yaml", "", "without x");
  EXPECT_NE(Sync({"--prune"}).out.find("configmaps/x is left alone"), std::string::npos);
  EXPECT_NE(Find("x"), nullptr);
}

TEST_F(SyncTest, FaultsNameFileAndDocumentAndPruneNothing) {
  Commit("jobs/x.yaml", Map("x", "1") + "---\n" + Map("two", "1"), "first");
  Sync();
  Commit("jobs/x.yaml",
         Map("x", "1") + "---\napiVersion: v1\nkind: NoSuchKind\nmetadata: {name: two}\n", "wrong");
  const Outcome wrong = Sync({"--prune"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.err.find("jobs/x.yaml, document 2: NoSuchKind two: "), std::string::npos)
      << wrong.err;
  EXPECT_NE(Find("two"), nullptr) << "it may be the one with the fault";
  Commit("jobs/x.yaml", "a: [", "not even YAML");
  const Outcome broken = Sync({"--prune"});
  EXPECT_EQ(broken.code, 1);
  EXPECT_NE(broken.err.find("jobs/x.yaml: "), std::string::npos) << broken.err;
  Commit("jobs/x.yaml", "", "nothing");
  EXPECT_EQ(Sync({"--prune"}).code, 1) << "an empty folder is a mistake";
  EXPECT_NE(Find("x"), nullptr);
}

TEST_F(SyncTest, LinksThatLeadOutOfTheRepositoryAreNotFollowed) {
  std::ofstream(dir_ / "outside.yaml") << Map("outside", "1");
  fs::create_directories(dir_ / "repo" / "common");
  Commit("common/x.yaml", Map("x", "1"), "first");
  fs::create_symlink("../common/x.yaml", dir_ / "repo/jobs/x.yaml");
  Git({"add", "-A"});
  Git({"commit", "-q", "-m", "a link inside"});
  EXPECT_EQ(Sync().code, 0);
  EXPECT_NE(Find("x"), nullptr);
  fs::create_symlink(dir_ / "outside.yaml", dir_ / "repo/jobs/y.yaml");
  Git({"add", "-A"});
  Git({"commit", "-q", "-m", "a link that leads out"});
  const Outcome file = Sync();
  EXPECT_EQ(file.code, 1);
  EXPECT_NE(file.err.find("jobs/y.yaml: a symbolic link that leads out"), std::string::npos)
      << file.err;
  EXPECT_EQ(Find("outside"), nullptr);
  fs::remove_all(dir_ / "repo/jobs");
  fs::create_symlink(dir_, dir_ / "repo/jobs");
  Git({"add", "-A"});
  Git({"commit", "-q", "-m", "the folder itself"});
  EXPECT_NE(Sync().err.find("jobs: a symbolic link that leads out"), std::string::npos);
  EXPECT_EQ(Find("outside"), nullptr);
}

TEST_F(SyncTest, PushesWhatBecameOfItAsANote) {
  Commit("jobs/x.yaml", Map("x", "1"), "first");
  fs::create_directories(dir_ / "elsewhere");
  const Outcome outcome = Sync({"--push"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string note = Git({"notes", "--ref=muster", "show", "HEAD"});
  EXPECT_NE(note.find("muster sync repo-jobs: 1 objects"), std::string::npos) << note;
  EXPECT_NE(note.find("configmaps/x: applied"), std::string::npos) << note;
  // In place of the former one.
  Commit("jobs/y.yaml", Map("two", "1"), "second");
  EXPECT_EQ(Sync({"--push"}).code, 0);
  EXPECT_NE(Git({"notes", "--ref=muster", "show", "HEAD"}).find("2 objects"), std::string::npos);
}

TEST_F(SyncTest, WhatCannotBe) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"/no/such/repository", "--once"},
           {"-x", "--once"},
           {(dir_ / "repo").string(), "../etc", "--once"},
           {(dir_ / "repo").string(), "/etc", "--once"},
           {(dir_ / "repo").string(), "jobs", "--once", "--name", "A B"},
           {(dir_ / "repo").string(), "jobs", "--interval", "10ms"}}) {
    const Outcome outcome = cluster_.Run("sync", words);
    EXPECT_NE(outcome.code, 0) << words[0];
    EXPECT_NE(outcome.err, "");
  }
}

}  // namespace
}  // namespace muster::cli
