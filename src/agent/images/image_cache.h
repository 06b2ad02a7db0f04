// src/agent/images/image_cache.h
//
// ImageCache: the images that this node has, shared by all its pods. It pulls each once for however
// many pods want it, loads archives, removes what nobody uses when the disk is nearly full.
//
// Life cycle: Start() once; what is asked before the index is read waits. Destroying it ends the
//             programs at work.
// Thread:     the loop thread. Programs run on threads of its own, which are made by the first
//             pull; other file work on the pool.
// Invariants: an image is told of only when the index on disk names it; an image that `users` names
//             is never removed.

#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/images/image_files.h"
#include "agent/images/image_record.h"
#include "agent/volumes/disk_usage.h"
#include "base/status.h"
#include "base/task.h"
#include "client/lifetime.h"
#include "loop/loop.h"

namespace muster::agent {

inline constexpr int kMaxParallelPulls = 3;    // the others wait their turn
inline constexpr int kMaxArchivedImages = 32;  // in one file that is loaded
inline constexpr Duration kImageGcPeriod = minutes(5);
inline constexpr Duration kMinImageAge = minutes(2);  // without use, before it may go
// The kubelet's --image-gc-high-threshold and -low-threshold, percent of the disk.
inline constexpr int kImageGcHighPercent = 85;
inline constexpr int kImageGcLowPercent = 80;

struct PulledImage {
  ImageRecord image;
  Duration took{}, with_waiting{};
};

class ImageCache {
 public:
  using Users = std::map<std::string, std::vector<std::string>>;  // root -> "namespace/pod"
  struct Hooks {
    std::function<Users()> users;
    std::function<DiskRoom(const std::string& path)> measure = MeasureRoom;
    Duration min_age = kMinImageAge;
    ImageTimeouts timeouts = {};
    // Told when images went to make room, or could not: the text of an event of the node.
    std::function<void(bool ok, const std::string& message)> on_garbage;
  };

  // `programs` runs what blocks for minutes; nullptr = threads of its own.
  ImageCache(std::string data_dir, Loop& loop, Pool& pool, Pool* programs = nullptr);
  ~ImageCache();

  void Start(Hooks hooks);

  // nullptr if it is not here. The pointer holds until the next call.
  const ImageRecord* Find(const ImageReference& reference) const;
  const ImageRecord* FindRoot(const std::string& root) const;
  const std::vector<ImageRecord>& images() const { return images_; }
  Users users() const { return hooks_.users ? hooks_.users() : Users(); }

  // Runs `then` when the index has been read, perhaps at once.
  void WhenReady(Task then);
  // Asks the registry what the name means now, and fetches it if it is not here. `auths` are tried
  // in order; without any, the machine's own configuration counts.
  void Pull(const ImageReference& reference, const std::vector<std::string>& auths,
            Function<void(Result<PulledImage>)> done);
  // All images of an OCI layout or archive on this machine. `name` is for one that has none.
  void Load(const std::string& path, const std::string& name,
            Function<void(Result<std::vector<ImageRecord>>)> done);
  // By name, digest or ID (or its beginning). A name of several is only forgotten. Conflict: a pod
  // uses it.
  void Remove(const std::string& name, Function<void(Status)> done);
  // A container starts from it.
  void Touch(const std::string& root);
  // Removes unused images if the disk is above the high threshold, or has no room at all.
  void CollectGarbage();
  // The disk is nearly full: has unused images removed. Whether room comes of it, now or soon.
  bool MakeRoom();
  // While room is being made: what is measured is not yet what there will be.
  bool MakesRoom() const { return freeing_ > 0 || sweeping_; }

 private:
  struct Pulling;
  using PullingPtr = std::shared_ptr<Pulling>;

  Pool& Programs();
  ImageWork NewWork();
  void OnResolved(const PullingPtr& pull, const Result<ResolvedImage>& image, size_t auth);
  void Fetch(const PullingPtr& pull, const ResolvedImage& image, size_t auth);
  void OnFetched(const std::string& digest, Result<ImageRecord> image);
  void Finish(const PullingPtr& pull, const Result<std::string>& root);
  // Puts it into the list, or drops its files if the list has the same; its place in the list.
  size_t Add(ImageRecord image);
  void Name(size_t index, const std::string& name, const std::string& digest);
  Result<size_t> IndexOf(const std::string& name) const;
  void Drop(size_t index);
  void Save(Task then);
  void SweepBlobs();
  // Roots of what may go, the longest unused first. Notes what is used now: an image's age counts
  // from its last use, not from the start of the container that used it.
  std::vector<std::string> Unused();
  void OnRoom(const DiskRoom& room);
  void LookLater();

  const std::string data_dir_;
  Loop& loop_;
  Pool& pool_;
  Hooks hooks_;
  std::vector<ImageRecord> images_;
  bool ready_ = false;
  std::vector<Task> waiting_;                               // for ready_
  std::map<std::string, PullingPtr> pulls_;                 // by name and credentials
  std::map<std::string, std::vector<PullingPtr>> fetches_;  // by digest
  int working_ = 0;                // fetches and loads under way: blobs are not swept
  std::vector<Task> after_sweep_;  // fetches that wait for a sweep
  bool sweeping_ = false;
  int freeing_ = 0;  // measurements and removals under way
  bool saving_ = false;
  std::vector<Task> saved_, saving_for_;
  TimerId timer_ = 0;
  uint64_t next_work_ = 0;
  std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
  Pool* programs_;
  std::unique_ptr<Pool> own_programs_;
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
