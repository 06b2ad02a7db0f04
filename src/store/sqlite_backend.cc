#include "store/sqlite_backend.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "store/key_index.h"
#include "store/sqlite_db.h"

namespace muster::store {

namespace {

constexpr int64_t kApplicationId = 0x6D757374;  // "must"

constexpr const char* kSchema = R"(
CREATE TABLE store_info(
  id INTEGER PRIMARY KEY CHECK (id = 1),
  format_version INTEGER NOT NULL,
  compact_revision INTEGER NOT NULL);
CREATE TABLE log(
  revision INTEGER PRIMARY KEY,
  key BLOB NOT NULL,
  create_revision INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  value BLOB);
CREATE INDEX log_by_key ON log(key, revision, deleted);
)";

// A file descriptor that closes itself.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Status SystemError(std::string_view doing, const std::string& path) {
  return Error(Reason::kInternalError, "store: {} {}: {}", doing, path, std::strerror(errno));
}

Status MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Error(Reason::kInternalError, "store: create {}: {}", folder.string(), error.message());
  if (chmod(folder.c_str(), 0700) != 0) return SystemError("chmod", folder.string());
  return Status::Ok();
}

// An empty file of mode 0600 unless it exists; its name is on stable storage afterwards.
Status MakeFile(const std::filesystem::path& path) {
  const Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (file.get() < 0) return SystemError("open", path.string());
  if (fchmod(file.get(), 0600) != 0) return SystemError("chmod", path.string());
  for (const std::filesystem::path& folder :
       {path.parent_path(), path.parent_path().parent_path()}) {
    const Fd directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.get() >= 0) fsync(directory.get());
  }
  return Status::Ok();
}

Result<Fd> TakeLock(const std::string& path) {
  Fd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.get() < 0) return Error(SystemError("open", path));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error(Reason::kConflict,
                 "store: {} is held by another process: stop it first (muster down)", path);
  }
  return lock;
}

class SqliteBackend final : public Backend {
 public:
  Status Open(const std::string& path, int64_t max_pages);

  Result<LoadedState> Load(const std::function<void(LogRecord)>& sink) override;
  Status Append(std::span<const LogRecord> batch, bool durable) override;
  Result<bool> CompactStep(Revision target) override;
  void Maintain(bool idle) override;
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

  Status OpenWriter(const std::string& path, int64_t max_pages);
  Status CreateSchema();
  Status CheckFormat();
  Status PrepareStatements();
  Status SetDurable(bool durable);
  Status AppendRows(std::span<const LogRecord> batch);
  Result<size_t> DeleteRows(Revision target);
  Status InTransaction(const std::function<Status()>& body);
  Result<LogRecord> ReadRow(Revision revision);

  Fd lock_;
  // The writer's.
  Database writer_;
  Statement begin_, commit_, rollback_, insert_, delete_, set_compacted_;
  bool durable_ = true;  // what `PRAGMA synchronous` says
  int wal_pages_ = 0;
  Revision compacted_ = 0;             // as in store_info
  std::deque<Superseded> superseded_;  // by `since`
  // The loop's. Declared after the writer: closed first, so that the writer can fold the WAL into
  // the file.
  Database reader_;
  Statement read_row_, read_log_, read_previous_;
};

Status SqliteBackend::Open(const std::string& path, int64_t max_pages) {
  const std::filesystem::path file = std::filesystem::absolute(path);
  RETURN_IF_ERROR(MakeFolder(file.parent_path()));
  ASSIGN_OR_RETURN(lock_, TakeLock(file.string() + ".lock"));
  RETURN_IF_ERROR(MakeFile(file));
  RETURN_IF_ERROR(OpenWriter(file.string(), max_pages));
  RETURN_IF_ERROR(reader_.Open(file.string()));
  RETURN_IF_ERROR(reader_.Exec("PRAGMA query_only=ON; PRAGMA cache_size=-512"));
  sqlite3_busy_timeout(reader_.handle(), 5000);
  return PrepareStatements();
}

Status SqliteBackend::OpenWriter(const std::string& path, int64_t max_pages) {
  RETURN_IF_ERROR(writer_.Open(path));
  sqlite3_busy_timeout(writer_.handle(), 5000);
  ASSIGN_OR_RETURN(const int64_t pages, writer_.QueryInt("PRAGMA page_count"));
  // Only an empty file takes this; later it would need a VACUUM of everything.
  if (pages == 0) RETURN_IF_ERROR(writer_.Exec("PRAGMA auto_vacuum=INCREMENTAL"));
  RETURN_IF_ERROR(
      writer_.Exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; "
                   "PRAGMA journal_size_limit=67108864; PRAGMA temp_store=MEMORY"));
  if (max_pages > 0)
    RETURN_IF_ERROR(writer_.Exec(fmt::format("PRAGMA max_page_count={}", max_pages).c_str()));
  sqlite3_wal_hook(
      writer_.handle(),
      [](void* self, sqlite3*, const char*, int wal_pages) {
        static_cast<SqliteBackend*>(self)->wal_pages_ = wal_pages;
        return SQLITE_OK;
      },
      this);
  ASSIGN_OR_RETURN(const int64_t tables, writer_.QueryInt("SELECT COUNT(*) FROM sqlite_schema"));
  return tables == 0 ? CreateSchema() : CheckFormat();
}

Status SqliteBackend::CreateSchema() {
  return writer_.Exec(
      fmt::format(
          "BEGIN; PRAGMA application_id={}; {} INSERT INTO store_info VALUES(1, {}, 0); COMMIT",
          kApplicationId, kSchema, kStoreFormatVersion)
          .c_str());
}

Status SqliteBackend::CheckFormat() {
  ASSIGN_OR_RETURN(const int64_t id, writer_.QueryInt("PRAGMA application_id"));
  if (id != kApplicationId)
    return Error(Reason::kInvalid,
                 "store: {} is a database, but not one of muster: start with a new data directory",
                 FileOf(writer_.handle()));
  ASSIGN_OR_RETURN(const int64_t version,
                   writer_.QueryInt("SELECT format_version FROM store_info"));
  if (version != kStoreFormatVersion) {
    return Error(
        Reason::kInvalid,
        "store: {} has format {}, this muster reads {}: use the muster that wrote it",
        FileOf(writer_.handle()), version, kStoreFormatVersion);
  }
  return Status::Ok();
}

Status SqliteBackend::PrepareStatements() {
  ASSIGN_OR_RETURN(begin_, writer_.Prepare("BEGIN IMMEDIATE"));
  ASSIGN_OR_RETURN(commit_, writer_.Prepare("COMMIT"));
  ASSIGN_OR_RETURN(rollback_, writer_.Prepare("ROLLBACK"));
  ASSIGN_OR_RETURN(
      insert_,
      writer_.Prepare("INSERT INTO log(revision, key, create_revision, deleted, slot, value) "
                      "VALUES(?1, ?2, ?3, ?4, ?5, ?6)"));
  ASSIGN_OR_RETURN(delete_, writer_.Prepare("DELETE FROM log WHERE revision = ?1"));
  ASSIGN_OR_RETURN(set_compacted_, writer_.Prepare("UPDATE store_info SET compact_revision = ?1"));
  ASSIGN_OR_RETURN(
      read_row_,
      reader_.Prepare("SELECT revision, key, create_revision, deleted, slot, value FROM log "
                      "WHERE revision = ?1"));
  ASSIGN_OR_RETURN(
      read_log_, reader_.Prepare("SELECT revision FROM log WHERE revision > ?1 AND revision <= ?2 "
                                 "ORDER BY revision"));
  ASSIGN_OR_RETURN(read_previous_,
                   reader_.Prepare("SELECT revision, deleted FROM log WHERE key = ?1 AND "
                                   "revision < ?2 ORDER BY revision DESC LIMIT 1"));
  return Status::Ok();
}

// --- loading

Result<LogRecord> SqliteBackend::ReadRow(Revision revision) {
  read_row_.Reset();
  ASSIGN_OR_RETURN(const bool found, read_row_.Bind(1, revision).Step());
  if (!found)
    return Error(Reason::kInternalError,
                 "store: the database {} is damaged, revision {} is in the index but not in the "
                 "log: put a copy of it back, or start with a new data directory",
                 FileOf(reader_.handle()), revision);
  LogRecord record;
  record.revision = read_row_.Int(0);
  record.key = read_row_.Text(1);
  record.create_revision = read_row_.Int(2);
  record.deleted = read_row_.Int(3) != 0;
  record.revision_slot = static_cast<uint32_t>(read_row_.Int(4));
  if (!record.deleted) record.value = std::make_shared<const std::string>(read_row_.Text(5));
  read_row_.Reset();
  return record;
}

Result<LoadedState> SqliteBackend::Load(const std::function<void(LogRecord)>& sink) {
  LoadedState state;
  ASSIGN_OR_RETURN(state.compacted, reader_.QueryInt("SELECT compact_revision FROM store_info"));
  ASSIGN_OR_RETURN(const int64_t last,
                   reader_.QueryInt("SELECT IFNULL(MAX(revision), 0) FROM log"));
  // A deletion that was the last revision may itself be compacted away.
  state.revision = std::max(last, state.compacted);
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
    ASSIGN_OR_RETURN(LogRecord record, ReadRow(current));
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
  RETURN_IF_ERROR(writer_.Exec(durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL"));
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
  RETURN_IF_ERROR(SetDurable(durable));
  RETURN_IF_ERROR(InTransaction([&] { return AppendRows(batch); }));
  for (const LogRecord& record : batch) {
    if (record.previous_revision != 0)
      superseded_.push_back({record.revision, record.previous_revision});
    if (record.deleted) superseded_.push_back({record.revision, record.revision});
  }
  return Status::Ok();
}

Result<size_t> SqliteBackend::DeleteRows(Revision target) {
  RETURN_IF_ERROR(set_compacted_.Bind(1, std::max(target, compacted_)).Run());
  const Duration start = RealClock().Monotonic();
  size_t rows = 0;
  while (rows < superseded_.size() && superseded_[rows].since <= target &&
         rows < kMaxCompactionRevisionsPerStep) {
    RETURN_IF_ERROR(delete_.Bind(1, superseded_[rows].revision).Run());
    ++rows;
    if (rows % 64 == 0 && RealClock().Monotonic() - start > kMaxCompactionStepTime) break;
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

void SqliteBackend::Maintain(bool idle) {
  if (wal_pages_ < (idle ? kCheckpointPagesIdle : kCheckpointPagesBusy)) return;
  int in_wal = 0;
  int moved = 0;
  const int code = sqlite3_wal_checkpoint_v2(writer_.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE,
                                             &in_wal, &moved);
  if (code != SQLITE_OK && code != SQLITE_BUSY) {
    LOG_WARN("store: checkpoint failed error={}", sqlite3_errmsg(writer_.handle()));
  }
  // The next commit says how long the WAL is then.
  wal_pages_ = 0;
}

// --- reading the past

Result<ReadAtResult> SqliteBackend::ReadAt(std::string_view prefix, std::string_view after,
                                           size_t limit, Revision revision) {
  // The newest row of each key up to `revision`; SQLite takes `deleted` from the row that has the
  // maximum.
  ASSIGN_OR_RETURN(
      Statement scan,
      reader_.Prepare("SELECT MAX(revision), deleted FROM log WHERE key >= ?1 AND key > ?2 AND "
                      "(?3 IS NULL OR key < ?3) AND revision <= ?4 GROUP BY key ORDER BY key"));
  const std::string end = PrefixEnd(prefix);
  scan.Bind(1, prefix).Bind(2, after).Bind(4, revision);
  if (end.empty()) {
    scan.BindNull(3);
  } else {
    scan.Bind(3, std::string_view(end));
  }
  ReadAtResult result;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, scan.Step());
    if (!row) return result;
    if (scan.Int(1) != 0) continue;
    if (limit != 0 && result.records.size() == limit) {
      ++result.remaining;
      continue;
    }
    ASSIGN_OR_RETURN(LogRecord record, ReadRow(scan.Int(0)));
    result.records.push_back(std::move(record));
  }
}

Result<std::vector<LogChange>> SqliteBackend::ReadLog(Revision after, Revision last) {
  std::vector<LogChange> changes;
  read_log_.Reset();  // an earlier error may have left it in the middle
  read_log_.Bind(1, after).Bind(2, last);
  while (true) {
    ASSIGN_OR_RETURN(const bool row, read_log_.Step());
    if (!row) return changes;
    LogChange change;
    ASSIGN_OR_RETURN(change.record, ReadRow(read_log_.Int(0)));
    read_previous_.Bind(1, std::string_view(change.record.key)).Bind(2, change.record.revision);
    ASSIGN_OR_RETURN(const bool has_previous, read_previous_.Step());
    if (has_previous) {
      const Revision previous = read_previous_.Int(0);
      const bool was_deleted = read_previous_.Int(1) != 0;
      read_previous_.Reset();
      if (!was_deleted) {
        ASSIGN_OR_RETURN(LogRecord record, ReadRow(previous));
        change.previous = std::make_unique<LogRecord>(std::move(record));
      }
    }
    changes.push_back(std::move(change));
  }
}

}  // namespace

Result<std::unique_ptr<Backend>> OpenSqliteBackend(const std::string& path, int64_t max_pages) {
  auto backend = std::make_unique<SqliteBackend>();
  RETURN_IF_ERROR(backend->Open(path, max_pages));
  return backend;
}

}  // namespace muster::store
