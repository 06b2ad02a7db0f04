#include "loop/thread_pool.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"

namespace muster {

struct ThreadPool::Impl {
  struct Job {
    Task work;
    Loop* loop;
    Task done;
  };
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Job> queue;
  bool stopping = false;
  std::vector<std::thread> threads;

  void Work() {
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [this] { return stopping || !queue.empty(); });
      if (stopping) return;
      Job job = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      job.work();
      job.loop->Post(std::move(job.done));
      lock.lock();
    }
  }
};

ThreadPool::ThreadPool(std::string name, int threads) : impl_(std::make_unique<Impl>()) {
  for (int i = 0; i < threads; ++i) {
    impl_->threads.emplace_back([impl = impl_.get(), name] {
      pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
      impl->Work();
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->wake.notify_all();
  for (std::thread& thread : impl_->threads) thread.join();
}

void ThreadPool::Run(Task work, Loop& loop, Task done) {
  {
    const std::lock_guard lock(impl_->mutex);
    CHECK(impl_->queue.size() < kMaxPoolQueue);
    impl_->queue.push_back({std::move(work), &loop, std::move(done)});
  }
  impl_->wake.notify_one();
}

}  // namespace muster
