#include "store/sqlite_db.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "store/backend.h"

namespace muster::store {

namespace {

bool IsFull(int code, int system_error) {
  const bool no_room = system_error == ENOSPC || system_error == EDQUOT;
  return (code & 0xFF) == SQLITE_FULL || ((code & 0xFF) == SQLITE_IOERR && no_room);
}

// The user's part of the message: which file, what it means, what helps. "" if nobody can tell.
std::string Advice(int code, int system_error, const std::string& file) {
  switch (code & 0xFF) {
    case SQLITE_NOTADB:
      return fmt::format(
          "{} is not a muster store, or its first page is overwritten: name another file, restore "
          "a backup (muster restore), or start with a new data directory",
          file);
    case SQLITE_CORRUPT:
      return fmt::format(
          "the database {} is damaged: restore a backup (muster restore), or start with a new data "
          "directory",
          file);
    case SQLITE_CANTOPEN:
      if (system_error == ENOENT) return fmt::format("{} does not exist", file);
      [[fallthrough]];
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      return fmt::format(
          "the database {} cannot be opened for reading and writing: see to its owner and mode, "
          "restore a backup (muster restore), or start with a new data directory",
          file);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fmt::format(
          "another program holds a lock on the database {}: end it (a sqlite3 shell?) and restart "
          "muster",
          file);
    case SQLITE_FULL:
      return fmt::format("the disk that holds {} is full: make room", file);
    case SQLITE_IOERR:
      return fmt::format("the disk that holds {} does not work ({})", file,
                         system_error == 0 ? "no reason given" : std::strerror(system_error));
    default:
      return "";
  }
}

}  // namespace

std::string FileOf(sqlite3* handle) {
  const char* name = handle == nullptr ? nullptr : sqlite3_db_filename(handle, "main");
  return name == nullptr ? "" : name;
}

Status SqliteError(sqlite3* handle, std::string_view doing, const std::string& path) {
  const int code = sqlite3_extended_errcode(handle);
  const std::string file = path.empty() ? FileOf(handle) : path;
  const std::string why =
      fmt::format("sqlite: {}: {} (code {})", doing, sqlite3_errmsg(handle), code);
  const int system_error = sqlite3_system_errno(handle);
  const bool full = IsFull(code, system_error);
  const std::string advice = Advice(full ? SQLITE_FULL : code, system_error, file);
  // A sync that failed may have lost what was written before: only a new start finds out.
  if (full && code != SQLITE_IOERR_FSYNC)
    return RecoverableError(fmt::format("store: {} ({})", advice, why));
  if (!advice.empty()) return Error(Reason::kInternalError, "store: {} ({})", advice, why);
  return Error(Reason::kInternalError, "store: {}: {}", file, why);
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

Statement& Statement::BindText(int index, std::string_view text) {
  sqlite3_bind_text64(handle_.get(), index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
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

Status Database::Open(const std::string& path) { return Open(path, path, SQLITE_OPEN_READWRITE); }

// Readers of a WAL coordinate through a file beside it. Where none can be made nobody writes, so
// there is nothing to coordinate: the log is read by one who locks nothing, or there is none.
Status Database::OpenReadOnly(const std::string& path) {
  struct stat info{};
  const bool has_log = stat((path + "-wal").c_str(), &info) == 0 && info.st_size > 0;
  std::string uri = "file:";
  for (const char c : path) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("/-._~").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  uri += has_log ? "?mode=ro&vfs=unix-none" : "?mode=ro&immutable=1";
  RETURN_IF_ERROR(Open(path, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI));
  return has_log ? Exec("PRAGMA locking_mode=EXCLUSIVE") : Status::Ok();
}

Status Database::Open(const std::string& path, const std::string& name, int flags) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) {
    const Status status = SqliteError(handle, "open", path);
    handle_.reset();
    return status;
  }
  sqlite3_extended_result_codes(handle, 1);
  SetBusyTimeout(kBusyTimeout);
  return Status::Ok();
}

Status Database::OpenAsGuest(const std::string& path) {
  if (access(path.c_str(), W_OK) != 0 && errno == EROFS) return OpenReadOnly(path);
  RETURN_IF_ERROR(Open(path));
  sqlite3_db_config(handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return Status::Ok();
}

void Database::SetBusyTimeout(Duration timeout) {
  sqlite3_busy_timeout(handle(),
                       static_cast<int>(std::chrono::duration_cast<milliseconds>(timeout).count()));
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
