#include "simulation/chapters_story.h"

#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/strings.h"
#include "simulation/autoscaler_chapter.h"
#include "simulation/claim_chapter.h"
#include "simulation/finalizer_chapter.h"
#include "simulation/jobset_chapter.h"
#include "simulation/quota_chapter.h"
#include "simulation/trouble.h"
#include "simulation/world.h"

namespace muster::simulation {
namespace {

template <class T>
std::unique_ptr<Chapter> MakeChapter(const Tale& tale) {
  return std::make_unique<T>(tale);
}

constexpr std::unique_ptr<Chapter> (*kChapters[])(const Tale&) = {
    MakeChapter<ClaimChapter>, MakeChapter<QuotaChapter>, MakeChapter<AutoscalerChapter>,
    MakeChapter<JobSetChapter>, MakeChapter<FinalizerChapter>};
constexpr size_t kChaptersTold = 3;  // of a story, in all combinations
static_assert(std::size(kChapters) == 5);
// Of a story that rests nothing is written in this time but leases and events.
constexpr Duration kRest = seconds(60);
constexpr int64_t kMostToTell = 2;

class ChaptersStory {
 public:
  ChaptersStory(uint64_t seed, Counts& counts, bool verbose)
      : rng_(Hash64("chapters", seed)),
        counts_(counts),
        world_({.seed = seed,
                .nodes = rng_.Between(2, 4),
                .max_commit_time = milliseconds(rng_.Chance(0.3) ? 100 : 5),
                .keeps_volumes = true,
                .verbose = verbose},
               counts) {
    const Tale tale{world_, rng_, counts_, trouble_};
    // Each of a prime number of them comes once.
    const size_t first = rng_.Below(std::size(kChapters));
    const size_t step = 1 + rng_.Below(std::size(kChapters) - 1);
    for (size_t i = 0; i < kChaptersTold; ++i)
      chapters_.push_back(kChapters[(first + i * step) % std::size(kChapters)](tale));
  }

  ~ChaptersStory() { world_.oracles().ForgetListeners(); }

  Outcome Run() {
    world_.SetNetwork(kBadNetwork);
    world_.Start();
    for (const auto& chapter : chapters_) chapter->Plan();
    trouble_.PlanCrashes();
    trouble_.PlanDeaths();
    trouble_.Perhaps(0.2, [this] { world_.Compact(rng_); });
    world_.RunFor(seconds(kStoryLengthSeconds));
    world_.Repair();
    for (const auto& chapter : chapters_) chapter->End();
    if (world_.Settle([this] { return Restless().empty(); }, kTimeToSettle)) {
      Judge();
    } else {
      for (const std::string& object : Restless()) world_.Violation("not at rest: " + object);
    }
    return {world_.oracles().trace_hash(), world_.oracles().revisions(), world_.loop().steps(),
            world_.violations()};
  }

 private:
  std::vector<std::string> Restless() const {
    std::vector<std::string> restless;
    for (const auto& chapter : chapters_) {
      for (std::string& object : chapter->Restless()) restless.push_back(std::move(object));
    }
    return restless;
  }

  void Judge() {
    world_.Judge();
    for (const auto& chapter : chapters_) chapter->Judge();
    world_.oracles().Listen("/registry/", [this](const std::string& key, const json::Value&, bool) {
      // An autoscaler tells when a wish of the past does not count any more.
      const bool tells = key.starts_with("/registry/autoscaling/");
      const int64_t most = tells ? kMostToTell : 0;
      if (!CrashPoint::Counts(key) || ++late_changes_[key] <= most) return;
      world_.Violation("all was at rest, and then changed: " + key);
    });
    world_.RunFor(kRest);
  }

  Rng rng_;
  Counts& counts_;
  World world_;
  Trouble trouble_{world_, rng_, counts_};
  std::vector<std::unique_ptr<Chapter>> chapters_;
  std::map<std::string, int64_t> late_changes_;  // by key
};

}  // namespace

Outcome RunChaptersSeed(uint64_t seed, Counts& counts, bool verbose) {
  return ChaptersStory(seed, counts, verbose).Run();
}

const std::vector<std::string_view>& ExpectedChapterCounts() {
  static const std::vector<std::string_view> kNames = {
      "story: make a claim",
      "story: make a volume",
      "story: make a pod with a claim",
      "story: make a pod with an ephemeral volume",
      "story: make a StatefulSet with claims",
      "story: delete a claim",
      "story: delete a claim's pod",
      "story: delete a volume",
      "branch: a claim's deletion took its time",
      "branch: a volume was made for a claim",
      "branch: a volume is kept after its claim",
      "branch: claim rests bound",
      "oracle: a volume went after its folder",
      "oracle: pod bound where its volume is",
      "story: make a quota",
      "story: change a quota",
      "story: delete a quota",
      "story: a burst under a quota",
      "story: delete under a quota",
      "story: make a ReplicaSet under a quota",
      "branch: refused by a quota",
      "branch: a quota was used up",
      "oracle: object made under a quota",
      "oracle: use counted from scratch",
      "story: make a Deployment and its autoscaler",
      "story: delete an autoscaler",
      "story: change the bounds of an autoscaler",
      "story: change what pods use",
      "branch: scaling down is put off",
      "branch: an autoscaler is at its maximum",
      "branch: there are no metrics",
      "branch: scaled up by an autoscaler",
      "branch: scaled down by an autoscaler",
      "oracle: autoscaler at rest",
      "story: make a JobSet",
      "story: make a JobSet as a gang",
      "story: a JobSet in order",
      "story: a JobSet with dependsOn",
      "story: suspend a JobSet",
      "story: delete a JobSet (Background)",
      "story: delete a JobSet (Foreground)",
      "story: delete a JobSet (Orphan)",
      "story: delete a Job of a JobSet",
      "branch: a JobSet began anew",
      "branch: a JobSet completed",
      "branch: a JobSet failed",
      "oracle: Job of a JobSet",
      "oracle: JobSet at rest",
      "story: hold an object",
      "story: hold a dependent",
      "story: take a finalizer off",
      "branch: an owner waits for a finalizer",
      "branch: a namespace waits for a finalizer",
      "oracle: all that was held is gone",
  };
  return kNames;
}

}  // namespace muster::simulation
