#include "agent/volumes/network_mounter.h"

#include <utility>

#include "loop/thread_pool.h"

namespace muster::agent {

struct NetworkMounter::Job {
  std::string uid;
  std::vector<NetworkVolume> volumes;
  size_t next = 0;
  Done done;
  std::atomic<bool> cancelled = false;

  const NetworkVolume& Volume() const { return volumes[next]; }
};

NetworkMounter::NetworkMounter(MountTools tools, Loop& loop, Pool* pool)
    : tools_(std::move(tools)), loop_(loop), pool_(pool) {}

NetworkMounter::~NetworkMounter() {
  for (const auto& [uid, job] : jobs_) job->cancelled = true;
}

Pool& NetworkMounter::Threads() {
  if (pool_ != nullptr) return *pool_;
  own_pool_ = std::make_unique<ThreadPool>("mounts", kMaxParallelMounts);
  pool_ = own_pool_.get();
  return *pool_;
}

void NetworkMounter::Mount(const std::string& uid, std::vector<NetworkVolume> volumes, Done done) {
  auto job = std::make_shared<Job>();
  job->uid = uid;
  job->volumes = std::move(volumes);
  job->done = std::move(done);
  jobs_[uid] = job;
  if (job->volumes.empty()) return Finish(job, Status::Ok());
  waiting_.push_back(std::move(job));
  Next();
}

void NetworkMounter::Cancel(const std::string& uid) {
  const auto found = jobs_.find(uid);
  if (found == jobs_.end()) return;
  const std::shared_ptr<Job> job = found->second;
  job->cancelled = true;
  if (waiting_.remove(job) > 0)
    Finish(job, Error(Reason::kServiceUnavailable, "the pod is ending"));
}

// In the order in which they came, but for those whose server has its turns already.
void NetworkMounter::Next() {
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    if (all_running_ >= kMaxParallelMounts) return;
    std::shared_ptr<Job> job = *each;
    if (running_[job->Volume().server] >= kMaxMountsPerServer) {
      ++each;
      continue;
    }
    each = waiting_.erase(each);
    Begin(std::move(job));
  }
}

void NetworkMounter::Begin(std::shared_ptr<Job> job) {
  ++running_[job->Volume().server];
  ++all_running_;
  auto status = std::make_shared<Status>();
  Threads().Run(
      [job, status, tools = tools_] {
        *status = MountNetworkVolume(job->Volume(), tools, &job->cancelled);
      },
      loop_, lifetime_.Guard([this, job, status] {
        const auto server = running_.find(job->Volume().server);
        if (--server->second == 0) running_.erase(server);
        --all_running_;
        if (status->ok() && ++job->next < job->volumes.size()) {
          waiting_.push_back(job);
        } else {
          Finish(job, std::move(*status));
        }
        Next();
      }));
}

void NetworkMounter::Finish(const std::shared_ptr<Job>& job, Status status) {
  jobs_.erase(job->uid);
  loop_.Post(lifetime_.Guard(
      [job, status = std::move(status)]() mutable { job->done(std::move(status)); }));
}

}  // namespace muster::agent
