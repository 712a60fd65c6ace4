#include "capture/port_watch.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <utility>

namespace capfleet {

namespace {

constexpr int kIntervalMs = 250;

bool isRunning(int socket, const std::string& interfaceName) {
  ifreq request{};
  std::strncpy(request.ifr_name, interfaceName.c_str(), IFNAMSIZ - 1);
  if (::ioctl(socket, SIOCGIFFLAGS, &request) != 0) return false;
  constexpr int kNeeded = IFF_UP | IFF_RUNNING;
  return (request.ifr_flags & kNeeded) == kNeeded;
}

uint64_t readFcsErrors(const std::string& interfaceName) {
  std::ifstream in("/sys/class/net/" + interfaceName + "/statistics/rx_crc_errors");
  uint64_t errors = 0;
  in >> errors;
  return errors;
}

std::vector<PortState> readStates(const std::vector<std::string>& interfaceNames) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  std::vector<PortState> states;
  for (const std::string& name : interfaceNames) {
    states.push_back({isRunning(socket, name), readFcsErrors(name)});
  }
  if (socket >= 0) ::close(socket);
  return states;
}

}  // namespace

PortWatch::PortWatch(std::vector<std::string> interfaceNames)
    : interfaceNames_(std::move(interfaceNames)), states_(readStates(interfaceNames_)) {
  thread_ = std::thread([this] { run(); });
}

PortWatch::~PortWatch() {
  {
    const std::lock_guard lock(mutex_);
    isEnding_ = true;
  }
  wakeup_.signal();
  thread_.join();
}

std::vector<PortState> PortWatch::states() const {
  const std::lock_guard lock(mutex_);
  return states_;
}

void PortWatch::run() {
  while (true) {
    wakeup_.wait(kIntervalMs);
    std::vector<PortState> states = readStates(interfaceNames_);
    const std::lock_guard lock(mutex_);
    if (isEnding_) return;
    states_ = std::move(states);
  }
}

}  // namespace capfleet
