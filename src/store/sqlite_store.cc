#include "store/sqlite_store.h"

#include <utility>

#include "store/sqlite_backend.h"
#include "store/store_core.h"

namespace muster::store {

namespace {

Result<std::unique_ptr<Store>> Open(Loop& loop, const std::string& path, Store::Decorator decorator,
                                    SqliteOptions sqlite, CommitterFactory committer) {
  ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend, OpenSqliteBackend(path, std::move(sqlite)));
  StoreCore::Options options;
  options.decorator = std::move(decorator);
  options.committer = std::move(committer);
  options.max_history_bytes = kMaxHistoryBytesBesideLog;
  ASSIGN_OR_RETURN(std::unique_ptr<StoreCore> core,
                   StoreCore::Open(loop, std::move(backend), std::move(options)));
  return core;
}

}  // namespace

Result<std::unique_ptr<Store>> OpenSqliteStore(Loop& loop, const std::string& path,
                                               Store::Decorator decorator, SqliteOptions options) {
  return Open(loop, path, std::move(decorator), std::move(options), MakeThreadCommitter);
}

Result<std::unique_ptr<Store>> OpenSqliteStoreOnLoop(Loop& loop, const std::string& path,
                                                     Store::Decorator decorator) {
  return Open(loop, path, std::move(decorator), {}, MakeLoopCommitter);
}

}  // namespace muster::store
