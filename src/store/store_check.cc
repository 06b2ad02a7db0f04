#include "store/store_check.h"

#include <sqlite3.h>

#include <optional>

#include <fmt/core.h>

#include "store/backend.h"
#include "store/sqlite_db.h"
#include "store/sqlite_format.h"
#include "store/store_lock.h"

namespace muster::store {

namespace {

constexpr int64_t kProgressRows = 1000;

class Checker {
 public:
  Checker(Database& database, const std::string& path, const ValueCheck& check_value,
          const Progress& progress)
      : database_(database), path_(path), check_value_(check_value), progress_(progress) {}

  Result<StoreReport> Run() {
    const std::optional<Revision> recorded = StoreLock::RecordedOf(path_);
    // Everything below is of one moment, which is not before that.
    RETURN_IF_ERROR(database_.Exec("BEGIN"));
    RETURN_IF_ERROR(CheckFormat(database_));
    ASSIGN_OR_RETURN(report_.compacted,
                     database_.QueryInt("SELECT compact_revision FROM store_info"));
    ASSIGN_OR_RETURN(report_.revision, LastRevision(database_));
    if (const Status lost = CheckNothingLost(path_, report_.revision, recorded); !lost.ok())
      Fault(lost.message());
    RETURN_IF_ERROR(CheckFile());
    // What is damaged below SQLite makes these fail; then the faults above are the answer.
    Status status = CheckRevisions();
    if (status.ok()) status = CheckKeys();
    if (!status.ok()) Fault(status.message());
    return std::move(report_);
  }

 private:
  void Fault(std::string text) {
    if (++report_.fault_count <= static_cast<int64_t>(kMaxReportedFaults))
      report_.faults.push_back(std::move(text));
  }

  Status CheckFile() {
    ASSIGN_OR_RETURN(Statement check, database_.Prepare("PRAGMA integrity_check(100)"));
    while (true) {
      const Result<bool> row = check.Step();
      if (!row) {
        Fault(row.error().message());
        return Status::Ok();
      }
      if (!*row) return Status::Ok();
      if (check.Text(0) != "ok") Fault(std::string(check.Text(0)));
    }
  }

  // After the compacted revision there is one row for each.
  Status CheckRevisions() {
    ASSIGN_OR_RETURN(Statement scan, database_.Prepare("SELECT revision FROM log WHERE revision > "
                                                       "?1 ORDER BY revision"));
    scan.Bind(1, report_.compacted);
    Revision expected = report_.compacted + 1;
    while (true) {
      ASSIGN_OR_RETURN(const bool row, scan.Step());
      if (!row) return Status::Ok();
      const Revision revision = scan.Int(0);
      if (revision != expected)
        Fault(fmt::format("revisions {} to {} are missing in the log", expected, revision - 1));
      expected = revision + 1;
    }
  }

  // Key by key, each from its oldest revision to its newest.
  Status CheckKeys() {
    ASSIGN_OR_RETURN(const int64_t total, database_.QueryInt("SELECT COUNT(*) FROM log"));
    ASSIGN_OR_RETURN(
        Statement scan,
        database_.Prepare("SELECT revision, key, create_revision, deleted, slot, value FROM log "
                          "ORDER BY key, revision"));
    std::optional<LogRecord> previous;
    while (true) {
      ASSIGN_OR_RETURN(const bool row, scan.Step());
      if (!row) break;
      LogRecord record;
      record.revision = scan.Int(0);
      record.key = scan.Text(1);
      record.create_revision = scan.Int(2);
      record.deleted = scan.Int(3) != 0;
      const bool same_key = previous && previous->key == record.key;
      if (!same_key) CountObject(previous);
      CheckLife(record, same_key && !previous->deleted ? &*previous : nullptr);
      if (!record.deleted) CheckValue(record, scan.Int(4), scan.Text(5));
      previous = std::move(record);
      if (++report_.revisions % kProgressRows == 0 && progress_)
        progress_(report_.revisions, total);
    }
    CountObject(previous);
    return Status::Ok();
  }

  void CountObject(const std::optional<LogRecord>& last) {
    if (last && !last->deleted) ++report_.objects;
  }

  void CheckLife(const LogRecord& record, const LogRecord* before) {
    const auto fault = [&](std::string_view what) {
      Fault(fmt::format("{:?} at revision {}: {}", record.key, record.revision, what));
    };
    if (record.create_revision > record.revision) fault("is older than its creation");
    if (before != nullptr && before->create_revision != record.create_revision)
      fault("was created twice without a deletion between");
    if (record.deleted && before == nullptr && record.revision > report_.compacted)
      fault("is a deletion of nothing");
  }

  void CheckValue(const LogRecord& record, int64_t slot, std::string_view value) {
    report_.bytes += static_cast<int64_t>(value.size());
    const auto fault = [&](std::string_view what) {
      Fault(fmt::format("{:?} at revision {}: {}", record.key, record.revision, what));
    };
    if (slot != kNoRevisionSlot) {
      const std::string number = fmt::format("\"{}\"", record.revision);
      if (slot < 0 || static_cast<size_t>(slot) + kRevisionSlotBytes > value.size() ||
          !value.substr(static_cast<size_t>(slot)).starts_with(number))
        return fault("does not carry its own revision");
    }
    if (!check_value_) return;
    if (const Status status = check_value_(record.key, value); !status.ok())
      fault(status.message());
  }

  Database& database_;
  const std::string& path_;
  const ValueCheck& check_value_;
  const Progress& progress_;
  StoreReport report_;
};

}  // namespace

Result<StoreReport> CheckStore(const std::string& path, const ValueCheck& check_value,
                               const Progress& progress) {
  Database database;
  RETURN_IF_ERROR(database.OpenAsGuest(path));
  return Checker(database, path, check_value, progress).Run();
}

}  // namespace muster::store
