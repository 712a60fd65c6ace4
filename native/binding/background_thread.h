// A thread for work that may take minutes and must not delay any other work.
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "os/blocked_signals.h"
#include "os/thread_priority.h"

namespace capfleet::binding {

/// Runs the task on a thread of its own, with the lowest priority.
inline void runInBackground(std::function<void()> task) {
  const BlockedSignals blocked;
  std::thread([task = std::move(task)] {
    lowerThreadPriority();
    task();
  }).detach();
}

}  // namespace capfleet::binding
