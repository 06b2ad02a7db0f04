#include "store/sqlite_backend.h"

#include <sqlite3.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "store/key_index.h"
#include "store/sqlite_db.h"
#include "store/sqlite_format.h"
#include "store/store_lock.h"

namespace muster::store {

namespace {

// What the machine's current boot is called, as a number that fits `PRAGMA user_version`. A machine
// that does not say so has a new boot at every start.
int32_t BootNumber(std::string boot_id) {
  if (boot_id.empty()) {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::getline(file, boot_id);
  }
  uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : boot_id) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash == 0 ? 1 : static_cast<int32_t>(hash);  // 0 is what a new file says
}

// Whether the file is there and has content, as SQLite sees it.
bool Present(const std::string& path) {
  sqlite3_vfs* vfs = sqlite3_vfs_find(nullptr);
  int present = 0;
  vfs->xAccess(vfs, path.c_str(), SQLITE_ACCESS_EXISTS, &present);
  return present != 0;
}

// Resets a statement however its user leaves: one that stays in the middle keeps a read transaction
// open, and then the WAL grows without end.
class ResetOnExit {
 public:
  explicit ResetOnExit(Statement& statement) : statement_(statement) {}
  ~ResetOnExit() { statement_.Reset(); }
  ResetOnExit(const ResetOnExit&) = delete;
  ResetOnExit& operator=(const ResetOnExit&) = delete;

 private:
  Statement& statement_;
};

// One row of the log, from a statement that selects kRowColumns.
constexpr const char* kSelectRow =
    "SELECT revision, key, create_revision, deleted, slot, value FROM log WHERE revision = ?1";

Status DamagedError(const Database& database, std::string_view what) {
  return Error(Reason::kInternalError,
               "store: the database {} is damaged, {}: restore a backup (muster restore), or start "
               "with a new data directory",
               FileOf(database.handle()), what);
}

Result<LogRecord> ReadRow(const Database& database, Statement& read_row, Revision revision) {
  const ResetOnExit reset(read_row);
  ASSIGN_OR_RETURN(const bool found, read_row.Bind(1, revision).Step());
  if (!found) {
    return Error(DamagedError(
        database, fmt::format("revision {} is in the index but not in the log", revision)));
  }
  LogRecord record;
  record.revision = read_row.Int(0);
  record.key = read_row.Text(1);
  record.create_revision = read_row.Int(2);
  record.deleted = read_row.Int(3) != 0;
  if (record.deleted) return record;
  record.value = std::make_shared<const std::string>(read_row.Text(5));
  const int64_t slot = read_row.Int(4);
  if (slot == kNoRevisionSlot) return record;
  if (slot < 0 || static_cast<size_t>(slot) + kRevisionSlotBytes > record.value->size())
    return Error(
        DamagedError(database, fmt::format("revision {} has no place for its number", revision)));
  record.revision_slot = static_cast<uint32_t>(slot);
  return record;
}

class SqliteBackend final : public Backend {
 public:
  explicit SqliteBackend(SqliteOptions options) : options_(std::move(options)) {}

  Status Open(const std::string& path);

  Result<LoadedState> Load(const std::function<void(LogRecord)>& sink) override;
  Status Append(std::span<const LogRecord> batch, bool durable) override;
  Result<bool> CompactStep(Revision target) override;
  Status Maintain(bool idle) override;
  Status Recover(Revision last) override;
  bool KeepsLog() const override { return true; }
  Result<ReadAtResult> ReadAt(std::string_view prefix, std::string_view after, size_t limit,
                              Revision revision) override;
  Result<std::vector<LogChange>> ReadLog(Revision after, Revision last) override;

 private:
  // Row `revision` can go once everything up to `since` is compacted.
  struct Superseded {
    Revision since;
    Revision revision;
  };

  Status CheckPresence() const;
  Status OpenWriter();
  Status PrepareWriter();
  Status StartEpoch();
  Result<bool> Rewrite();
  Status PrepareStatements();
  Status SetDurable(bool durable);
  Status AppendRows(std::span<const LogRecord> batch);
  Result<size_t> DeleteRows(Revision target);
  Status InTransaction(const std::function<Status()>& body);
  Result<LogChange> ReadChange(Revision revision);
  Status ReadStateAt(std::string_view prefix, std::string_view after, size_t limit,
                     Revision revision, ReadAtResult& result);

  const SqliteOptions options_;
  std::string path_;
  StoreLock lock_;
  // The writer's.
  Database writer_;
  Statement begin_, commit_, rollback_, insert_, delete_, set_compacted_;
  bool durable_ = true;  // what `PRAGMA synchronous` says
  size_t unsynced_ = 0;  // revisions since the last durable commit
  int wal_pages_ = 0;
  Revision compacted_ = 0;             // as in store_info
  std::deque<Superseded> superseded_;  // by `since`
  // The loop's. Declared after the writer: closed first, so that the writer can fold the WAL into
  // the file.
  Database reader_;
  Statement read_row_, read_log_, read_previous_;
  std::mutex past_mutex_;  // guards past_: ReadAt() may come from several threads
  Database past_;          // opened by the first ReadAt()
};

// --- opening

Status SqliteBackend::Open(const std::string& path) {
  path_ = std::filesystem::absolute(path);
  RETURN_IF_ERROR(MakeStoreFolder(path_));
  ASSIGN_OR_RETURN(lock_, StoreLock::Take(path_));
  RETURN_IF_ERROR(CheckPresence());
  RETURN_IF_ERROR(MakeStoreFile(path_));
  RETURN_IF_ERROR(OpenWriter());
  RETURN_IF_ERROR(StartEpoch());
  RETURN_IF_ERROR(reader_.Open(path_));
  RETURN_IF_ERROR(reader_.Exec("PRAGMA query_only=ON; PRAGMA cache_size=-512"));
  return PrepareStatements();
}

// A cluster must not start empty because its file was lost.
Status SqliteBackend::CheckPresence() const {
  if (Present(path_)) return Status::Ok();
  const bool wal = Present(path_ + "-wal");
  if (!options_.must_exist && !lock_.recorded() && !wal) return Status::Ok();
  return Error(Reason::kInternalError,
               "store: the database {} is missing or empty, but this data directory had one{}: put "
               "it back, restore a backup (muster restore), or start with a new data directory",
               path_, wal ? fmt::format(" (its log {}-wal is still there)", path_) : "");
}

Status SqliteBackend::OpenWriter() {
  RETURN_IF_ERROR(writer_.Open(path_));
  writer_.SetBusyTimeout(options_.busy_timeout);
  ASSIGN_OR_RETURN(const int64_t pages, writer_.QueryInt("PRAGMA page_count"));
  // Only an empty file takes this; later it would need a VACUUM of everything.
  if (pages == 0) RETURN_IF_ERROR(writer_.Exec("PRAGMA auto_vacuum=INCREMENTAL"));
  RETURN_IF_ERROR(writer_.Exec(
      fmt::format("PRAGMA journal_mode=WAL; PRAGMA synchronous={}; PRAGMA wal_autocheckpoint=0; "
                  "PRAGMA journal_size_limit=67108864; PRAGMA temp_store=MEMORY",
                  options_.synchronous)
          .c_str()));
  if (options_.max_pages > 0)
    RETURN_IF_ERROR(
        writer_.Exec(fmt::format("PRAGMA max_page_count={}", options_.max_pages).c_str()));
  sqlite3_wal_hook(
      writer_.handle(),
      [](void* self, sqlite3*, const char*, int wal_pages) {
        static_cast<SqliteBackend*>(self)->wal_pages_ = wal_pages;
        return SQLITE_OK;
      },
      this);
  ASSIGN_OR_RETURN(const int64_t tables, writer_.QueryInt("SELECT COUNT(*) FROM sqlite_schema"));
  return tables == 0 ? CreateSchema(writer_) : CheckFormat(writer_);
}

// Each life begins with a durable commit. In a new boot of the machine revisions go on
// kMaxUnsyncedRevisions higher: what was not synced may be lost, and its numbers, which clients may
// have seen, must not come back with another meaning. The past before the jump counts as compacted,
// so those clients are told to list again.
Status SqliteBackend::StartEpoch() {
  ASSIGN_OR_RETURN(Revision last, LastRevision(writer_));
  RETURN_IF_ERROR(CheckNothingLost(path_, last, lock_.recorded()));
  const int32_t boot = BootNumber(options_.boot_id);
  ASSIGN_OR_RETURN(const int64_t last_boot, writer_.QueryInt("PRAGMA user_version"));
  const bool jump = last_boot != 0 && last_boot != boot;
  if (jump) last += kMaxUnsyncedRevisions;
  RETURN_IF_ERROR(writer_.Exec(
      fmt::format("BEGIN IMMEDIATE; PRAGMA user_version={}; {}; COMMIT", boot,
                  jump ? fmt::format("UPDATE store_info SET compact_revision = {}", last)
                       : "UPDATE store_info SET format_version = format_version")
          .c_str()));
  ASSIGN_OR_RETURN(const bool whole, Rewrite());
  if (!whole) LOG_WARN("store: another program reads the database file={}", path_);
  lock_.Record(last);
  return Status::Ok();
}

// Writes everything that the log holds into the database and begins the log anew. The last life may
// have ended because a sync failed: then the system shows us what the disk does not have, and a
// commit behind that would be lost with it.
// False if another program reads the database: then some of that is left to do.
Result<bool> SqliteBackend::Rewrite() {
  const int code = sqlite3_wal_checkpoint_v2(writer_.handle(), nullptr, SQLITE_CHECKPOINT_TRUNCATE,
                                             nullptr, nullptr);
  if (code == SQLITE_OK || code == SQLITE_BUSY) return code == SQLITE_OK;
  return Error(SqliteError(writer_.handle(), "checkpoint"));
}

// As a new life begins, but for the state: what the disk has must be what memory has.
Status SqliteBackend::Recover(Revision last) {
  for (Statement* statement : {&begin_, &commit_, &rollback_, &insert_, &delete_, &set_compacted_})
    *statement = Statement();
  writer_ = Database();
  wal_pages_ = 0;
  durable_ = true;
  unsynced_ = 0;
  RETURN_IF_ERROR(OpenWriter());
  // First what was written before the error: a later commit must not stand behind a gap.
  ASSIGN_OR_RETURN(const bool whole, Rewrite());
  if (!whole) return RecoverableError(fmt::format("another program reads {}", path_));
  ASSIGN_OR_RETURN(const Revision found, LastRevision(writer_));
  if (found != last) {
    return Error(Reason::kInternalError, "store: the database {} ends at revision {}, memory at {}",
                 path_, found, last);
  }
  RETURN_IF_ERROR(writer_.Exec(
      "BEGIN IMMEDIATE; UPDATE store_info SET format_version = format_version; COMMIT"));
  lock_.Record(last);
  return PrepareWriter();
}

Status SqliteBackend::PrepareStatements() {
  RETURN_IF_ERROR(PrepareWriter());
  ASSIGN_OR_RETURN(read_row_, reader_.Prepare(kSelectRow));
  ASSIGN_OR_RETURN(
      read_log_, reader_.Prepare("SELECT revision FROM log WHERE revision > ?1 AND revision <= ?2 "
                                 "ORDER BY revision"));
  ASSIGN_OR_RETURN(read_previous_,
                   reader_.Prepare("SELECT revision, deleted FROM log WHERE key = ?1 AND "
                                   "revision < ?2 ORDER BY revision DESC LIMIT 1"));
  return Status::Ok();
}

Status SqliteBackend::PrepareWriter() {
  ASSIGN_OR_RETURN(begin_, writer_.Prepare("BEGIN IMMEDIATE"));
  ASSIGN_OR_RETURN(commit_, writer_.Prepare("COMMIT"));
  ASSIGN_OR_RETURN(rollback_, writer_.Prepare("ROLLBACK"));
  ASSIGN_OR_RETURN(
      insert_,
      writer_.Prepare("INSERT INTO log(revision, key, create_revision, deleted, slot, value) "
                      "VALUES(?1, ?2, ?3, ?4, ?5, ?6)"));
  ASSIGN_OR_RETURN(delete_, writer_.Prepare("DELETE FROM log WHERE revision = ?1"));
  ASSIGN_OR_RETURN(set_compacted_, writer_.Prepare("UPDATE store_info SET compact_revision = ?1"));
  return Status::Ok();
}

// --- loading

Result<LoadedState> SqliteBackend::Load(const std::function<void(LogRecord)>& sink) {
  LoadedState state;
  ASSIGN_OR_RETURN(state.compacted, reader_.QueryInt("SELECT compact_revision FROM store_info"));
  ASSIGN_OR_RETURN(state.revision, LastRevision(reader_));
  compacted_ = state.compacted;

  ASSIGN_OR_RETURN(
      Statement scan,
      reader_.Prepare("SELECT key, revision, deleted FROM log ORDER BY key, revision"));
  std::vector<Superseded> superseded;
  std::string key;
  Revision current = 0;
  bool deleted = false;
  const auto finish_key = [&]() -> Status {
    if (current == 0) return Status::Ok();
    if (deleted) {
      superseded.push_back({current, current});
      return Status::Ok();
    }
    ASSIGN_OR_RETURN(LogRecord record, ReadRow(reader_, read_row_, current));
    sink(std::move(record));
    return Status::Ok();
  };
  while (true) {
    ASSIGN_OR_RETURN(const bool row, scan.Step());
    if (!row) break;
    if (current != 0 && scan.Text(0) == key) {
      superseded.push_back({scan.Int(1), current});
      if (deleted) superseded.push_back({current, current});
    } else {
      RETURN_IF_ERROR(finish_key());
      key = scan.Text(0);
    }
    current = scan.Int(1);
    deleted = scan.Int(2) != 0;
  }
  RETURN_IF_ERROR(finish_key());
  std::ranges::sort(superseded, {},
                    [](const Superseded& s) { return std::pair(s.since, s.revision); });
  superseded_.assign(superseded.begin(), superseded.end());
  return state;
}

// --- writing

Status SqliteBackend::SetDurable(bool durable) {
  if (durable == durable_) return Status::Ok();
  // In WAL mode NORMAL commits without a sync. A later FULL commit syncs the whole WAL, so order is
  // kept.
  RETURN_IF_ERROR(writer_.Exec(
      fmt::format("PRAGMA synchronous={}", durable ? options_.synchronous : "NORMAL").c_str()));
  durable_ = durable;
  return Status::Ok();
}

Status SqliteBackend::InTransaction(const std::function<Status()>& body) {
  RETURN_IF_ERROR(begin_.Run());
  Status status = body();
  if (status.ok()) status = commit_.Run();
  // Some errors have rolled back already; then this one has nothing to do.
  if (!status.ok() && sqlite3_get_autocommit(writer_.handle()) == 0) {
    if (const Status undone = rollback_.Run(); !undone.ok())
      LOG_WARN("store: rollback failed error={}", undone.message());
  }
  return status;
}

Status SqliteBackend::AppendRows(std::span<const LogRecord> batch) {
  for (const LogRecord& record : batch) {
    insert_.Bind(1, record.revision)
        .Bind(2, std::string_view(record.key))
        .Bind(3, record.create_revision);
    insert_.Bind(4, static_cast<int64_t>(record.deleted))
        .Bind(5, static_cast<int64_t>(record.revision_slot));
    if (record.value) {
      insert_.Bind(6, std::string_view(*record.value));
    } else {
      insert_.BindNull(6);
    }
    RETURN_IF_ERROR(insert_.Run());
  }
  return Status::Ok();
}

Status SqliteBackend::Append(std::span<const LogRecord> batch, bool durable) {
  durable = durable || unsynced_ + batch.size() > kMaxUnsyncedRevisions;
  RETURN_IF_ERROR(SetDurable(durable));
  const Duration start = options_.clock->Monotonic();
  RETURN_IF_ERROR(InTransaction([&] { return AppendRows(batch); }));
  if (durable && options_.commit_times)
    options_.commit_times->Record(options_.clock->Monotonic() - start);
  unsynced_ = durable ? 0 : unsynced_ + batch.size();
  if (durable) lock_.Record(batch.back().revision);
  for (const LogRecord& record : batch) {
    if (record.previous_revision != 0)
      superseded_.push_back({record.revision, record.previous_revision});
    if (record.deleted) superseded_.push_back({record.revision, record.revision});
  }
  return Status::Ok();
}

Result<size_t> SqliteBackend::DeleteRows(Revision target) {
  RETURN_IF_ERROR(set_compacted_.Bind(1, std::max(target, compacted_)).Run());
  const Duration start = options_.clock->Monotonic();
  size_t rows = 0;
  while (rows < superseded_.size() && superseded_[rows].since <= target &&
         rows < kMaxCompactionRevisionsPerStep) {
    RETURN_IF_ERROR(delete_.Bind(1, superseded_[rows].revision).Run());
    ++rows;
    if (rows % 64 == 0 && options_.clock->Monotonic() - start > kMaxCompactionStepTime) break;
  }
  return rows;
}

Result<bool> SqliteBackend::CompactStep(Revision target) {
  const auto is_left = [&] { return !superseded_.empty() && superseded_.front().since <= target; };
  if (target <= compacted_ && !is_left()) return false;
  // Not synced: forgetting again what was forgotten does no harm.
  RETURN_IF_ERROR(SetDurable(false));
  size_t rows = 0;
  RETURN_IF_ERROR(InTransaction([&]() -> Status {
    ASSIGN_OR_RETURN(rows, DeleteRows(target));
    return Status::Ok();
  }));
  compacted_ = std::max(compacted_, target);
  superseded_.erase(superseded_.begin(), superseded_.begin() + static_cast<std::ptrdiff_t>(rows));
  if (rows > 0) RETURN_IF_ERROR(writer_.Exec("PRAGMA incremental_vacuum(256)"));
  return is_left();
}

Status SqliteBackend::Maintain(bool idle) {
  if (wal_pages_ < (idle ? options_.checkpoint_pages_idle : options_.checkpoint_pages_busy))
    return Status::Ok();
  int in_wal = 0;
  int moved = 0;
  const int code = sqlite3_wal_checkpoint_v2(writer_.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE,
                                             &in_wal, &moved);
  // The next commit says how long the WAL is then.
  wal_pages_ = 0;
  if (code == SQLITE_OK || code == SQLITE_BUSY) return Status::Ok();
  return SqliteError(writer_.handle(), "checkpoint");
}

// --- reading the past

Result<ReadAtResult> SqliteBackend::ReadAt(std::string_view prefix, std::string_view after,
                                           size_t limit, Revision revision) {
  const std::lock_guard lock(past_mutex_);
  ReadAtResult result;
  const Status status = ReadStateAt(prefix, after, limit, revision, result);
  if (status.ok()) return result;
  past_ = Database();  // with whatever it left open
  return Error(status);
}

Status SqliteBackend::ReadStateAt(std::string_view prefix, std::string_view after, size_t limit,
                                  Revision revision, ReadAtResult& result) {
  if (past_.handle() == nullptr) {
    RETURN_IF_ERROR(past_.Open(path_));
    RETURN_IF_ERROR(past_.Exec("PRAGMA query_only=ON; PRAGMA cache_size=-512"));
  }
  // One read transaction, so that a compaction meanwhile is seen whole or not at all.
  RETURN_IF_ERROR(past_.Exec("BEGIN"));
  ASSIGN_OR_RETURN(const Revision compacted,
                   past_.QueryInt("SELECT compact_revision FROM store_info"));
  if (revision < compacted) return Error(ExpiredError(revision, compacted));
  // The newest row of each key up to `revision`; SQLite takes `deleted` from the row that has the
  // maximum.
  ASSIGN_OR_RETURN(
      Statement scan,
      past_.Prepare("SELECT MAX(revision), deleted FROM log WHERE key >= ?1 AND key > ?2 AND "
                    "(?3 IS NULL OR key < ?3) AND revision <= ?4 GROUP BY key ORDER BY key"));
  ASSIGN_OR_RETURN(Statement read_row, past_.Prepare(kSelectRow));
  const std::string end = PrefixEnd(prefix);
  scan.Bind(1, prefix).Bind(2, after).Bind(4, revision);
  if (end.empty()) {
    scan.BindNull(3);
  } else {
    scan.Bind(3, std::string_view(end));
  }
  while (true) {
    ASSIGN_OR_RETURN(const bool row, scan.Step());
    if (!row) return past_.Exec("COMMIT");
    if (scan.Int(1) != 0) continue;
    if (limit != 0 && result.records.size() == limit) {
      ++result.remaining;
      continue;
    }
    ASSIGN_OR_RETURN(LogRecord record, ReadRow(past_, read_row, scan.Int(0)));
    result.records.push_back(std::move(record));
  }
}

Result<LogChange> SqliteBackend::ReadChange(Revision revision) {
  LogChange change;
  ASSIGN_OR_RETURN(change.record, ReadRow(reader_, read_row_, revision));
  const ResetOnExit reset(read_previous_);
  read_previous_.Bind(1, std::string_view(change.record.key)).Bind(2, revision);
  ASSIGN_OR_RETURN(const bool has_previous, read_previous_.Step());
  if (has_previous && read_previous_.Int(1) == 0) {
    ASSIGN_OR_RETURN(LogRecord previous, ReadRow(reader_, read_row_, read_previous_.Int(0)));
    change.previous = std::make_unique<LogRecord>(std::move(previous));
  }
  if (change.record.deleted && change.previous == nullptr)
    return Error(DamagedError(reader_, fmt::format("revision {} deletes nothing", revision)));
  return change;
}

Result<std::vector<LogChange>> SqliteBackend::ReadLog(Revision after, Revision last) {
  std::vector<LogChange> changes;
  const ResetOnExit reset(read_log_);
  read_log_.Bind(1, after).Bind(2, last);
  while (true) {
    ASSIGN_OR_RETURN(const bool row, read_log_.Step());
    if (!row) return changes;
    ASSIGN_OR_RETURN(LogChange change, ReadChange(read_log_.Int(0)));
    changes.push_back(std::move(change));
  }
}

}  // namespace

Result<std::unique_ptr<Backend>> OpenSqliteBackend(const std::string& path, SqliteOptions options) {
  auto backend = std::make_unique<SqliteBackend>(std::move(options));
  RETURN_IF_ERROR(backend->Open(path));
  return backend;
}

}  // namespace muster::store
