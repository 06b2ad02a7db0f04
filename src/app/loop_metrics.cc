#include "app/loop_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

#include <fmt/core.h>

namespace muster::app {
namespace {

// Resident bytes, from /proc/self/statm; 0 where there is no /proc.
int64_t ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  long pages_total = 0, pages_resident = 0;
  const int read = std::fscanf(file, "%ld %ld", &pages_total, &pages_resident);
  std::fclose(file);
  return read == 2 ? int64_t{pages_resident} * sysconf(_SC_PAGESIZE) : 0;
}

double ToSeconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

}  // namespace

std::string LoopMetrics::Text() {
  return HistogramText("loop_lag_seconds", "Time that one task held the control-plane loop.",
                       loop_.task_times()) +
         fmt::format(
             "# HELP loop_longest_task_seconds Longest time that one task held the control-plane "
             "loop since the last scrape.\n"
             "# TYPE loop_longest_task_seconds gauge\n"
             "loop_longest_task_seconds {:.6f}\n"
             "# HELP process_resident_memory_bytes Resident memory size in bytes.\n"
             "# TYPE process_resident_memory_bytes gauge\n"
             "process_resident_memory_bytes {}\n"
             "# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.\n"
             "# TYPE process_cpu_seconds_total counter\n"
             "process_cpu_seconds_total {:.3f}\n",
             ToSeconds(loop_.task_times().TakeLongest()), ResidentBytes(), CpuSeconds());
}

std::string HistogramText(std::string_view name, std::string_view help, const TaskTimes& times) {
  std::string text = fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  const TaskTimes::Snapshot snapshot = times.Read();
  uint64_t total = 0;
  for (size_t i = 0; i < snapshot.counts.size(); ++i) {
    total += snapshot.counts[i];
    const std::string bound = i < TaskTimes::kBounds.size()
                                  ? fmt::format("{}", ToSeconds(TaskTimes::kBounds[i]))
                                  : "+Inf";
    text += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bound, total);
  }
  return text +
         fmt::format("{0}_sum {1:.6f}\n{0}_count {2}\n", name, ToSeconds(snapshot.sum), total);
}

}  // namespace muster::app
