#include "simulator/simulation.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "cluster/cluster_cache.h"
#include "scheduler/pending.h"
#include "scheduler/planner.h"
#include "simulator/gpu_use.h"
#include "simulator/waiting_units.h"

namespace muster::simulator {
namespace {

using cluster::PodKey;

constexpr size_t kEventsPerProgress = 256;

class Simulation {
 public:
  Simulation(const Workload& workload, Policy policy)
      : workload_(workload), jobs_(workload.jobs), policy_(policy) {
    for (const auto& [name, labels] : workload.namespaces) cache_.UpsertNamespace(name, labels);
    for (const cluster::NodeInfo& node : workload.nodes) cache_.UpsertNode(node);
    gpus_.emplace(workload, cache_);
    for (size_t i = 0; i < workload.running.size(); ++i) Begin(i);
    outcome_.gpus = gpus_->total();
    outcome_.jobs.resize(jobs_.size());
    config_.explain = false;
  }

  Outcome Run(const ProgressFunction& progress) {
    size_t next = 0, done = 0, shown = 0;
    if (!workload_.running.empty()) TakeSample();
    while (next < jobs_.size() || !ends_.empty()) {
      now_ = ends_.empty() ? jobs_[next].arrival : ends_.top().first;
      if (next < jobs_.size()) now_ = std::min(now_, jobs_[next].arrival);
      bool freed = false;
      for (; !ends_.empty() && ends_.top().first == now_; ends_.pop(), ++done) {
        End(ends_.top().second);
        freed = true;
      }
      scheduler::Queue fresh;
      for (; next < jobs_.size() && jobs_[next].arrival == now_; ++next, ++done)
        Arrive(next, fresh);
      if (freed || !fresh.empty()) Place(freed, std::move(fresh));
      TakeSample();
      if (progress && done - shown >= kEventsPerProgress) {
        progress(done, 2 * jobs_.size());
        shown = done;
      }
    }
    ExplainTheRest();
    return std::move(outcome_);
  }

 private:
  // By position, so that names of a trace that are there twice do no harm, and in its order.
  static std::string UnitName(size_t job) { return fmt::format("{:07}", job); }
  static size_t JobOf(const scheduler::Unit& unit) {
    return static_cast<size_t>(std::stoull(unit.name.substr(0, 7)));
  }
  static bool IsGang(const Job& job) { return job.PodCount() > 1 || job.min_member > 1; }
  static PodKey KeyOf(const Job& job, size_t index, int64_t pod) {
    return {job.ns, IsGang(job) ? fmt::format("{}-{}", UnitName(index), pod) : UnitName(index)};
  }

  static size_t PodOf(const PodKey& key) {
    const size_t dash = key.name.find('-');
    return dash == key.name.npos ? 0 : static_cast<size_t>(std::stoull(key.name.substr(dash + 1)));
  }

  // What runs already. Ends of these are numbered behind the jobs.
  void Begin(size_t index) {
    const RunningPod& running = workload_.running[index];
    cache_.UpsertPod(running.pod);
    gpus_->Use(running.pod.node_name, GpusOf(running.pod.constraints));
    if (running.ends_in == kNoKnownEnd) {
      ++outcome_.unknown_ends;
    } else {
      ends_.emplace(running.ends_in, jobs_.size() + index);
    }
  }

  static int64_t GpusOf(const cluster::PodConstraints& constraints) {
    return cluster::AmountOf(constraints.requests, cluster::resource::kNvidiaGpu);
  }

  void Arrive(size_t index, scheduler::Queue& fresh) {
    const Job& job = jobs_[index];
    // The order of muster is by creation; another order is had by pretending another creation. In
    // one moment: as in the workload.
    const Duration rank = policy_ == Policy::kShortestFirst ? job.run_time / 2 : now_;
    const Time created(rank + Duration(static_cast<int64_t>(index)));
    if (IsGang(job)) {
      cluster::PodGroupInfo group;
      group.ns = job.ns;
      group.name = group.uid = UnitName(index);
      group.min_member = std::max(job.PodCount(), job.min_member);
      group.created = created;
      cache_.UpsertGroup(std::move(group));
    }
    scheduler::PendingPods pending;
    int64_t number = 0;
    for (const PodSet& set : job.pods) {
      for (int64_t i = 0; i < set.count; ++i, ++number) {
        const PodKey key = KeyOf(job, index, number);
        cluster::PodInfo pod;
        pod.ns = key.ns;
        pod.name = pod.uid = key.name;
        if (IsGang(job)) pod.group = UnitName(index);
        pod.holder = "job " + job.name;
        pod.priority = policy_ == Policy::kMuster ? job.priority : 0;
        pod.created = created;
        pod.labels = set.labels;
        pod.constraints = set.constraints;
        cache_.UpsertPod(std::move(pod));
        pending[key] = cache_.FindPod(key);
      }
    }
    // Nothing about a job changes while it waits: its unit is made once.
    for (scheduler::Unit& unit : scheduler::BuildQueue(cache_, pending, {}, {}))
      fresh.push_back(waiting_.Add(std::move(unit), cache_.snapshot()));
  }

  void End(size_t index) {
    outcome_.makespan = std::max(outcome_.makespan, now_);
    if (index >= jobs_.size()) {
      const cluster::PodInfo& pod = workload_.running[index - jobs_.size()].pod;
      cache_.RemovePod({pod.ns, pod.name});
      return gpus_->Use(pod.node_name, -GpusOf(pod.constraints));
    }
    const Job& job = jobs_[index];
    const JobOutcome& outcome = outcome_.jobs[index];
    int64_t number = 0;
    for (const PodSet& set : job.pods) {
      for (int64_t i = 0; i < set.count; ++i, ++number) {
        cache_.RemovePod(KeyOf(job, index, number));
        gpus_->Use(outcome.nodes[static_cast<size_t>(number)], -set.GpusPerPod());
      }
    }
    if (IsGang(job)) cache_.RemoveGroup({job.ns, UnitName(index)});
  }

  void Place(bool freed, scheduler::Queue fresh) {
    if (policy_ == Policy::kFifo) return PlaceFromHead(freed, fresh.size());
    // What did not fit before does not fit now unless something ended, or what it looks at came.
    const scheduler::Queue queue =
        freed ? waiting_.WorthATry(cache_.snapshot()) : waiting_.LookingAtPods(std::move(fresh));
    if (!queue.empty()) PlanAndStart(queue);
  }

  // One after another, until one does not fit.
  void PlaceFromHead(bool freed, size_t fresh) {
    // A head of line that waits from earlier blocks what arrives now.
    if (!freed && waiting_.size() > fresh) return;
    while (waiting_.size() > 0 && PlanAndStart({waiting_.First()}) > 0) {
    }
  }

  // How many units were placed.
  size_t PlanAndStart(const scheduler::Queue& queue) {
    ++outcome_.plans;
    const scheduler::PlanResult plan =
        scheduler::Plan(cache_.snapshot(), queue, config_, Time(now_));
    config_.packing = plan.packing;
    size_t placed = 0;
    for (const scheduler::UnitPlan& unit : plan.units) {
      if (unit.assignments.empty()) continue;
      Start(queue[unit.unit], unit);
      ++placed;
    }
    return placed;
  }

  void Start(const scheduler::Unit& unit, const scheduler::UnitPlan& plan) {
    const size_t index = JobOf(unit);
    const Job& job = jobs_[index];
    CHECK(plan.assignments.size() == static_cast<size_t>(job.PodCount()));
    JobOutcome& outcome = outcome_.jobs[index];
    outcome.nodes.resize(plan.assignments.size());
    for (const scheduler::Assignment& assignment : plan.assignments) {
      const PodKey& pod = unit.pods[assignment.pod].key;
      CHECK(cache_.Assume(pod, assignment.node, assignment.devices));
      outcome.nodes[PodOf(pod)] = assignment.node;
    }
    size_t number = 0;
    for (const PodSet& set : job.pods) {
      for (int64_t i = 0; i < set.count; ++i) gpus_->Use(outcome.nodes[number++], set.GpusPerPod());
    }
    outcome.placed = true;
    outcome.start = now_;
    if (job.run_time == kNoKnownEnd) {
      ++outcome_.unknown_ends;
    } else {
      ends_.emplace(now_ + job.run_time, index);
    }
    waiting_.Remove(unit);
  }

  void TakeSample() {
    outcome_.samples.push_back({now_, gpus_->used(), gpus_->stranded(), gpus_->unusable(),
                                static_cast<int64_t>(waiting_.size())});
  }

  // Nothing ends any more: what waits still, waits for ever.
  void ExplainTheRest() {
    if (waiting_.size() == 0) return;
    config_.explain = true;
    const scheduler::Queue queue = waiting_.All();
    const scheduler::PlanResult plan =
        scheduler::Plan(cache_.snapshot(), queue, config_, Time(now_));
    for (const scheduler::UnitPlan& unit : plan.units) {
      const size_t job = JobOf(queue[unit.unit]);
      if (!unit.infeasible.has_value()) {
        outcome_.never_placed.push_back({job, false, "a job before it in the queue never fits"});
        continue;
      }
      scheduler::Infeasible facts = *unit.infeasible;
      if (!facts.group.empty()) facts.group = jobs_[job].name;  // as its user calls it
      outcome_.never_placed.push_back(
          {job, facts.why == scheduler::Infeasible::Why::kNeverFits, scheduler::Explain(facts)});
    }
    std::sort(outcome_.never_placed.begin(), outcome_.never_placed.end(),
              [](const NeverPlaced& a, const NeverPlaced& b) { return a.job < b.job; });
  }

  using EndOfJob = std::pair<Duration, size_t>;  // when, job

  const Workload& workload_;
  const std::vector<Job>& jobs_;
  const Policy policy_;
  scheduler::PlannerConfig config_;
  cluster::ClusterCache cache_;
  WaitingUnits waiting_;
  std::priority_queue<EndOfJob, std::vector<EndOfJob>, std::greater<>> ends_;
  Duration now_{};
  std::optional<GpuUse> gpus_;
  Outcome outcome_;
};

}  // namespace

Outcome Simulate(const Workload& workload, Policy policy, const ProgressFunction& progress) {
  return Simulation(workload, policy).Run(progress);
}

}  // namespace muster::simulator
