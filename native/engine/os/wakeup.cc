#include "os/wakeup.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cassert>

namespace capfleet {

Wakeup::Wakeup() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  assert(descriptor_ >= 0);
}

Wakeup::~Wakeup() { ::close(descriptor_); }

void Wakeup::signal() {
  // Only fails if 2^64 - 2 signals are pending already.
  static_cast<void>(::eventfd_write(descriptor_, 1));
}

void Wakeup::wait(int timeoutMs, int socket) {
  pollfd waited[2] = {{descriptor_, POLLIN, 0}, {socket, POLLIN | POLLERR, 0}};
  if (::poll(waited, 2, timeoutMs) <= 0 || waited[0].revents == 0) return;
  eventfd_t count = 0;
  static_cast<void>(::eventfd_read(descriptor_, &count));
}

}  // namespace capfleet
