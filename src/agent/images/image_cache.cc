#include "agent/images/image_cache.h"

#include <algorithm>

#include "agent/images/image_credentials.h"
#include "base/log.h"
#include "base/strings.h"
#include "loop/thread_pool.h"

namespace muster::agent {

struct ImageCache::Pulling {
  ImageReference reference;
  std::vector<std::string> auths;  // at least one; "" = the machine's own
  std::vector<std::pair<Time, Function<void(Result<PulledImage>)>>> waiting;
  Duration begun{}, ended{};  // monotonic; on a thread for programs
  std::string key;            // in pulls_
};

namespace {

Duration MonotonicNow() { return RealClock().Monotonic(); }

ImageSource SourceOf(const ImageReference& reference, const std::string& digest,
                     const std::string& auth) {
  return {"docker://" + (digest.empty() ? reference.Name() : reference.AtDigest(digest)),
          reference.OnLoopback(), auth.empty() ? "" : AuthFile(reference, auth)};
}

}  // namespace

ImageCache::ImageCache(std::string data_dir, Loop& loop, Pool& pool, Pool* programs)
    : data_dir_(std::move(data_dir)), loop_(loop), pool_(pool), programs_(programs) {}

ImageCache::~ImageCache() {
  *cancelled_ = true;
  loop_.Cancel(timer_);
}

Pool& ImageCache::Programs() {
  if (programs_ != nullptr) return *programs_;
  own_programs_ = std::make_unique<ThreadPool>("images", kMaxParallelPulls);
  programs_ = own_programs_.get();
  return *programs_;
}

ImageWork ImageCache::NewWork() {
  // The time makes it unlike those of earlier lives, whose folders may be in the index.
  const auto stamp = loop_.Now().time_since_epoch().count();
  return {data_dir_, fmt::format("{:x}-{}", stamp, next_work_++), cancelled_.get(),
          hooks_.timeouts};
}

void ImageCache::Start(Hooks hooks) {
  hooks_ = std::move(hooks);
  auto found = std::make_shared<Result<std::vector<ImageRecord>>>();
  pool_.Run([found, dir = data_dir_] { *found = OpenImageFiles(dir); }, loop_,
            lifetime_.Guard([this, found] {
              if (!*found) LOG_ERROR("images: {}", found->error().message());
              images_ = std::move(*found).value_or(std::vector<ImageRecord>());
              ready_ = true;
              std::vector<Task> waiting = std::move(waiting_);
              waiting_.clear();
              for (Task& task : waiting) task();
              LookLater();
            }));
}

void ImageCache::WhenReady(Task then) {
  if (ready_) return then();
  waiting_.push_back(std::move(then));
}

const ImageRecord* ImageCache::Find(const ImageReference& reference) const {
  const auto found = std::find_if(images_.begin(), images_.end(), [&](const ImageRecord& image) {
    return image.IsCalled(reference);
  });
  return found == images_.end() ? nullptr : &*found;
}

const ImageRecord* ImageCache::FindRoot(const std::string& root) const {
  const auto found = std::find_if(images_.begin(), images_.end(),
                                  [&](const ImageRecord& image) { return image.root == root; });
  return found == images_.end() ? nullptr : &*found;
}

void ImageCache::Pull(const ImageReference& reference, const std::vector<std::string>& auths,
                      Function<void(Result<PulledImage>)> done) {
  const std::string key = reference.Name() + "\n" + Join(auths, "\n");
  PullingPtr& pull = pulls_[key];
  const bool is_new = pull == nullptr;
  if (is_new) pull = std::make_shared<Pulling>();
  pull->waiting.emplace_back(loop_.Now(), std::move(done));
  if (!is_new) return;
  pull->reference = reference;
  pull->auths = auths.empty() ? std::vector<std::string>{""} : auths;
  pull->key = key;
  WhenReady([this, pull] {
    struct Answer {
      Result<ResolvedImage> image;
      size_t auth = 0;
    };
    auto answer = std::make_shared<Answer>();
    Programs().Run(
        [pull, answer, work = NewWork(), held = cancelled_] {
          pull->begun = MonotonicNow();
          for (size_t i = 0; i < pull->auths.size(); ++i) {
            answer->auth = i;
            answer->image = ResolveImage(work, SourceOf(pull->reference, "", pull->auths[i]));
            if (answer->image) break;
          }
          pull->ended = MonotonicNow();
        },
        loop_,
        lifetime_.Guard([this, pull, answer] { OnResolved(pull, answer->image, answer->auth); }));
  });
}

void ImageCache::OnResolved(const PullingPtr& pull, const Result<ResolvedImage>& image,
                            size_t auth) {
  if (!image) return Finish(pull, std::unexpected(image.error()));
  const std::string& digest = image->digest;
  const std::string suffix = "@" + digest;
  for (size_t i = 0; i < images_.size(); ++i) {
    const auto& digests = images_[i].digests;
    if (std::none_of(digests.begin(), digests.end(),
                     [&](const std::string& known) { return known.ends_with(suffix); }))
      continue;
    Name(i, pull->reference.digest.empty() ? pull->reference.Name() : "",
         pull->reference.AtDigest(digest));
    return Save([this, pull, root = images_[i].root] { Finish(pull, root); });
  }
  std::vector<PullingPtr>& fetch = fetches_[digest];
  fetch.push_back(pull);
  if (fetch.size() == 1) Fetch(pull, *image, auth);
}

void ImageCache::Fetch(const PullingPtr& pull, const ResolvedImage& resolved, size_t auth) {
  if (sweeping_) {
    after_sweep_.push_back([this, pull, resolved, auth] { Fetch(pull, resolved, auth); });
    return;
  }
  ++working_;
  auto image = std::make_shared<Result<ImageRecord>>();
  Programs().Run(
      [pull, image, work = NewWork(), held = cancelled_, resolved, auth] {
        *image = FetchImage(work, SourceOf(pull->reference, resolved.digest, pull->auths[auth]),
                            resolved.new_bytes);
        pull->ended = MonotonicNow();
      },
      loop_, lifetime_.Guard([this, image, digest = resolved.digest] {
        --working_;
        OnFetched(digest, std::move(*image));
      }));
}

void ImageCache::OnFetched(const std::string& digest, Result<ImageRecord> image) {
  std::vector<PullingPtr> pulls = std::move(fetches_[digest]);
  fetches_.erase(digest);
  if (!image) {
    const Result<std::string> failed = std::unexpected(image.error());
    for (const PullingPtr& pull : pulls) Finish(pull, failed);
    if (image.error().reason() != Reason::kRequestEntityTooLarge) return;
    SweepBlobs();  // else its layers would fill the disk for nothing
    return CollectGarbage();
  }
  const size_t index = Add(std::move(*image));
  for (const PullingPtr& pull : pulls) {
    Name(index, pull->reference.digest.empty() ? pull->reference.Name() : "",
         pull->reference.AtDigest(digest));
    pull->ended = pulls.front()->ended;
  }
  Save([this, pulls, root = images_[index].root] {
    for (const PullingPtr& pull : pulls) Finish(pull, root);
  });
}

void ImageCache::Finish(const PullingPtr& pull, const Result<std::string>& root) {
  pulls_.erase(pull->key);
  const ImageRecord* image = root ? FindRoot(*root) : nullptr;
  Result<PulledImage> result;
  if (image != nullptr) {
    result->image = *image;
    result->took = pull->ended - pull->begun;
  } else if (root) {
    result = Error(Reason::kConflict, "the image was removed while it was being pulled");
  } else {
    result = std::unexpected(root.error().WithPrefix(
        fmt::format("failed to pull image {:?}: ", pull->reference.Name())));
  }
  for (auto& [since, done] : pull->waiting) {
    if (result) result->with_waiting = std::max(loop_.Now() - since, result->took);
    done(result);
  }
}

size_t ImageCache::Add(ImageRecord image) {
  image.last_used = loop_.Now();
  const auto same = std::find_if(images_.begin(), images_.end(), [&](const ImageRecord& known) {
    return known.blobs == image.blobs;
  });
  if (same == images_.end()) {
    images_.push_back(std::move(image));
    return images_.size() - 1;
  }
  same->last_used = image.last_used;
  pool_.Run([dir = data_dir_, root = image.root] { (void)RemoveImageRoot(dir, root); }, loop_,
            [] {});
  return static_cast<size_t>(same - images_.begin());
}

void ImageCache::Name(size_t index, const std::string& name, const std::string& digest) {
  ImageRecord& image = images_[index];
  image.last_used = loop_.Now();
  const auto add = [](std::vector<std::string>& list, const std::string& text) {
    if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end())
      list.push_back(text);
  };
  // A tag names one image: the one that it named before has it no longer.
  for (ImageRecord& other : images_) {
    if (&other != &image) std::erase(other.names, name);
  }
  add(image.names, name);
  add(image.digests, digest);
}

namespace {

struct Loaded {
  Status status;
  std::vector<std::pair<std::string, ImageRecord>> images;  // with their names
};

// Images up to the first that fails stay.
Status LoadAll(const std::vector<ImageWork>& works, const std::string& path,
               const std::string& name, Loaded& out) {
  ASSIGN_OR_RETURN(const std::vector<ArchivedImage> list, ListArchive(works[0], path));
  if (list.size() > works.size()) {
    return Error(Reason::kInvalid, "{} holds {} images: at most {} are loaded from one file", path,
                 list.size(), works.size());
  }
  if (list.size() > 1 && !name.empty()) {
    return Error(Reason::kInvalid, "{} holds {} images, and --name names one: leave it out", path,
                 list.size());
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string called = name.empty() ? list[i].name : name;
    if (called.empty())
      return Error(Reason::kInvalid, "an image in {} has no name: give it one, --name NAME", path);
    ASSIGN_OR_RETURN(const ImageReference reference, ParseImageReference(called));
    Result<ImageRecord> image = FetchImage(works[i], {list[i].location, false, ""});
    if (!image) {
      const Status why = image.error().WithPrefix(fmt::format("load {} from {}: ", called, path));
      // What a program did not like is the file.
      return why.reason() == Reason::kInternalError ? Status(Reason::kInvalid, why.message()) : why;
    }
    out.images.emplace_back(reference.Name(), std::move(*image));
  }
  return Status::Ok();
}

}  // namespace

void ImageCache::Load(const std::string& path, const std::string& name,
                      Function<void(Result<std::vector<ImageRecord>>)> done) {
  auto then = std::make_shared<Function<void(Result<std::vector<ImageRecord>>)>>(std::move(done));
  if (!ready_ || sweeping_) {
    auto again = [this, path, name, then] {
      Load(path, name, [then](Result<std::vector<ImageRecord>> result) { (*then)(result); });
    };
    return ready_ ? after_sweep_.emplace_back(std::move(again)), void() : WhenReady(again);
  }
  ++working_;
  std::vector<ImageWork> works;
  for (int i = 0; i < kMaxArchivedImages; ++i) works.push_back(NewWork());
  auto loaded = std::make_shared<Loaded>();
  Programs().Run([loaded, works, path, name,
                  held = cancelled_] { loaded->status = LoadAll(works, path, name, *loaded); },
                 loop_, lifetime_.Guard([this, loaded, then] {
                   --working_;
                   std::vector<ImageRecord> out;
                   for (auto& [called, image] : loaded->images) {
                     const size_t index = Add(std::move(image));
                     Name(index, called, "");
                     out.push_back(images_[index]);
                   }
                   Save([loaded, then, out] {
                     (*then)(loaded->status.ok() ? Result<std::vector<ImageRecord>>(out)
                                                 : std::unexpected(loaded->status));
                   });
                 }));
}

Result<size_t> ImageCache::IndexOf(const std::string& name) const {
  const Result<ImageReference> reference = ParseImageReference(name);
  std::vector<size_t> found;
  for (size_t i = 0; i < images_.size(); ++i) {
    if (reference && images_[i].IsCalled(*reference)) return i;
    const std::string& id = images_[i].id;
    if (name.size() >= 4 && (id.starts_with(name) || id.starts_with("sha256:" + name)))
      found.push_back(i);
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) return Error(Reason::kNotFound, "image {:?} is not on this node", name);
  return Error(Reason::kInvalid, "{:?} begins the IDs of {} images", name, found.size());
}

void ImageCache::Remove(const std::string& name, Function<void(Status)> done) {
  if (!ready_) return done(Error(Reason::kServiceUnavailable, "the images are not read yet"));
  const Result<size_t> index = IndexOf(name);
  if (!index) return done(index.error());
  ImageRecord& image = images_[*index];
  const auto reference = ParseImageReference(name);
  const bool by_tag = reference && reference->digest.empty() && image.IsCalled(*reference);
  if (by_tag && image.names.size() > 1) {
    std::erase(image.names, reference->Name());
  } else {
    const Users in_use = users();
    if (const auto user = in_use.find(image.root); user != in_use.end()) {
      return done(Error(
          Reason::kConflict, "image {:?} is used by pod {}{}", name, user->second.front(),
          user->second.size() > 1 ? fmt::format(" and {} more", user->second.size() - 1) : ""));
    }
    Drop(*index);
  }
  auto then = std::make_shared<Function<void(Status)>>(std::move(done));
  Save([this, then] {
    SweepBlobs();
    (*then)(Status::Ok());
  });
}

// Its files go once the index no longer has it.
void ImageCache::Drop(size_t index) {
  const std::string root = images_[index].root;
  images_.erase(images_.begin() + static_cast<std::ptrdiff_t>(index));
  ++freeing_;
  Save([this, root] {
    pool_.Run(
        [dir = data_dir_, root] {
          const Status removed = RemoveImageRoot(dir, root);
          if (!removed.ok()) LOG_WARN("images: remove {}: {}", root, removed.message());
        },
        loop_, lifetime_.Guard([this] { --freeing_; }));
  });
}

void ImageCache::Touch(const std::string& root) {
  for (ImageRecord& image : images_) {
    if (image.root == root) image.last_used = loop_.Now();
  }
  Save([] {});
}

// Several changes at a time become one write, as each is of all.
void ImageCache::Save(Task then) {
  saved_.push_back(std::move(then));
  if (saving_) return;
  saving_ = true;
  saving_for_ = std::move(saved_);
  saved_.clear();
  auto status = std::make_shared<Status>();
  pool_.Run([status, dir = data_dir_, images = images_] { *status = SaveImageIndex(dir, images); },
            loop_, lifetime_.Guard([this, status] {
              if (!status->ok()) LOG_ERROR("images: {}", status->message());
              std::vector<Task> tasks = std::move(saving_for_);
              saving_for_.clear();
              saving_ = false;
              for (Task& task : tasks) task();
              if (!saved_.empty() && !saving_) Save([] {});
            }));
}

void ImageCache::SweepBlobs() {
  if (working_ > 0 || sweeping_) return;
  sweeping_ = true;
  std::set<std::string> keep;
  for (const ImageRecord& image : images_) keep.insert(image.blobs.begin(), image.blobs.end());
  pool_.Run([dir = data_dir_, keep] { RemoveBlobsExcept(dir, keep); }, loop_,
            lifetime_.Guard([this] {
              sweeping_ = false;
              std::vector<Task> waiting = std::move(after_sweep_);
              after_sweep_.clear();
              for (Task& task : waiting) task();
            }));
}

void ImageCache::LookLater() {
  loop_.Cancel(timer_);
  timer_ = loop_.After(kImageGcPeriod, [this] {
    (void)Unused();
    CollectGarbage();
    LookLater();
  });
}

void ImageCache::CollectGarbage() {
  ++freeing_;
  auto room = std::make_shared<DiskRoom>();
  pool_.Run([room, dir = data_dir_, measure = hooks_.measure] { *room = measure(dir); }, loop_,
            lifetime_.Guard([this, room] {
              --freeing_;
              OnRoom(*room);
            }));
}

bool ImageCache::MakeRoom() {
  if (MakesRoom()) return true;
  if (Unused().empty()) return false;
  CollectGarbage();
  return true;
}

std::vector<std::string> ImageCache::Unused() {
  const Users in_use = users();
  const Time now = loop_.Now();
  std::vector<std::pair<Time, std::string>> unused;
  for (ImageRecord& image : images_) {
    if (in_use.contains(image.root)) {
      image.last_used = now;
    } else if (now - image.last_used >= hooks_.min_age) {
      unused.emplace_back(image.last_used, image.root);
    }
  }
  std::sort(unused.begin(), unused.end());
  std::vector<std::string> roots;
  for (auto& [since, root] : unused) roots.push_back(std::move(root));
  return roots;
}

void ImageCache::OnRoom(const DiskRoom& room) {
  const int64_t used = room.total - room.available;
  const bool low = room.available < room.reserve;
  if (room.total == 0 || (!low && used * 100 < room.total * kImageGcHighPercent)) return;
  SweepBlobs();
  int64_t wanted = used - room.total / 100 * kImageGcLowPercent;
  if (low) wanted = std::max(wanted, room.reserve - room.available);
  const int64_t all_wanted = wanted;
  std::vector<std::string> gone;
  for (const std::string& root : Unused()) {
    if (wanted <= 0) break;
    const ImageRecord& image = *FindRoot(root);
    wanted -= image.disk_bytes;
    gone.push_back(image.names.empty() ? image.ImageId() : image.names.front());
    Drop(static_cast<size_t>(&image - images_.data()));
  }
  if (images_.empty() && gone.empty()) return;  // the disk is full of other things
  const int64_t freed = all_wanted - wanted;
  LOG_INFO("images: removed {} unused to free {} bytes, wanted {}", gone.size(), freed, all_wanted);
  if (!hooks_.on_garbage) return;
  if (!gone.empty()) {
    hooks_.on_garbage(true, fmt::format("Removed unused images to free {} bytes ({} % of the disk "
                                        "were in use): {}",
                                        freed, used * 100 / room.total, Join(gone, ", ")));
  }
  if (wanted > 0) {
    hooks_.on_garbage(
        false, fmt::format("Failed to garbage collect required amount of images. Attempted to "
                           "free {} bytes, but only found {} bytes eligible to free.",
                           all_wanted, freed));
  }
  if (!gone.empty()) Save([this] { SweepBlobs(); });
}

}  // namespace muster::agent
