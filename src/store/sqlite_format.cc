#include "store/sqlite_format.h"

#include <fmt/core.h>

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

}  // namespace

Status CreateSchema(Database& database) {
  return database.Exec(
      fmt::format(
          "BEGIN; PRAGMA application_id={}; {} INSERT INTO store_info VALUES(1, {}, 0); COMMIT",
          kApplicationId, kSchema, kStoreFormatVersion)
          .c_str());
}

Status CheckFormat(Database& database) {
  ASSIGN_OR_RETURN(const int64_t id, database.QueryInt("PRAGMA application_id"));
  if (id != kApplicationId)
    return Error(Reason::kInvalid,
                 "store: {} is a database, but not one of muster: restore a backup (muster "
                 "restore), or start with a new data directory",
                 FileOf(database.handle()));
  ASSIGN_OR_RETURN(const int64_t version,
                   database.QueryInt("SELECT format_version FROM store_info"));
  if (version != kStoreFormatVersion) {
    return Error(
        Reason::kInvalid,
        "store: {} has format {}, this muster reads {}: use the muster that wrote it, or restore a "
        "backup of this format (muster restore)",
        FileOf(database.handle()), version, kStoreFormatVersion);
  }
  return Status::Ok();
}

Result<Revision> LastRevision(Database& database) {
  // A deletion that was the last revision may itself be compacted away.
  return database.QueryInt(
      "SELECT MAX(compact_revision, IFNULL((SELECT MAX(revision) FROM log), 0)) FROM store_info");
}

}  // namespace muster::store
