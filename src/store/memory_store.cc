#include "store/memory_store.h"

#include <utility>

#include "base/check.h"
#include "store/store_core.h"

namespace muster::store {

namespace {

// The core's own state is all there is.
class MemoryBackend final : public Backend {
 public:
  Result<LoadedState> Load(const std::function<void(LogRecord)>&) override { return LoadedState{}; }
  Status Append(std::span<const LogRecord>, bool) override { return Status::Ok(); }
  Result<bool> CompactStep(Revision) override { return false; }
  Status Maintain(bool) override { return Status::Ok(); }
  Status Recover(Revision) override { return Status::Ok(); }
  bool KeepsLog() const override { return false; }
  Result<ReadAtResult> ReadAt(std::string_view, std::string_view, size_t,
                              Revision revision) override {
    return Error(Reason::kExpired, "revision {} is not in memory any more", revision);
  }
  Result<std::vector<LogChange>> ReadLog(Revision after, Revision) override {
    return Error(Reason::kExpired, "revision {} is not in memory any more", after);
  }
};

}  // namespace

std::unique_ptr<Store> OpenMemoryStore(Loop& loop, Store::Decorator decorator) {
  StoreCore::Options options;
  options.decorator = std::move(decorator);
  Result<std::unique_ptr<StoreCore>> core =
      StoreCore::Open(loop, std::make_unique<MemoryBackend>(), std::move(options));
  CHECK(core.has_value());  // loading nothing cannot fail
  return std::move(*core);
}

}  // namespace muster::store
