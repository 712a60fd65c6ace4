#include "capture/nic_clock.h"

#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "capture/capture_clock.h"

namespace capfleet {

namespace {

/// A clock that is further off has not been set at all, or counts TAI.
constexpr int64_t kMaxOffsetNs = 1'000'000'000;

ifreq requestFor(const std::string& interfaceName, void* data) {
  ifreq request{};
  std::strncpy(request.ifr_name, interfaceName.c_str(), IFNAMSIZ - 1);
  request.ifr_data = static_cast<char*>(data);
  return request;
}

/// The number of the card's clock if it can stamp all packets, else -1.
int stampingClockOf(int socket, const std::string& interfaceName) {
  ethtool_ts_info info{};
  info.cmd = ETHTOOL_GET_TS_INFO;
  ifreq request = requestFor(interfaceName, &info);
  if (::ioctl(socket, SIOCETHTOOL, &request) != 0) return -1;
  constexpr uint32_t kNeeded = SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
  const bool stampsAll = (info.rx_filters & 1u << HWTSTAMP_FILTER_ALL) != 0;
  return (info.so_timestamping & kNeeded) == kNeeded && stampsAll ? info.phc_index : -1;
}

bool showsWallTime(int clockNumber) {
  const std::string path = "/dev/ptp" + std::to_string(clockNumber);
  const int device = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (device < 0) return false;
  // The kernel's clock id for a descriptor: FD_TO_CLOCKID of clock_getres(2).
  const auto clock = static_cast<clockid_t>(~static_cast<unsigned>(device) << 3 | 3u);
  timespec now{};
  const bool isRead = ::clock_gettime(clock, &now) == 0;
  ::close(device);
  const int64_t nicNs = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  return isRead && std::llabs(nicNs - wallNs()) < kMaxOffsetNs;
}

}  // namespace

bool useNicTimestamps(int socket, const std::string& interfaceName) {
  const int clockNumber = stampingClockOf(socket, interfaceName);
  if (clockNumber < 0 || !showsWallTime(clockNumber)) return false;
  hwtstamp_config config{};
  config.rx_filter = HWTSTAMP_FILTER_ALL;
  ifreq request = requestFor(interfaceName, &config);
  if (::ioctl(socket, SIOCSHWTSTAMP, &request) != 0) return false;
  const int source = SOF_TIMESTAMPING_RAW_HARDWARE;
  return ::setsockopt(socket, SOL_PACKET, PACKET_TIMESTAMP, &source, sizeof source) == 0;
}

}  // namespace capfleet
