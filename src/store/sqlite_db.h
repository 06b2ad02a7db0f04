// src/store/sqlite_db.h
//
// The little of SQLite's C interface that we use, with Status for errors.
//
// Thread: one at a time for each Database and its Statements.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::store {

// How long a statement waits while another program (a backup, a shell) holds a lock.
inline constexpr Duration kBusyTimeout = seconds(5);

class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* handle) : handle_(handle) {}

  Statement& Bind(int index, int64_t value);
  // The text must live until Reset().
  Statement& Bind(int index, std::string_view text);      // as a BLOB
  Statement& BindText(int index, std::string_view text);  // as TEXT
  Statement& BindNull(int index);
  // True: a row is there. False: done. The statement is reset after "done" and after an error.
  Result<bool> Step();
  Status Run();  // to the end, ignoring rows
  void Reset();

  int64_t Int(int column) const;
  std::string_view Text(int column) const;  // until the next Step or Reset

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

class Database {
 public:
  Status Open(const std::string& path);
  // For a look at a file that may be another process', or on a read-only medium: leaves its log as
  // it is.
  Status OpenAsGuest(const std::string& path);
  void SetBusyTimeout(Duration timeout);  // kBusyTimeout unless set
  Result<Statement> Prepare(const char* sql);
  Status Exec(const char* sql);
  Result<int64_t> QueryInt(const char* sql);
  sqlite3* handle() const { return handle_.get(); }

 private:
  Status Open(const std::string& path, const std::string& name, int flags);
  Status OpenReadOnly(const std::string& path);

  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

// The path of its database; "" if it has none.
std::string FileOf(sqlite3* handle);
// What went wrong last on `handle`: names the file (`file`, where the handle does not know it) and,
// where we know, says what helps.
Status SqliteError(sqlite3* handle, std::string_view doing, const std::string& file = "");

}  // namespace muster::store
