// A mutex for threads of different priority.
#pragma once

#include <pthread.h>

#include <cassert>

namespace capfleet {

/// Its holder runs at the priority of the threads waiting for it, so that a capture thread is never
/// delayed by a thread that the scheduler keeps from running. For std::lock_guard.
class InheritingMutex {
 public:
  InheritingMutex() {
    pthread_mutexattr_t attributes;
    [[maybe_unused]] int failed = pthread_mutexattr_init(&attributes);
    failed |= pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    failed |= pthread_mutex_init(&mutex_, &attributes);
    assert(failed == 0);
    pthread_mutexattr_destroy(&attributes);
  }
  ~InheritingMutex() { pthread_mutex_destroy(&mutex_); }
  InheritingMutex(const InheritingMutex&) = delete;
  InheritingMutex& operator=(const InheritingMutex&) = delete;

  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_;
};

}  // namespace capfleet
