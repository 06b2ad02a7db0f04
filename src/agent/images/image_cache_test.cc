// The image cache with stand-ins for skopeo and umoci, which are shell scripts.

#include "agent/images/image_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <optional>

#include "agent/runtime/files.h"
#include "agent/runtime/program.h"
#include "base/strings.h"
#include "loop/asio_loop.h"
#include "loop/run_until_test_support.h"
#include "loop/thread_pool.h"

namespace muster::agent {
namespace {

// A registry is a folder: NAME:TAG or sha256:... is a file with the image's one layer. What skopeo
// does is written to `calls`. `fail` holds what it says instead; while `hold` is there, a copy
// waits.
constexpr std::string_view kSkopeo = R"sh(#!/bin/sh
here=REGISTRY
[ -e $here/fail ] && { echo 'time="now" level=fatal msg="'"$(cat $here/fail)"'"' >&2; exit 1; }
digest() { printf 'sha256:%s' "$(sha256sum "$1" | cut -c1-64)"; }
file_of() { printf '%s/%s' $here "$(basename "$1" | sed 's/.*@//')"; }
case "$1 $2" in
"inspect --raw")
  for last in "$@"; do :; done
  case "$*" in *authfile*) for a in "$@"; do case $a in --authfile=*) cat "${a#*=}" >> $here/auth
    stat -c %a "${a#*=}" >> $here/auth ;;
    esac; done ;; esac
  echo inspect >> $here/calls
  while [ -e $here/hold-inspect ]; do sleep 0.02; done
  case $last in oci-archive:*) [ "$(cat "${last#*:}")" = oci ] && exit
    echo 'time="now" level=fatal msg="unexpected EOF"' >&2
    exit 1 ;; esac
  [ -e "$(file_of "$last")" ] || {
    echo 'time="now" level=fatal msg="Error parsing image name \"'$last'\": manifest unknown"' >&2
    exit 1; }
  cp "$(file_of "$last")" "$here/$(digest "$(file_of "$last")")"
  cat "$(file_of "$last")" ;;
"manifest-digest "*) digest "$2" ;;
"list-tags "*) [ -e "${2#docker-archive:}.tags" ] && cat "${2#docker-archive:}.tags" ;;
"copy --quiet")
  for last in "$@"; do before=$source; source=$last; done
  layout=${last#oci:}; layout=${layout%:image}
  echo "copy" >> $here/calls
  : > $layout/oci-put-blob
  while [ -e $here/hold ]; do sleep 0.02; done
  put() { d=$(digest "$1"); mv "$1" "$layout/blobs/sha256/${d#sha256:}"; echo $d; }
  case $before in docker://*) cat "$(file_of "$before")" > $layout/layer ;;
    *) cat "$(echo ${before#*:} | cut -d: -f1)" > $layout/layer ;; esac
  size=$(stat -c %s $layout/layer)
  layer=$(put $layout/layer)
  echo '{"config":{"Cmd":["run-'$layer'"],"User":"7"}}' > $layout/config
  config=$(put $layout/config)
  echo '{"config":{"digest":"'$config'","size":5},' > $layout/manifest
  layers='{"digest":"'$layer'","size":'$size'}'
  [ -e $here/layers ] && layers=$(cat $here/layers)
  echo '"layers":['$layers']}' >> $layout/manifest
  manifest=$(put $layout/manifest)
  echo '{"manifests":[{"digest":"'$manifest'"}]}' > $layout/index.json ;;
*) echo "what? $*" >&2; exit 2 ;;
esac
)sh";
constexpr std::string_view kUmoci = R"sh(#!/bin/sh
[ "$3" != --rootless ] || shift
[ -e REGISTRY/unpack-fails ] && {
  mkdir -p "$5/half"
  echo "   x no space left on device" >&2
  exit 1
}
mkdir "$5" && echo unpacked > "$5/file"
)sh";

class ImageCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/images-test-XXXXXX";
    dir_ = mkdtemp(path);
    path_before_ = getenv("PATH");
    ASSERT_TRUE(MakeDirs(dir_ + "/registry").ok() && MakeDirs(dir_ + "/bin").ok());
    for (const auto& [name, text] : {std::pair{"skopeo", kSkopeo}, {"umoci", kUmoci}}) {
      const std::string script = ReplaceAll(std::string(text), "REGISTRY", dir_ + "/registry");
      ASSERT_TRUE(WriteFile(dir_ + "/bin/" + name, script, 0755).ok());
    }
    setenv("PATH", (dir_ + "/bin:" + path_before_).c_str(), 1);
    Reopen();
  }
  void TearDown() override {
    cache_.reset();
    setenv("PATH", path_before_.c_str(), 1);
    EXPECT_TRUE(RemoveTree(dir_).ok());
  }

  // As after a restart of the agent.
  void Reopen() {
    cache_.reset();
    cache_ = std::make_unique<ImageCache>(dir_, loop_, pool_);
    ImageCache::Hooks hooks;
    hooks.users = [this] { return users_; };
    hooks.measure = [this](const std::string&) { return room_; };
    hooks.min_age = min_age_;
    hooks.timeouts = timeouts_;
    hooks.on_garbage = [this](bool ok, const std::string& message) {
      garbage_.push_back(fmt::format("{} {}", ok, message));
    };
    cache_->Start(std::move(hooks));
    bool ready = false;
    cache_->WhenReady([&] { ready = true; });
    Until([&] { return ready; });
  }

  void Until(const std::function<bool()>& done) { ASSERT_TRUE(RunUntil(loop_, done)); }

  void Registry(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFile(dir_ + "/registry/" + name, text).ok());
  }
  std::string ReadRegistry(const std::string& name) const {
    return ReadSmallFile(dir_ + "/registry/" + name).value_or("");
  }
  // How often skopeo did it.
  int64_t Calls(std::string_view what) const {
    int64_t count = 0;
    const std::string calls = ReadRegistry("calls");
    for (std::string_view line : SplitNonEmpty(calls, '\n')) count += line == what ? 1 : 0;
    return count;
  }

  using Answer = std::optional<Result<PulledImage>>;
  std::shared_ptr<Answer> Begin(const std::string& name, const std::vector<std::string>& auths) {
    auto answer = std::make_shared<Answer>();
    cache_->Pull(*ParseImageReference(name), auths,
                 [answer](Result<PulledImage> pulled) { *answer = std::move(pulled); });
    return answer;
  }
  Result<PulledImage> Pull(const std::string& name, const std::vector<std::string>& auths = {}) {
    const auto answer = Begin(name, auths);
    Until([&] { return answer->has_value(); });
    return **answer;
  }
  std::string Remove(const std::string& name) {
    std::optional<Status> answer;
    cache_->Remove(name, [&](Status status) { answer = std::move(status); });
    Until([&] { return answer.has_value(); });
    return answer->message();
  }
  size_t Count(const std::string& folder) const {
    return ListDir(dir_ + "/images/" + folder).size();
  }

  AsioLoop loop_;
  ThreadPool pool_{"test", 2};
  std::string dir_, path_before_;
  ImageCache::Users users_;
  DiskRoom room_{1000, 900, 100};
  Duration min_age_{};
  ImageTimeouts timeouts_;
  std::vector<std::string> garbage_;
  std::unique_ptr<ImageCache> cache_;
};

TEST_F(ImageCacheTest, PullsOnceForAllWhoWantIt) {
  Registry("a:1", "layer");
  Registry("hold", "");
  std::vector<std::shared_ptr<Answer>> answers;
  for (int i = 0; i < 5; ++i) answers.push_back(Begin("localhost:5000/a:1", {}));
  Until([&] { return Calls("copy") == 1; });
  answers.push_back(Begin("localhost:5000/a:1", {"b3RoZXI="}));  // another resolution, one fetch
  Until([&] { return Calls("inspect") == 2; });
  ASSERT_EQ(unlink((dir_ + "/registry/hold").c_str()), 0);
  for (const auto& answer : answers) {
    Until([&] { return answer->has_value(); });
    ASSERT_TRUE((*answer)->has_value()) << (*answer)->error().message();
    EXPECT_EQ((*answer)->value().image.root, (*answers[0])->value().image.root);
  }
  EXPECT_EQ(Calls("copy"), 1);
  const ImageRecord& image = (*answers[0])->value().image;
  EXPECT_EQ(image.config.user, "7");
  EXPECT_TRUE(PathExists(ImageRoot(dir_, image.root) + "/file"));
  EXPECT_EQ(Count("pulls"), 0u);
  // Asked again, the registry names the same: nothing is fetched.
  EXPECT_TRUE(Pull("localhost:5000/a:1").has_value());
  EXPECT_EQ(Calls("copy"), 1);
}

TEST_F(ImageCacheTest, ATagThatMovedIsAnotherImage) {
  Registry("a:1", "one");
  const std::string first = Pull("a:1")->image.root;
  Registry("a:1", "two");
  const std::string second = Pull("a:1")->image.root;
  EXPECT_NE(first, second);
  EXPECT_EQ(cache_->Find(*ParseImageReference("a:1"))->root, second);
  EXPECT_TRUE(cache_->FindRoot(first)->names.empty());
}

TEST_F(ImageCacheTest, SurvivesARestartAndSweepsHalfDoneWork) {
  Registry("a:1", "layer");
  const std::string root = Pull("a:1")->image.root;
  ASSERT_TRUE(MakeDirs(dir_ + "/images/roots/half.new/rootfs").ok());
  ASSERT_TRUE(MakeDirs(dir_ + "/images/roots/unknown").ok());
  ASSERT_TRUE(MakeDirs(dir_ + "/images/pulls/old").ok());
  const size_t blobs = Count("blobs/sha256");
  Reopen();
  EXPECT_EQ(cache_->Find(*ParseImageReference("a:1"))->root, root);
  EXPECT_EQ(Count("roots"), 1u);
  EXPECT_EQ(Count("pulls"), 0u);
  EXPECT_EQ(Count("blobs/sha256"), blobs);  // a later pull goes on with them
  // What has lost its files is not here.
  ASSERT_TRUE(RemoveTree(ImageRoot(dir_, root)).ok());
  Reopen();
  EXPECT_TRUE(cache_->images().empty());
}

TEST_F(ImageCacheTest, SaysWhyAPullFailed) {
  EXPECT_EQ(Pull("localhost:5000/a:nope").error().message(),
            "failed to pull image \"localhost:5000/a:nope\": manifest unknown");
  Registry("fail", "pinging container registry: connection refused");
  EXPECT_EQ(Pull("a:1").error().message(),
            "failed to pull image \"docker.io/library/a:1\": pinging container registry: "
            "connection refused");
  ASSERT_EQ(unlink((dir_ + "/registry/fail").c_str()), 0);
  Registry("a:1", "layer");
  Registry("unpack-fails", "");
  const std::string full = Pull("a:1").error().message();
  EXPECT_NE(full.find("no space left on device"), std::string::npos) << full;
  EXPECT_EQ(Count("roots"), 0u);  // no half of it is left
}

TEST_F(ImageCacheTest, NamesTheProgramsThatAreMissing) {
  setenv("PATH", "/nowhere", 1);
  const std::string message = Pull("a:1").error().message();
  EXPECT_NE(message.find("this node has no skopeo and no umoci"), std::string::npos) << message;
  EXPECT_NE(message.find("(apt-get install skopeo umoci)"), std::string::npos) << message;
  EXPECT_NE(message.find("image \"none\""), std::string::npos) << message;
}

TEST_F(ImageCacheTest, AManifestHasALimit) {
  Registry("a:1", std::string(kMaxManifestBytes + 1, ' '));
  EXPECT_NE(Pull("a:1").error().message().find("the manifest has more than"), std::string::npos);
}

TEST_F(ImageCacheTest, AFileIsLoadedUpToALimitOfImages) {
  std::string tags;
  for (int i = 0; i <= kMaxArchivedImages; ++i)
    tags += fmt::format("{}\"web:{}\"", i > 0 ? "," : "", i);
  ASSERT_TRUE(WriteFile(dir_ + "/x.tar", "docker").ok());
  ASSERT_TRUE(WriteFile(dir_ + "/x.tar.tags", "{\"Tags\":[" + tags + "]}").ok());
  std::optional<Status> answer;
  cache_->Load(dir_ + "/x.tar", "", [&](Result<std::vector<ImageRecord>> all) {
    answer = all ? Status::Ok() : all.error();
  });
  Until([&] { return answer.has_value(); });
  EXPECT_TRUE(answer->message().ends_with("at most 32 are loaded from one file"))
      << answer->message();
}

TEST_F(ImageCacheTest, CredentialsAreTriedInOrderAndLeaveNoTrace) {
  Registry("a:1", "layer");
  ASSERT_TRUE(Pull("localhost:5000/a:1", {"Zmlyc3Q="}).has_value());
  EXPECT_EQ(ReadRegistry("auth"), "{\"auths\":{\"localhost:5000\":{\"auth\":\"Zmlyc3Q=\"}}}600\n");
  EXPECT_EQ(Count("pulls"), 0u);
}

TEST_F(ImageCacheTest, RemovesWhatNobodyUses) {
  Registry("a:1", "layer");
  Registry("a:2", "layer");
  const std::string root = Pull("a:1")->image.root;
  EXPECT_EQ(Pull("a:2")->image.root, root);
  users_[root] = {"default/web", "default/web-2"};
  EXPECT_EQ(Remove("a:2"), "");  // only a name
  EXPECT_EQ(Remove("a:1"), "image \"a:1\" is used by pod default/web and 1 more");
  users_.clear();
  EXPECT_EQ(Remove("a:1"), "");
  EXPECT_EQ(Remove("a:1"), "image \"a:1\" is not on this node");
  Until([&] { return Count("roots") == 0 && Count("blobs/sha256") == 0; });
  Reopen();
  EXPECT_TRUE(cache_->images().empty());
}

TEST_F(ImageCacheTest, LoadsArchives) {
  ASSERT_TRUE(WriteFile(dir_ + "/x.tar", "docker").ok());
  ASSERT_TRUE(WriteFile(dir_ + "/x.tar.tags", R"({"Tags":["web:1","web:2"]})").ok());
  ASSERT_TRUE(WriteFile(dir_ + "/y.tar", "oci").ok());
  const auto load = [&](const std::string& path, const std::string& name) -> std::string {
    std::optional<Result<std::vector<ImageRecord>>> answer;
    cache_->Load(path, name, [&](Result<std::vector<ImageRecord>> all) { answer = all; });
    Until([&] { return answer.has_value(); });
    if (!*answer) return answer->error().message();
    std::string out;
    for (const ImageRecord& image : **answer) out += Join(image.names, ",") + ";";
    return out;
  };
  EXPECT_EQ(load(dir_ + "/x.tar", ""),
            "docker.io/library/web:1;docker.io/library/web:1,docker.io/library/web:2;");
  EXPECT_EQ(load(dir_ + "/y.tar", ""),
            "an image in " + dir_ + "/y.tar has no name: give it one, --name NAME");
  EXPECT_NE(load(dir_ + "/x.tar", "mine").find("--name names one: leave it out"),
            std::string::npos);
  EXPECT_EQ(load(dir_ + "/y.tar", "mine"), "docker.io/library/mine:latest;");
  EXPECT_NE(load(dir_ + "/none.tar", "").find("No such file"), std::string::npos);
  EXPECT_EQ(cache_->images().size(), 2u);
  EXPECT_EQ(Count("roots"), 2u);
}

TEST_F(ImageCacheTest, WhatIsNoArchiveIsNotLoaded) {
  ASSERT_TRUE(WriteFile(dir_ + "/text.tar", "not an archive").ok());
  ASSERT_TRUE(MakeDirs(dir_ + "/folder").ok());
  const auto load = [&](const std::string& path) {
    std::optional<Status> answer;
    cache_->Load(path, "", [&](Result<std::vector<ImageRecord>> all) {
      answer = all ? Status::Ok() : all.error();
    });
    Until([&] { return answer.has_value(); });
    return *answer;
  };
  const Status text = load(dir_ + "/text.tar");
  EXPECT_EQ(text.reason(), Reason::kInvalid);
  EXPECT_TRUE(text.message().starts_with(dir_ + "/text.tar holds no image: expected an archive of "
                                                "docker (docker save NAME > FILE)"))
      << text.message();
  EXPECT_NE(text.message().find("as OCI's: unexpected EOF"), std::string::npos) << text.message();
  const Status folder = load(dir_ + "/folder");
  EXPECT_EQ(folder.reason(), Reason::kInvalid);
  EXPECT_NE(folder.message().find("is no OCI layout"), std::string::npos) << folder.message();
  EXPECT_EQ(load(dir_ + "/none.tar").reason(), Reason::kNotFound);
}

TEST_F(ImageCacheTest, AnImageHasALimitOfLayers) {
  Registry("a:1", "layer");
  std::string layers = fmt::format(R"({{"digest":"sha256:{:064}","size":1}})", 1);
  for (size_t i = 2; i <= kMaxImageLayers; ++i)
    layers += fmt::format(R"(,{{"digest":"sha256:{:064}","size":1}})", i);
  Registry("layers", layers);
  EXPECT_TRUE(Pull("a:1").has_value());
  Registry("a:2", "other layer");
  Registry("layers", layers + fmt::format(R"(,{{"digest":"sha256:{:064}","size":1}})", 0));
  const std::string message = Pull("a:2").error().message();
  EXPECT_TRUE(message.ends_with("the image has more than 500 layers")) << message;
}

TEST_F(ImageCacheTest, ARegistryThatDoesNotAnswerIsGivenUp) {
  Registry("a:1", "layer");
  timeouts_.resolve = {};
  Reopen();
  Registry("hold-inspect", "");
  const Status unanswered = Pull("a:1").error();
  EXPECT_EQ(unanswered.reason(), Reason::kTimeout);
  EXPECT_NE(unanswered.message().find("skopeo did not end within"), std::string::npos)
      << unanswered.message();
}

TEST_F(ImageCacheTest, APullThatGetsNoFurtherIsGivenUp) {
  Registry("a:1", "layer");
  Registry("hold", "");
  timeouts_.stall = {};
  Reopen();
  const Status stalled = Pull("a:1").error();
  EXPECT_EQ(stalled.reason(), Reason::kTimeout);
  EXPECT_NE(stalled.message().find("the registry sent nothing for"), std::string::npos)
      << stalled.message();
  EXPECT_EQ(Count("pulls"), 0u);
}

TEST_F(ImageCacheTest, APullHasALimitOfTime) {
  Registry("a:1", "layer");
  Registry("hold", "");
  timeouts_.pull = {};
  Reopen();
  const Status late = Pull("a:1").error();
  EXPECT_EQ(late.reason(), Reason::kTimeout);
  EXPECT_NE(late.message().find("skopeo did not end within"), std::string::npos) << late.message();
  EXPECT_EQ(Count("pulls"), 0u);
}

TEST_F(ImageCacheTest, MakesRoomOldestFirst) {
  Registry("old:1", "1");
  Registry("new:1", "2");
  Registry("used:1", "3");
  const std::string old_root = Pull("old:1")->image.root;
  const std::string new_root = Pull("new:1")->image.root;
  users_[Pull("used:1")->image.root] = {"default/web"};
  const int64_t bytes = cache_->FindRoot(old_root)->disk_bytes;
  // 88 % in use; one image's bytes above 80 %.
  room_ = {bytes * 10, bytes * 12 / 10, 0};
  cache_->CollectGarbage();
  Until([&] { return !garbage_.empty() && Count("roots") == 2 && Count("blobs/sha256") == 6; });
  EXPECT_EQ(garbage_[0], fmt::format("true Removed unused images to free {} bytes (88 % of the "
                                     "disk were in use): docker.io/library/old:1",
                                     bytes));
  EXPECT_NE(cache_->FindRoot(new_root), nullptr);
  // Nearly full: also what is newer, but nothing that is used.
  Until([&] { return !cache_->MakesRoom(); });
  room_ = {bytes * 10, 0, bytes};
  EXPECT_TRUE(cache_->MakeRoom());
  EXPECT_TRUE(cache_->MakeRoom());  // it is being made: no more than that goes
  Until([&] { return garbage_.size() == 3 && !cache_->MakesRoom(); });
  EXPECT_EQ(Count("roots"), 1u);
  EXPECT_TRUE(garbage_[2].starts_with("false Failed to garbage collect required amount of images."))
      << garbage_[2];
  EXPECT_EQ(cache_->images().size(), 1u);
  EXPECT_FALSE(cache_->MakeRoom());  // there is nothing left that may go
}

// A pod that ran for a day used its image until a moment ago.
TEST_F(ImageCacheTest, AgeCountsFromTheLastUse) {
  Registry("a:1", "1");
  Registry("b:1", "2");
  const std::string used = Pull("a:1")->image.root;
  const Time begin = cache_->FindRoot(used)->last_used;
  const std::string idle = Pull("b:1")->image.root;
  const Time idle_since = cache_->FindRoot(idle)->last_used;
  users_[used] = {"default/web"};
  room_ = {1000, 900, 100};  // the look at what may go is enough
  EXPECT_TRUE(cache_->MakeRoom());
  EXPECT_GT(cache_->FindRoot(used)->last_used, begin);
  EXPECT_EQ(cache_->FindRoot(idle)->last_used, idle_since);
  Until([&] { return !cache_->MakesRoom(); });
  EXPECT_EQ(cache_->images().size(), 2u);
}

TEST_F(ImageCacheTest, KeepsWhatWasUsedAMomentAgo) {
  min_age_ = kMinImageAge;
  Reopen();
  Registry("a:1", "1");
  ASSERT_TRUE(Pull("a:1").has_value());
  room_ = {1000, 0, 100};
  cache_->CollectGarbage();
  Until([&] { return !garbage_.empty(); });
  EXPECT_EQ(cache_->images().size(), 1u);
}

TEST(RunProgram, EndsWhatTakesTooLongOrIsNotWanted) {
  ProgramCall call;
  call.arguments = {"/bin/sh", "-c", "sleep 1000 & sleep 1000"};
  call.time_limit = milliseconds(1);
  EXPECT_EQ(RunProgram(call).error().reason(), Reason::kTimeout);
  call.time_limit = hours(1);
  call.watch = [] { return Status(Reason::kConflict, "no"); };
  EXPECT_EQ(RunProgram(call).error().message(), "no");
  call.watch = [] { return Status::Ok(); };
  const std::atomic<bool> cancelled = true;
  call.cancelled = &cancelled;
  EXPECT_EQ(RunProgram(call).error().reason(), Reason::kServiceUnavailable);
}

TEST(RunProgram, KeepsNoMoreThanItsLimitOfOutput) {
  ProgramCall call;
  call.arguments = {"/bin/sh", "-c",
                    fmt::format("head -c {} /dev/zero", kMaxProgramOutputBytes + 1)};
  call.time_limit = hours(1);
  EXPECT_EQ(RunProgram(call)->out, "");
  call.arguments[2] = fmt::format("head -c {} /dev/zero", kMaxProgramOutputBytes);
  EXPECT_EQ(RunProgram(call)->out.size(), kMaxProgramOutputBytes);
}

TEST(RunProgram, ReadsBothStreamsAndTheExitCode) {
  ProgramCall call;
  call.arguments = {"/bin/sh", "-c", "cat; echo out; echo err >&2; exit 3"};
  call.time_limit = hours(1);
  const auto result = RunProgram(call);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->out + result->err, "out\nerr\n");
  EXPECT_EQ(result->exit_code, 3);
  call.arguments = {"/no/such/program"};
  EXPECT_EQ(RunProgram(call)->exit_code, 127);
}

}  // namespace
}  // namespace muster::agent
