#include "os/thread_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

namespace capfleet {

namespace {
constexpr int kBestNice = -20;
constexpr int kWorstNice = 19;
}  // namespace

void raiseThreadPriority() {
  const sched_param lowest{.sched_priority = sched_get_priority_min(SCHED_FIFO)};
  // For Linux the process number of a thread names that thread alone.
  if (sched_setscheduler(gettid(), SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) != 0) preferThread();
}

void preferThread() {
  for (int nice = kBestNice; nice < 0; ++nice) {
    if (setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice) == 0) return;
  }
}

void lowerThreadPriority() {
  // The kernel derives the priority at the disk from it. Whoever may not has a low one already.
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kWorstNice));
}

}  // namespace capfleet
