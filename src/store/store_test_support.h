// src/store/store_test_support.h
//
// For the tests of this folder: a loop that waits for other threads, a folder that goes away, short
// names for writes.

#pragma once

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "loop/loop.h"
#include "store/store.h"

namespace muster::store {

// Runs tasks on the test's thread and sleeps until another thread posts one. Timers run at once.
class WaitingLoop final : public Loop {
 public:
  void Post(Task task) override {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
  }
  TimerId After(Duration, Task task) override {
    Post(std::move(task));
    return 0;
  }
  void Cancel(TimerId) override {}
  Time Now() const override { return Time(); }
  bool InThread() const override { return true; }

  // Ends the process after 30 s without progress: a lost callback must not hang the suite.
  template <class Predicate>
  void RunUntil(Predicate done) {
    while (!done()) {
      std::unique_lock lock(mutex_);
      CHECK_MSG(wake_.wait_for(lock, seconds(30), [this] { return !tasks_.empty(); }),
                "the loop has nothing to do");
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }
  void RunReady() {
    RunUntil([this] {
      const std::lock_guard lock(mutex_);
      return tasks_.empty();
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "store-test-XXXXXX").string();
    CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string File(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

inline Put MakePut(std::string key, std::string value,
                   std::optional<Revision> expected = std::nullopt) {
  Put put;
  put.key = std::move(key);
  put.value = std::move(value);
  put.expected = expected;
  return put;
}

inline std::vector<std::string> Keys(const RangeResult& range) {
  std::vector<std::string> keys;
  for (const EntryPtr& entry : range.entries) keys.push_back(entry->key);
  return keys;
}

// "put /a 3 v", "delete /a 4 v": one line per event.
inline std::string Describe(const WatchEvent& event) {
  return fmt::format("{} {} {} {}", event.type == WatchEvent::Type::kPut ? "put" : "delete",
                     event.entry->key, event.revision, *event.entry->value);
}

}  // namespace muster::store
