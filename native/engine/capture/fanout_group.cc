#include "capture/fanout_group.h"

#include <linux/if_packet.h>
#include <sys/socket.h>

#include <cerrno>

namespace capfleet {

namespace {

/// By flow, after reassembling fragments; a socket whose ring is full passes packets to the others.
constexpr uint32_t kMode =
    PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_DEFRAG | PACKET_FANOUT_FLAG_ROLLOVER;

/// PACKET_FANOUT_FLAG_IGNORE_OUTGOING of Linux 5.17, missing in Debian 12's header.
constexpr uint32_t kIgnoreOutgoing = 0x4000;

int setFanout(int socket, uint16_t id, uint32_t mode) {
  const uint32_t value = id | mode << 16;
  if (::setsockopt(socket, SOL_PACKET, PACKET_FANOUT, &value, sizeof value) != 0) return errno;
  return 0;
}

}  // namespace

int FanoutGroup::join(int socket, int interfaceIndex, bool ignoresOutgoing) {
  const std::lock_guard lock(mutex_);
  const uint32_t mode = kMode | (ignoresOutgoing ? kIgnoreOutgoing : 0);
  if (id_ && interfaceIndex_ == interfaceIndex) return setFanout(socket, *id_, mode);
  // The kernel chooses a number that no other program uses.
  if (const int failed = setFanout(socket, 0, mode | PACKET_FANOUT_FLAG_UNIQUEID)) return failed;
  uint32_t value = 0;
  socklen_t size = sizeof value;
  if (::getsockopt(socket, SOL_PACKET, PACKET_FANOUT, &value, &size) != 0) return errno;
  id_ = static_cast<uint16_t>(value);
  interfaceIndex_ = interfaceIndex;
  return 0;
}

}  // namespace capfleet
