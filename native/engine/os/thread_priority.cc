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
  // For Linux a thread's id used as process id refers to that thread alone.
  if (sched_setscheduler(gettid(), SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) != 0) preferThread();
}

void preferThread() {
  for (int nice = kBestNice; nice < 0; ++nice) {
    if (setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice) == 0) return;
  }
}

void lowerThreadPriority() {
  // The kernel derives the disk priority from it. A process without permission has a low one
  // already.
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kWorstNice));
}

}  // namespace capfleet
