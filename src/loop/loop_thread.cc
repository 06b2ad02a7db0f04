#include "loop/loop_thread.h"

#include <pthread.h>

#include <latch>
#include <thread>
#include <utility>

#include "base/check.h"

namespace muster {

struct LoopThread::Impl {
  AsioLoop loop;
  std::thread thread;
};

LoopThread::LoopThread(std::string name) : impl_(std::make_unique<Impl>()) {
  std::latch started(1);
  impl_->thread = std::thread([this, &started, name = std::move(name)] {
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    impl_->loop.Post([&started] { started.count_down(); });
    impl_->loop.Run();
  });
  started.wait();
}

LoopThread::~LoopThread() {
  impl_->loop.Stop();
  impl_->thread.join();
}

AsioLoop& LoopThread::loop() { return impl_->loop; }

void LoopThread::RunAndWait(Task task) {
  CHECK(!impl_->loop.InThread());
  std::latch done(1);
  impl_->loop.Post([&] {
    task();
    done.count_down();
  });
  done.wait();
}

}  // namespace muster
