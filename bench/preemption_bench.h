// bench/preemption_bench.h
//
// What a plan costs that has to make room, in the shapes of upstream's scheduler_perf: nodes full
// of pods of low priority, and one pod of high priority for each node that fits only where others
// go. Upstream's floor for 5,000 of them on 5,000 nodes (PreemptionAsync) is 570 pods/s, through
// its API; here it is the plan alone.

#pragma once

namespace muster::scheduler {

// Prints `name value unit` lines.
void BenchPreemption(int rounds);

}  // namespace muster::scheduler
