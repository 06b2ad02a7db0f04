// muster sync: makes the cluster what a folder of a Git repository says, again and again.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "base/strings.h"
#include "cli/applier.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/duration_flag.h"
#include "cli/errors.h"
#include "cli/git_repository.h"
#include "cli/manifests.h"
#include "cli/session.h"
#include "cli/sync_plan.h"
#include "json/write.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr Duration kLeastInterval = seconds(1);
constexpr size_t kShownHash = 10;

struct SyncOptions {
  std::string repository, path, branch, name;
  bool prune = false, push = false, once = false;
  Duration interval{};
};

Result<SyncOptions> OptionsOf(const Arguments& arguments) {
  SyncOptions options;
  options.repository = arguments.positionals[0];
  options.path = arguments.positionals.size() > 1 ? arguments.positionals[1] : "";
  options.branch = arguments.Get("branch");
  options.name = arguments.Get("name");
  if (options.name.empty()) options.name = SyncNameOf(options.repository, options.path);
  if (SyncNameOf(options.name, "") != options.name) {
    return Error(Reason::kInvalid,
                 "--name {:?}: expected lower-case letters, digits and dashes, at most 50",
                 options.name);
  }
  const std::vector<std::string_view> parts = Split(options.path, '/');
  if (options.path.starts_with('/') || std::find(parts.begin(), parts.end(), "..") != parts.end())
    return Error(Reason::kInvalid, "{:?}: expected a path inside the repository", options.path);
  options.prune = arguments.Has("prune");
  options.push = arguments.Has("push");
  options.once = arguments.Has("once");
  ASSIGN_OR_RETURN(options.interval, ParseSpanFlag("interval", arguments.Get("interval")));
  if (options.interval < kLeastInterval)
    return Error(Reason::kInvalid, "--interval: at least {}", HumanDuration(kLeastInterval));
  return options;
}

// Where the checkout lives: for one repository, branch and cluster's namespace alone.
Result<std::string> CheckoutFolder(const SyncOptions& options) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if ((cache == nullptr || *cache == '\0') && (home == nullptr || *home == '\0'))
    return Error(Reason::kInvalid, "neither HOME nor XDG_CACHE_HOME says where to check out");
  const std::string base =
      cache != nullptr && *cache != '\0' ? cache : std::string(home) + "/.cache";
  const uint64_t hash = Hash64(options.repository + " " + options.branch + " " + options.name);
  return fmt::format("{}/muster/sync/{}-{:016x}", base, options.name, hash);
}

// Whoever may commit must not have files of this machine read, which git itself leaves alone.
Status CheckLinks(const std::string& root, const std::string& folder) {
  std::error_code error;
  const fs::path inside = fs::canonical(root, error);
  const auto leads_out = [&](const fs::path& path) {
    const fs::path real = fs::weakly_canonical(path, error);
    return std::mismatch(inside.begin(), inside.end(), real.begin(), real.end()).first !=
           inside.end();
  };
  const auto refuse = [&](const fs::path& path) {
    return Error(Reason::kInvalid, "{}: a symbolic link that leads out of the repository",
                 fs::path(path).lexically_relative(root).string());
  };
  if (leads_out(folder)) return refuse(folder);
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_symlink() && leads_out(it->path())) return refuse(it->path());
  }
  return Status::Ok();
}

class Syncer {
 public:
  Syncer(Invocation& invocation, SyncOptions options, GitRepository repository)
      : session_(invocation.session),
        console_(invocation.console),
        options_(std::move(options)),
        repository_(std::move(repository)),
        applier_(session_, invocation.arguments.Has("namespace")) {}

  // Everything once. An error: nothing was changed; false: some objects could not be applied.
  Result<bool> Round();

 private:
  client::Target InventoryTarget() const {
    return {client::resources::kConfigMaps, session_.ns(), "muster-sync-" + options_.name, ""};
  }
  Status ReadInventory();
  Status WriteInventory(const std::string& commit);
  Status WriteData(json::Value data);
  Status Announce(Entries entries);
  Result<std::vector<bool>> AnnounceAll(const std::vector<ManifestObject>& manifests);
  Result<std::vector<ManifestObject>> ReadFolder() const;
  bool ApplyOne(const ManifestObject& manifest, bool announced);
  bool LeaveOut(const std::string& entry);
  Status PushState(const GitRepository::Commit& commit);
  void TellOfCommit(const GitRepository::Commit& commit);

  Session& session_;
  Console& console_;
  const SyncOptions options_;
  GitRepository repository_;
  Applier applier_;
  bool has_inventory_ = false;  // the object is there
  Entries inventory_, now_;     // of the last round and of this one
  // What was about to be applied, so that who is killed in between knows of it; those that have
  // a fault still.
  Entries pending_, still_pending_;
  std::string inventory_commit_, told_commit_, pushed_;
  std::map<std::string, std::string> errors_;  // by object: as told last
};

// A list that nobody can read must not be taken for an empty one: what is in it would be forgotten.
Status Syncer::ReadInventory() {
  const Result<json::Value> map = session_.Get(InventoryTarget());
  has_inventory_ = map.has_value();
  inventory_.clear();
  pending_.clear();
  if (!map) return map.error().reason() == Reason::kNotFound ? Status::Ok() : map.error();
  const json::Value& data = (*map)["data"];
  inventory_commit_ = data["commit"].Str();
  for (const auto& [key, list] :
       {std::pair{"inventory", &inventory_}, std::pair{"pending", &pending_}}) {
    if (!data.Has(key)) continue;
    Result<Entries> entries = EntriesOf(data[key].AsString());
    if (!entries) {
      return Error(Reason::kInvalid,
                   "configmap/{}: data.{}: {}; nothing is changed until it is one again, or the "
                   "ConfigMap is deleted, which forgets what was applied",
                   InventoryTarget().name, key, entries.error().message());
    }
    *list = *std::move(entries);
  }
  return Status::Ok();
}

// Before anything of it is applied.
Status Syncer::Announce(Entries entries) {
  std::erase_if(entries, [this](const std::string& entry) {
    return inventory_.contains(entry) || pending_.contains(entry);
  });
  if (entries.empty()) return Status::Ok();
  pending_.merge(entries);
  return WriteData(json::Obj({{"pending", TextOf(pending_)}}));
}

// In one write. Which of them it was of: what is of a kind that the folder brings itself comes
// later.
Result<std::vector<bool>> Syncer::AnnounceAll(const std::vector<ManifestObject>& manifests) {
  Entries entries;
  std::vector<bool> announced;
  for (const ManifestObject& manifest : manifests) {
    const Result<client::Target> target = applier_.TargetOf(manifest.object);
    announced.push_back(target.has_value());
    if (target) entries.insert(EntryOf(*target));
  }
  RETURN_IF_ERROR(Announce(std::move(entries)));
  return announced;
}

Status Syncer::WriteInventory(const std::string& commit) {
  if (has_inventory_ && now_ == inventory_ && still_pending_ == pending_ &&
      commit == inventory_commit_) {
    return Status::Ok();
  }
  json::Value data = json::Obj({{"commit", commit},
                                {"inventory", TextOf(now_)},
                                {"path", options_.path},
                                {"repository", WithoutCredentials(options_.repository)}});
  if (!still_pending_.empty()) {
    data = data.Set("pending", TextOf(still_pending_));
  } else if (!pending_.empty()) {
    data = data.Set("pending", nullptr);
  }
  return WriteData(std::move(data));
}

Status Syncer::WriteData(json::Value data) {
  const client::Target target = InventoryTarget();
  if (!has_inventory_) {
    const json::Value object =
        json::Obj({{"apiVersion", "v1"},
                   {"kind", "ConfigMap"},
                   {"metadata", json::Obj({{"name", target.name}, {"namespace", target.ns}})},
                   {"data", data}});
    ASSIGN_OR_RETURN(const json::Value created,
                     session_.Create({target.resource, target.ns, "", ""}, object));
    has_inventory_ = true;
    return Status::Ok();
  }
  net::Request request{.method = "PATCH", .target = client::ApiClient::PathOf(target)};
  request.headers.Add("Content-Type", "application/merge-patch+json");
  request.body = json::Write(json::Obj({{"data", data}}));
  ASSIGN_OR_RETURN(const net::Response answer, session_.Raw(std::move(request)));
  return Status::Ok();
}

// An empty folder is taken for a mistake: it would prune everything.
Result<std::vector<ManifestObject>> Syncer::ReadFolder() const {
  const std::string folder =
      options_.path.empty() ? repository_.folder() : repository_.folder() + "/" + options_.path;
  RETURN_IF_ERROR(CheckLinks(repository_.folder(), folder));
  Result<std::vector<ManifestObject>> objects = ReadManifests({folder}, true);
  if (!objects) {
    return Error(Reason::kInvalid, "{}",
                 ReplaceAll(objects.error().message(), repository_.folder() + "/", ""));
  }
  for (ManifestObject& object : *objects)
    object.source = ReplaceAll(object.source, repository_.folder() + "/", "");
  return objects;
}

bool Syncer::ApplyOne(const ManifestObject& manifest, bool announced) {
  const json::Value object =
      manifest.object.SetPath({"metadata", "labels", kSyncLabel}, options_.name);
  const auto may_change = [&](const json::Value& current) -> Status {
    const std::string owner = current["metadata"]["labels"][kSyncLabel].Str(options_.name);
    if (owner == options_.name) return Status::Ok();
    return Error(Reason::kInvalid, "it belongs to the sync {:?}", owner);
  };
  const auto apply = [&]() -> Result<Applied> {
    if (!announced) {
      ASSIGN_OR_RETURN(const client::Target target, applier_.TargetOf(object));
      RETURN_IF_ERROR(Announce({EntryOf(target)}));
    }
    return applier_.Apply(object, may_change);
  };
  const Result<Applied> applied = apply();
  const std::string what = fmt::format(
      "{}{}: {} {}", manifest.source,
      manifest.document == 0 ? std::string() : fmt::format(", document {}", manifest.document),
      manifest.object["kind"].AsString(), manifest.object["metadata"]["name"].AsString());
  if (!applied) {
    const std::string error = fmt::format("{}: {}", what, applied.error().message());
    if (std::exchange(errors_[what], error) != error) console_.Err(error);
    return false;
  }
  errors_.erase(what);
  const std::string entry = EntryOf(applied->target);
  now_.insert(entry);
  const bool known = inventory_.contains(entry);
  const std::vector<std::string> drift = DriftOf(*applied, object);
  if (!drift.empty()) {
    console_.Print("{} had drifted: {}\n", applied->name, Join(drift, "; "));
  } else if (applied->outcome == "created" && known) {
    console_.Print("{} had been deleted, created again\n", applied->name);
  } else if (applied->outcome != "unchanged") {
    console_.Print("{} {}\n", applied->name, applied->outcome);
  }
  return true;
}

// What the folder no longer has. True: it is no longer to be remembered.
bool Syncer::LeaveOut(const std::string& entry) {
  const client::Target target = TargetOf(entry);
  const std::string name = fmt::format("{}/{}", target.resource.plural, target.name);
  const Result<json::Value> current = session_.Get(target);
  if (!current) return current.error().reason() == Reason::kNotFound;
  if ((*current)["metadata"]["labels"][kSyncLabel].AsString() != options_.name) {
    console_.Print("{} is left alone: it belongs to this sync no more\n", name);
    return true;
  }
  if (!options_.prune) {
    if (told_commit_ != inventory_commit_)
      console_.Print("{} is not in the folder any more (--prune deletes it)\n", name);
    return false;
  }
  client::DeleteOptions options;
  options.propagation_policy = "Background";
  options.precondition_uid = (*current)["metadata"]["uid"].Str();
  const Result<json::Value> deleted = session_.Delete(target, options);
  if (!deleted && deleted.error().reason() != Reason::kNotFound) {
    console_.Err(fmt::format("prune {}: {}", name, deleted.error().message()));
    return false;
  }
  console_.Print("{} pruned\n", name);
  return true;
}

void Syncer::TellOfCommit(const GitRepository::Commit& commit) {
  if (told_commit_ == commit.hash) return;
  console_.Print("commit {}: {}\n", commit.hash.substr(0, kShownHash), commit.subject);
}

// Beside the commit, so that `git log --notes=muster` shows what became of it.
Status Syncer::PushState(const GitRepository::Commit& commit) {
  std::vector<std::string> lines = {
      fmt::format("muster sync {}: {} objects", options_.name, now_.size())};
  for (const std::string& entry : now_) {
    const client::Target target = TargetOf(entry);
    const Result<json::Value> object = session_.Get(target);
    const std::string state = object ? StateOf(*object) : std::string(object.error().message());
    lines.push_back(fmt::format("{}/{}: {}", target.resource.plural, target.name,
                                state.empty() ? "applied" : state));
  }
  for (const auto& [what, error] : errors_) lines.push_back("error: " + error);
  const std::string text = Join(lines, "\n");
  if (commit.hash + text == pushed_) return Status::Ok();
  RETURN_IF_ERROR(repository_.PushNote(commit, text));
  pushed_ = commit.hash + text;
  console_.Print("pushed: {}\n", Join(lines, "; "));
  return Status::Ok();
}

Result<bool> Syncer::Round() {
  ASSIGN_OR_RETURN(const GitRepository::Commit commit, repository_.Update());
  ASSIGN_OR_RETURN(const std::vector<ManifestObject> manifests, ReadFolder());
  RETURN_IF_ERROR(ReadInventory());
  TellOfCommit(commit);
  now_.clear();
  still_pending_.clear();
  ASSIGN_OR_RETURN(const std::vector<bool> announced, AnnounceAll(manifests));
  bool all = true;
  for (size_t i = 0; i < manifests.size(); ++i) all &= ApplyOne(manifests[i], announced[i]);
  const auto leave_out = [&](const Entries& known, Entries& kept) {
    std::vector<std::string> gone = LeftOut(known, now_);
    std::reverse(gone.begin(), gone.end());
    for (const std::string& entry : gone) {
      // Of a manifest that has a fault nobody knows which object it is: it may be one of these.
      if (!all || !LeaveOut(entry)) kept.insert(entry);
    }
  };
  leave_out(pending_, still_pending_);
  leave_out(inventory_, now_);
  RETURN_IF_ERROR(WriteInventory(commit.hash));
  told_commit_ = commit.hash;
  inventory_commit_ = commit.hash;
  if (options_.push) RETURN_IF_ERROR(PushState(commit));
  return all;
}

Result<int> Run(Invocation& invocation) {
  ASSIGN_OR_RETURN(const SyncOptions options, OptionsOf(invocation.arguments));
  ASSIGN_OR_RETURN(const std::string folder, CheckoutFolder(options));
  ASSIGN_OR_RETURN(GitRepository repository,
                   GitRepository::Open(options.repository, options.branch, folder));
  Syncer syncer(invocation, options, std::move(repository));
  std::string told;
  while (true) {
    const Result<bool> round = syncer.Round();
    if (options.once) {
      if (!round) return Error(round.error());
      return *round ? 0 : 1;
    }
    // What is wrong now may be mended by the next commit, or the server come back.
    const std::string error = round ? "" : DescribeError(round.error());
    if (std::exchange(told, error) != error && !error.empty()) invocation.console.Err(error);
    invocation.session.Sleep(options.interval);
  }
}

}  // namespace

Command SyncCommand() {
  Command command;
  command.name = "sync";
  command.summary = "make the cluster what a folder of a Git repository says";
  command.usage = "REPOSITORY [PATH] [flags]";
  command.details =
      "Applies all manifests below PATH, as `muster apply` does, looks again every --interval, "
      "and\n"
      "puts back what others changed, saying what. What it applied it remembers in the ConfigMap\n"
      "muster-sync-NAME; --prune deletes what the folder no longer has. A folder with a file that\n"
      "cannot be read changes nothing. More: docs/gitops.md.";
  command.flags = {
      {"branch", 0, "BRANCH", "instead of the repository's default", "", {}},
      {"prune", 0, "", "delete what it applied before and the folder no longer has", "", {}},
      {"interval", 0, "DURATION", "how often to look", "1m", {}},
      {"once", 0, "", "one round; exit code 1 if an object could not be applied", "", {}},
      {"push", 0, "", "push what became of the objects, as a Git note of the commit", "", {}},
      {"name", 0, "NAME", "of this sync; otherwise made from repository and path", "", {}}};
  command.examples = {
      {"muster sync https://example.com/team/jobs.git training --prune", "follow a repository"},
      {"muster sync . jobs --once", "what this directory has committed"},
      {"git log --notes=muster", "what --push has written"}};
  command.least_words = 1;
  command.most_words = 2;
  command.exclusive = {{"once", "interval"}};
  command.run = Run;
  return command;
}

}  // namespace muster::cli
