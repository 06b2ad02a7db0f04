#include "store/store_backup.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "store/sqlite_db.h"
#include "store/sqlite_format.h"
#include "store/store_lock.h"

namespace muster::store {

namespace {

namespace fs = std::filesystem;

constexpr int kInstructionsPerProgress = 100'000;

// A file that goes away unless it is kept.
class Partial {
 public:
  explicit Partial(std::string path) : path_(std::move(path)) {}
  ~Partial() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove(path_, ignored);
  }
  Partial(const Partial&) = delete;
  Partial& operator=(const Partial&) = delete;

  const std::string& path() const { return path_; }
  Status Make() const {
    const Descriptor file(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    return file.get() < 0 ? FileError("create", path_) : Status::Ok();
  }
  // RENAME_NOREPLACE: what appeared there meanwhile is not ours to replace.
  Status Keep(const std::string& as) {
    RETURN_IF_ERROR(SyncFile(path_));
    if (renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, as.c_str(), RENAME_NOREPLACE) != 0)
      return FileError("rename to", as);
    path_.clear();
    SyncFolderOf(as);
    return Status::Ok();
  }

 private:
  std::string path_;
};

// One read transaction, however long it takes: writers go on meanwhile.
Status CopyInto(const std::string& from, const std::string& to, const Progress& progress) {
  Database database;
  RETURN_IF_ERROR(database.OpenAsGuest(from));
  RETURN_IF_ERROR(CheckFormat(database));
  ASSIGN_OR_RETURN(const int64_t bytes,
                   database.QueryInt("SELECT (page_count - freelist_count) * page_size FROM "
                                     "pragma_page_count, pragma_freelist_count, pragma_page_size"));
  struct Watch {
    const Progress& progress;
    const std::string& to;
    int64_t total;
  } watch{progress, to, bytes};
  sqlite3_progress_handler(
      database.handle(), kInstructionsPerProgress,
      [](void* argument) {
        const Watch& self = *static_cast<Watch*>(argument);
        std::error_code ignored;
        const uintmax_t done = fs::file_size(self.to, ignored);
        if (self.progress && !ignored) self.progress(static_cast<int64_t>(done), self.total);
        return 0;
      },
      &watch);
  ASSIGN_OR_RETURN(Statement copy, database.Prepare("VACUUM INTO ?1"));
  const Status status = copy.BindText(1, to).Run();
  sqlite3_progress_handler(database.handle(), 0, nullptr, nullptr);
  if (status.ok()) return status;
  return status.WithPrefix(fmt::format("cannot copy {} to {}: ", from, to));
}

Status AddExtraFiles(const std::string& backup, const std::vector<ExtraFile>& files) {
  Database database;
  RETURN_IF_ERROR(database.Open(backup));
  RETURN_IF_ERROR(
      database.Exec("BEGIN; CREATE TABLE backup_files(name TEXT PRIMARY KEY, content BLOB)"));
  ASSIGN_OR_RETURN(Statement insert, database.Prepare("INSERT INTO backup_files VALUES(?1, ?2)"));
  for (const ExtraFile& file : files)
    RETURN_IF_ERROR(insert.BindText(1, file.name).Bind(2, std::string_view(file.content)).Run());
  return database.Exec("COMMIT");
}

Result<StoreReport> CheckedStore(const std::string& path, const ValueCheck& check_value,
                                 const Progress& progress) {
  ASSIGN_OR_RETURN(StoreReport report, CheckStore(path, check_value, progress));
  if (report.fault_count == 0) return report;
  return Error(Reason::kInvalid, "{} has {} faults, the first: {} (muster check-store lists them)",
               path, report.fault_count, report.faults.front());
}

}  // namespace

Result<StoreReport> BackUpStore(const std::string& database, const std::string& target,
                                const std::vector<ExtraFile>& files, const ValueCheck& check_value,
                                const Progress& progress) {
  std::error_code ignored;
  if (fs::exists(target, ignored))
    return Error(Reason::kConflict, "{} exists already: name a new file", target);
  Partial partial(target + ".partial");
  RETURN_IF_ERROR(partial.Make());
  RETURN_IF_ERROR(CopyInto(database, partial.path(), progress));
  RETURN_IF_ERROR(AddExtraFiles(partial.path(), files));
  ASSIGN_OR_RETURN(StoreReport report, CheckedStore(partial.path(), check_value, progress));
  RETURN_IF_ERROR(partial.Keep(target));
  return report;
}

Result<StoreReport> RestoreStore(const std::string& backup, const std::string& database,
                                 const ValueCheck& check_value, const Progress& progress) {
  ASSIGN_OR_RETURN(StoreReport report, CheckedStore(backup, check_value, progress));
  RETURN_IF_ERROR(MakeStoreFolder(database));
  RETURN_IF_ERROR(MakeStoreFile(database));
  RETURN_IF_ERROR(CopyInto(backup, database, progress));
  const Revision start = report.revision + kRestoreJump;
  {
    Database restored;
    RETURN_IF_ERROR(restored.Open(database));
    RETURN_IF_ERROR(restored.Exec(fmt::format("BEGIN; DROP TABLE IF EXISTS backup_files; "
                                              "UPDATE store_info SET compact_revision = {}; "
                                              "PRAGMA user_version = 0; COMMIT",
                                              start)
                                      .c_str()));
  }
  ASSIGN_OR_RETURN(const StoreLock lock, StoreLock::Take(database));
  lock.Record(start);
  RETURN_IF_ERROR(SyncFile(database));
  RETURN_IF_ERROR(SyncFile(database + ".lock"));
  SyncFolderOf(database);
  report.revision = report.compacted = start;
  return report;
}

Result<std::vector<ExtraFile>> ReadExtraFiles(const std::string& backup) {
  std::vector<ExtraFile> files;
  Database database;
  RETURN_IF_ERROR(database.OpenAsGuest(backup));
  ASSIGN_OR_RETURN(const int64_t tables,
                   database.QueryInt("SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND "
                                     "name = 'backup_files'"));
  if (tables == 0) return files;  // a copy of a store by other means
  ASSIGN_OR_RETURN(Statement scan,
                   database.Prepare("SELECT name, content FROM backup_files ORDER BY name"));
  while (true) {
    ASSIGN_OR_RETURN(const bool row, scan.Step());
    if (!row) return files;
    files.push_back({std::string(scan.Text(0)), std::string(scan.Text(1))});
  }
}

}  // namespace muster::store
