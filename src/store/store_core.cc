#include "store/store_core.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace muster::store {

namespace {

constexpr std::string_view kRecoverable = "Recoverable";

// A replay does at most this much in one loop task, for one watcher.
constexpr Revision kReplayRevisionsPerTask = 5000;
constexpr Revision kReplayRevisionsFromBackendPerTask = 200;

void FillRevisionSlot(std::string& value, uint32_t slot, Revision revision) {
  if (slot == kNoRevisionSlot) return;
  const std::string text = fmt::format("\"{}\"", revision);
  CHECK(slot + kRevisionSlotBytes <= value.size() && text.size() <= kRevisionSlotBytes);
  std::memset(value.data() + slot, ' ', kRevisionSlotBytes);
  std::memcpy(value.data() + slot, text.data(), text.size());
}

EntryPtr MakeLoadedEntry(const Store::Decorator& decorator, LogRecord record) {
  auto entry = std::make_shared<Entry>();
  entry->key = std::move(record.key);
  entry->value = std::move(record.value);
  entry->create_revision = record.create_revision;
  entry->mod_revision = record.revision;
  entry->revision_slot = record.revision_slot;
  if (decorator) entry->meta = decorator(entry->key, *entry->value);
  return entry;
}

size_t EntryBytes(const Entry& entry) { return entry.key.size() + entry.value->size(); }

}  // namespace

Status RecoverableError(std::string message) {
  StatusDetails details;
  details.causes.push_back({std::string(kRecoverable), "", ""});
  return Status(Reason::kInternalError, std::move(message), std::move(details));
}

bool IsRecoverable(const Status& status) {
  const auto& causes = status.details().causes;
  return causes.size() == 1 && causes[0].reason == kRecoverable;
}

StoreCore::StoreCore(Loop& loop, std::unique_ptr<Backend> backend, Options options)
    : loop_(loop), backend_(std::move(backend)), options_(std::move(options)) {}

StoreCore::~StoreCore() = default;

Result<std::unique_ptr<StoreCore>> StoreCore::Open(Loop& loop, std::unique_ptr<Backend> backend,
                                                   Options options) {
  std::unique_ptr<StoreCore> core(new StoreCore(loop, std::move(backend), std::move(options)));
  RETURN_IF_ERROR(core->Load());
  StoreCore* self = core.get();
  core->committer_ = core->options_.committer(
      loop, *core->backend_, [self](Result<Revision> last) { self->OnCommit(std::move(last)); });
  // A compaction that the last process did not finish.
  if (core->compacted_ > 0) core->committer_->Compact(core->compacted_);
  return core;
}

Status StoreCore::Load() {
  ASSIGN_OR_RETURN(const LoadedState state, backend_->Load([this](LogRecord record) {
    index_.Set(MakeLoadedEntry(options_.decorator, std::move(record)));
  }));
  committed_ = assigned_ = state.revision;
  compacted_ = compaction_applied_ = state.compacted;
  history_ = History(state.revision);
  return Status::Ok();
}

// --- writes

Status StoreCore::CheckWritable(size_t key_bytes, size_t value_bytes) const {
  if (!health_.ok()) return health_;
  if (key_bytes == 0 || key_bytes > kMaxKeyBytes) {
    return Error(Reason::kRequestEntityTooLarge, "the key has {} bytes, 1 to {} are allowed",
                 key_bytes, kMaxKeyBytes);
  }
  if (value_bytes > kMaxValueBytes) {
    return Error(Reason::kRequestEntityTooLarge,
                 "the object has {} bytes, at most {} can be stored", value_bytes, kMaxValueBytes);
  }
  if (pending_.size() >= kMaxPendingWrites || pending_bytes_ + value_bytes > kMaxPendingBytes) {
    return Error(Reason::kTooManyRequests, "{} writes wait for the disk, try again later",
                 pending_.size());
  }
  return Status::Ok();
}

Status StoreCore::CheckExpected(std::string_view key, const EntryPtr& found,
                                std::optional<Revision> expected) {
  const Revision revision = found ? found->mod_revision : 0;
  if (!expected || *expected == revision) return Status::Ok();
  if (!found)
    return Error(Reason::kConflict, "{:?} is absent, revision {} was expected", key, *expected);
  if (*expected == 0)
    return Error(Reason::kConflict, "{:?} exists already, at revision {}", key, revision);
  return Error(Reason::kConflict, "{:?} is at revision {}, {} was expected", key, revision,
               *expected);
}

EntryPtr StoreCore::GetLatest(std::string_view key) const {
  if (latest_.empty()) return index_.Find(key);
  const auto pending = latest_.find(std::string(key));
  return pending != latest_.end() ? pending->second.entry : index_.Find(key);
}

Result<Revision> StoreCore::Write(Put put, Done done) {
  CHECK(loop_.InThread());
  RETURN_IF_ERROR(CheckWritable(put.key.size(), put.value.size()));
  EntryPtr previous = GetLatest(put.key);
  RETURN_IF_ERROR(CheckExpected(put.key, previous, put.expected));

  auto entry = std::make_shared<Entry>();
  entry->mod_revision = assigned_ + 1;
  entry->create_revision = previous ? previous->create_revision : entry->mod_revision;
  entry->key = std::move(put.key);
  entry->meta = std::move(put.meta);
  if (put.revision_slot) entry->revision_slot = static_cast<uint32_t>(*put.revision_slot);
  FillRevisionSlot(put.value, entry->revision_slot, entry->mod_revision);
  // Values live long: spare capacity from building them would be paid for every object.
  if (put.value.capacity() > put.value.size() + put.value.size() / 16) put.value.shrink_to_fit();
  entry->value = std::make_shared<const std::string>(std::move(put.value));
  return Submit({WatchEvent::Type::kPut, entry->mod_revision, entry, std::move(previous)},
                put.durability, std::move(done));
}

Result<Revision> StoreCore::Delete(std::string_view key, std::optional<Revision> expected,
                                   Durability durability, Done done) {
  CHECK(loop_.InThread());
  RETURN_IF_ERROR(CheckWritable(key.size(), 0));
  EntryPtr previous = GetLatest(key);
  if (!previous) return Error(Reason::kNotFound, "{:?} not found", key);
  RETURN_IF_ERROR(CheckExpected(key, previous, expected));

  auto entry = std::make_shared<Entry>(*previous);
  entry->mod_revision = assigned_ + 1;
  if (entry->revision_slot != kNoRevisionSlot) {
    std::string value = *previous->value;
    FillRevisionSlot(value, entry->revision_slot, entry->mod_revision);
    entry->value = std::make_shared<const std::string>(std::move(value));
  }
  return Submit({WatchEvent::Type::kDelete, entry->mod_revision, entry, std::move(previous)},
                durability, std::move(done));
}

Revision StoreCore::Submit(WatchEvent event, Durability durability, Done done) {
  const bool deleted = event.type == WatchEvent::Type::kDelete;
  const Entry& entry = *event.entry;
  assigned_ = event.revision;
  latest_[entry.key] = {event.revision, deleted ? nullptr : event.entry};

  LogRecord record;
  record.revision = event.revision;
  record.create_revision = entry.create_revision;
  record.previous_revision = event.previous ? event.previous->mod_revision : 0;
  record.deleted = deleted;
  record.durable = durability == Durability::kDurable;
  record.revision_slot = entry.revision_slot;
  record.key = entry.key;
  if (!deleted) record.value = entry.value;

  const size_t bytes = EntryBytes(entry);
  pending_bytes_ += bytes;
  pending_.push_back({std::move(event), std::move(done), bytes});
  committer_->Enqueue(std::move(record));
  return assigned_;
}

// --- commits

void StoreCore::OnCommit(Result<Revision> last) {
  if (!last) {
    const bool recoverable = IsRecoverable(last.error());
    if (health_.ok() || !recoverable) TurnReadOnly(last.error());
    if (recoverable) ScheduleRecovery();
    return;
  }
  if (!health_.ok()) {
    LOG_INFO("store: takes writes again revision={}", committed_);
    health_ = Status::Ok();
    recovery_delay_ = Duration(0);
    return;
  }
  Publish(*last);
}

void StoreCore::Publish(Revision last) {
  // First the state, whole; then those who wait for it: what they read in their callbacks is
  // consistent.
  std::vector<WatchEvent> events;
  std::vector<std::pair<Done, EntryPtr>> waiting;
  while (!pending_.empty() && pending_.front().event.revision <= last) {
    Pending write = std::move(pending_.front());
    pending_.pop_front();
    pending_bytes_ -= write.bytes;
    const EntryPtr& entry = write.event.entry;
    if (write.event.type == WatchEvent::Type::kPut) {
      uncompacted_bytes_ += write.bytes;
      index_.Set(entry);
    } else {
      index_.Erase(entry->key);
    }
    const auto latest = latest_.find(entry->key);
    if (latest->second.revision == write.event.revision) latest_.erase(latest);
    waiting.emplace_back(std::move(write.done), entry);
    events.push_back(write.event);
    history_.Append(std::move(write.event));
  }
  committed_ = last;
  TrimHistory();
  hub_.Publish(events);
  for (auto& [done, entry] : waiting) {
    if (done) done(entry);
  }
}

void StoreCore::TurnReadOnly(const Status& reason) {
  const std::string_view remedy = IsRecoverable(reason) ? "make room, and it goes on by itself"
                                                        : "repair the disk, then restart";
  health_ = Status(Reason::kInternalError,
                   fmt::format("the store is read-only since a write failed ({}); {}",
                               reason.message(), remedy));
  LOG_ERROR("store: turned read-only revision={} pending={} error={:?}", committed_,
            pending_.size(), reason.message());
  FailPending();
}

// Their revisions were told to nobody and are given again.
void StoreCore::FailPending() {
  std::deque<Pending> failed = std::move(pending_);
  pending_.clear();
  latest_.clear();
  pending_bytes_ = 0;
  assigned_ = committed_;
  for (Pending& write : failed) {
    if (write.done) write.done(Error(health_));
  }
}

void StoreCore::ScheduleRecovery() {
  recovery_delay_ = std::clamp(2 * recovery_delay_, kMinRecoveryDelay, kMaxRecoveryDelay);
  loop_.After(recovery_delay_, [this, alive = std::weak_ptr<int>(alive_)] {
    if (alive.lock()) committer_->Recover(committed_);
  });
}

// --- reads

Result<RangeResult> StoreCore::Range(std::string_view prefix, std::string_view after, size_t limit,
                                     Revision revision) const {
  if (revision == 0 || revision == committed_) return RangeNow(prefix, after, limit);
  if (revision > committed_) {
    return Error(Reason::kTimeout, "Too large resource version: {}, current: {}", revision,
                 committed_);
  }
  if (revision < compacted_) return Error(ExpiredError(revision, compacted_));
  if (InMemory(revision)) return RangeInHistory(prefix, after, limit, revision);
  return Past(revision)(prefix, after, limit);
}

// What is compacted or in the future is refused from memory as well.
bool StoreCore::InMemory(Revision revision) const {
  return revision == 0 || revision >= history_.Floor() || revision < compacted_;
}

Store::PastReader StoreCore::Past(Revision revision) const {
  return [backend = backend_, decorator = options_.decorator, revision](
             std::string_view prefix, std::string_view after, size_t limit) -> Result<RangeResult> {
    ASSIGN_OR_RETURN(ReadAtResult read, backend->ReadAt(prefix, after, limit, revision));
    RangeResult result;
    result.revision = revision;
    result.remaining = read.remaining;
    result.more = read.remaining > 0;
    for (LogRecord& record : read.records)
      result.entries.push_back(MakeLoadedEntry(decorator, std::move(record)));
    return result;
  };
}

RangeResult StoreCore::RangeNow(std::string_view prefix, std::string_view after,
                                size_t limit) const {
  RangeResult result;
  result.revision = committed_;
  KeyIndex::Cursor cursor =
      after >= prefix && !after.empty() ? index_.After(after) : index_.AtLeast(prefix);
  for (; !cursor.AtEnd() && (*cursor)->key.starts_with(prefix); cursor.Next()) {
    if (limit != 0 && result.entries.size() == limit) {
      result.more = true;
      result.remaining = static_cast<int64_t>(index_.Count((*cursor)->key, PrefixEnd(prefix)));
      break;
    }
    result.entries.push_back(*cursor);
  }
  return result;
}

RangeResult StoreCore::RangeInHistory(std::string_view prefix, std::string_view after, size_t limit,
                                      Revision revision) const {
  RangeResult result;
  result.revision = revision;
  const History::Overlay overlay = history_.Undo(prefix, revision);
  const auto emit = [&](const EntryPtr& entry) {
    if (!entry) return;
    if (limit != 0 && result.entries.size() == limit) {
      ++result.remaining;
    } else {
      result.entries.push_back(entry);
    }
  };
  // Both are in key order: merge, the overlay wins.
  auto past = overlay.upper_bound(after);
  KeyIndex::Cursor cursor =
      after >= prefix && !after.empty() ? index_.After(after) : index_.AtLeast(prefix);
  const auto now_ends = [&] { return cursor.AtEnd() || !(*cursor)->key.starts_with(prefix); };
  while (past != overlay.end()) {
    while (!now_ends() && (*cursor)->key < past->first) {
      emit(*cursor);
      cursor.Next();
    }
    if (!now_ends() && (*cursor)->key == past->first) cursor.Next();
    emit(past->second);
    ++past;
  }
  for (; !now_ends(); cursor.Next()) {
    if (limit != 0 && result.entries.size() == limit) {
      result.remaining += static_cast<int64_t>(index_.Count((*cursor)->key, PrefixEnd(prefix)));
      break;
    }
    result.entries.push_back(*cursor);
  }
  result.more = result.remaining > 0;
  return result;
}

// --- watches

Result<Store::WatchId> StoreCore::Watch(std::string prefix, Revision after, OnEvents on_events,
                                        OnEnd on_end) {
  CHECK(loop_.InThread());
  if (after < compacted_) {
    return Error(Reason::kExpired, "too old resource version: {} ({})", after, compacted_);
  }
  WatchHub::WatcherPtr watcher =
      hub_.Add(std::move(prefix), after, std::move(on_events), std::move(on_end));
  const WatchId id = watcher->id;
  ScheduleCatchUp(std::move(watcher));
  return id;
}

void StoreCore::ScheduleCatchUp(WatchHub::WatcherPtr watcher) {
  loop_.Post([this, watcher = std::move(watcher), alive = std::weak_ptr<int>(alive_)] {
    if (alive.lock()) CatchUp(watcher);
  });
}

void StoreCore::CatchUp(const WatchHub::WatcherPtr& watcher) {
  if (watcher->cancelled || watcher->live) return;
  if (watcher->position < history_.Floor()) return TellPastLater();
  if (watcher->position < committed_) {
    const Revision last = std::min(committed_, watcher->position + kReplayRevisionsPerTask);
    const std::vector<WatchEvent> events =
        history_.Select(watcher->prefix, watcher->position, last);
    watcher->position = last;
    if (!events.empty()) watcher->on_events(events);
    if (watcher->position < committed_) {
      ScheduleCatchUp(watcher);
      return;
    }
  }
  hub_.GoLive(watcher);
  TrimHistory();
  ApplyCompaction();
}

void StoreCore::TellPastLater() {
  if (std::exchange(telling_past_, true)) return;
  loop_.Post([this, alive = std::weak_ptr<int>(alive_)] {
    if (alive.lock()) TellPast();
  });
}

// Who is told what only the backend has goes the same way as all others, the furthest behind first:
// a piece is read and decoded once, not once for each of a thousand watchers of a restarted server.
void StoreCore::TellPast() {
  telling_past_ = false;
  const std::vector<WatchHub::WatcherPtr> lagging = hub_.LaggingBefore(history_.Floor());
  if (lagging.empty()) {
    piece_ = {};
    return;
  }
  const Revision oldest = hub_.OldestLagging(committed_);
  if (oldest < piece_.after || oldest >= piece_.last) {
    if (const Status status = ReadPiece(oldest); !status.ok()) {
      LOG_ERROR("store: ended watches position={} error={:?}", oldest, status.message());
      hub_.EndLaggingBefore(oldest + 1, status);
      ApplyCompaction();
      return TellPastLater();
    }
  }
  for (const WatchHub::WatcherPtr& watcher : lagging) {
    if (watcher->position >= piece_.last) continue;
    loop_.Post([this, watcher, alive = std::weak_ptr<int>(alive_)] {
      if (alive.lock()) TellPiece(watcher);
    });
  }
  TellPastLater();
}

Status StoreCore::ReadPiece(Revision after) {
  piece_ = {};
  const Revision last = std::min(committed_, after + kReplayRevisionsFromBackendPerTask);
  ASSIGN_OR_RETURN(piece_.changes, backend_->ReadLog(after, last));
  piece_.events.resize(piece_.changes.size());
  piece_.after = after;
  piece_.last = last;
  return Status::Ok();
}

void StoreCore::TellPiece(const WatchHub::WatcherPtr& watcher) {
  if (watcher->cancelled || watcher->live) return;
  if (watcher->position < piece_.after || watcher->position >= piece_.last) return;
  std::vector<WatchEvent> events;
  for (size_t i = 0; i < piece_.events.size(); ++i) {
    std::optional<WatchEvent>& event = piece_.events[i];
    const std::string& key = event ? event->entry->key : piece_.changes[i].record.key;
    if (!key.starts_with(watcher->prefix)) continue;
    if (!event) event = MakeLoggedEvent(std::move(piece_.changes[i]));
    if (event->revision > watcher->position) events.push_back(*event);
  }
  watcher->position = piece_.last;
  if (!events.empty()) watcher->on_events(events);
  if (watcher->position >= history_.Floor()) ScheduleCatchUp(watcher);
}

WatchEvent StoreCore::MakeLoggedEvent(LogChange change) const {
  WatchEvent event;
  event.revision = change.record.revision;
  if (change.previous)
    event.previous = MakeLoadedEntry(options_.decorator, std::move(*change.previous));
  if (!change.record.deleted) {
    event.entry = MakeLoadedEntry(options_.decorator, std::move(change.record));
    return event;
  }
  event.type = WatchEvent::Type::kDelete;
  CHECK(event.previous != nullptr);
  auto entry = std::make_shared<Entry>(*event.previous);
  entry->mod_revision = event.revision;
  std::string value = *entry->value;
  FillRevisionSlot(value, entry->revision_slot, event.revision);
  entry->value = std::make_shared<const std::string>(std::move(value));
  event.entry = std::move(entry);
  return event;
}

// --- forgetting

void StoreCore::TrimHistory() {
  if (history_.bytes() > options_.max_history_bytes) {
    Revision floor = history_.FloorWithin(options_.max_history_bytes);
    // Where memory is all there is, a watcher that is being told the past must not lose it on the
    // way.
    if (!backend_->KeepsLog()) floor = std::min(floor, hub_.OldestLagging(floor));
    history_.DropThrough(floor);
    if (!backend_->KeepsLog()) {
      MoveCompacted(floor);
      compaction_applied_ = compacted_;
    }
  }
  const Revision past = committed_ - compacted_;
  if (past > options_.max_uncompacted_revisions ||
      uncompacted_bytes_ > options_.max_uncompacted_bytes) {
    MoveCompacted(committed_ - past / 2);
    // Politeness ends here: a watcher that is told the past more slowly than it grows would keep
    // it for ever.
    hub_.EndLaggingBefore(
        compacted_,
        Status(Reason::kExpired, fmt::format("too old resource version ({})", compacted_)));
    ApplyCompaction();
  }
}

Status StoreCore::Compact(Revision revision) {
  CHECK(loop_.InThread());
  if (revision > committed_) {
    return Error(Reason::kInvalid, "cannot compact at revision {}: the latest is {}", revision,
                 committed_);
  }
  MoveCompacted(revision);
  ApplyCompaction();
  return Status::Ok();
}

void StoreCore::MoveCompacted(Revision revision) {
  if (revision <= compacted_) return;
  // As if every revision were equally large.
  uncompacted_bytes_ = static_cast<size_t>(static_cast<double>(uncompacted_bytes_) *
                                           static_cast<double>(committed_ - revision) /
                                           static_cast<double>(committed_ - compacted_));
  compacted_ = revision;
}

void StoreCore::ApplyCompaction() {
  // Who is being told the past gets it first; CatchUp() comes back here.
  if (compaction_applied_ == compacted_ || hub_.OldestLagging(compacted_) < compacted_) return;
  compaction_applied_ = compacted_;
  history_.DropThrough(compacted_);
  if (health_.ok()) committer_->Compact(compacted_);
}

}  // namespace muster::store
