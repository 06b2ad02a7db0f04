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

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

}  // namespace

std::string LoopMetrics::Text() {
  return fmt::format(
      "# HELP loop_lag_seconds Longest time that one task held the control-plane loop since the "
      "last scrape.\n"
      "# TYPE loop_lag_seconds gauge\n"
      "loop_lag_seconds {:.6f}\n"
      "# HELP process_resident_memory_bytes Resident memory size in bytes.\n"
      "# TYPE process_resident_memory_bytes gauge\n"
      "process_resident_memory_bytes {}\n"
      "# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.\n"
      "# TYPE process_cpu_seconds_total counter\n"
      "process_cpu_seconds_total {:.3f}\n",
      std::chrono::duration<double>(loop_.TakeLongestTask()).count(), ResidentBytes(),
      CpuSeconds());
}

}  // namespace muster::app
