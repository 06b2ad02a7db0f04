#include "store/sqlite_db.h"

#include <sqlite3.h>

namespace muster::store {

Status SqliteError(sqlite3* handle, std::string_view doing) {
  return Error(Reason::kInternalError, "sqlite: {}: {} (code {})", doing, sqlite3_errmsg(handle),
               sqlite3_extended_errcode(handle));
}

void Statement::Finalize::operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

Statement& Statement::Bind(int index, int64_t value) {
  sqlite3_bind_int64(handle_.get(), index, value);
  return *this;
}

Statement& Statement::Bind(int index, std::string_view text) {
  sqlite3_bind_blob64(handle_.get(), index, text.empty() ? "" : text.data(), text.size(),
                      SQLITE_STATIC);
  return *this;
}

Statement& Statement::BindNull(int index) {
  sqlite3_bind_null(handle_.get(), index);
  return *this;
}

Result<bool> Statement::Step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  Status status;
  if (code != SQLITE_DONE)
    status = SqliteError(sqlite3_db_handle(handle_.get()), sqlite3_sql(handle_.get()));
  sqlite3_reset(handle_.get());
  if (!status.ok()) return Error(status);
  return false;
}

Status Statement::Run() {
  while (true) {
    ASSIGN_OR_RETURN(const bool row, Step());
    if (!row) return Status::Ok();
  }
}

void Statement::Reset() { sqlite3_reset(handle_.get()); }

int64_t Statement::Int(int column) const { return sqlite3_column_int64(handle_.get(), column); }

std::string_view Statement::Text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle_.get(), column));
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(handle_.get(), column))};
}

Status Database::Open(const std::string& path) {
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) return SqliteError(handle, "open " + path);
  sqlite3_extended_result_codes(handle, 1);
  return Status::Ok();
}

Result<Statement> Database::Prepare(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(handle(), sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) !=
      SQLITE_OK) {
    return Error(SqliteError(handle(), sql));
  }
  return Statement(statement);
}

Status Database::Exec(const char* sql) {
  if (sqlite3_exec(handle(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return SqliteError(handle(), sql);
  return Status::Ok();
}

Result<int64_t> Database::QueryInt(const char* sql) {
  ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return Error(Reason::kInternalError, "sqlite: {}: no row", sql);
  return statement.Int(0);
}

}  // namespace muster::store
