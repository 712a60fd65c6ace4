// A packet socket with a ring that the kernel fills (AF_PACKET, TPACKET_V3; packet(7) and the
// kernel's Documentation/networking/packet_mmap.rst).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "capture/fanout_group.h"
#include "capture/packet_intake.h"
#include "os/result.h"

namespace capfleet {

struct CaptureSocketOptions {
  std::string interfaceName;
  uint64_t ringBytes = 0;  ///< rounded to whole MiB, at least 2
  bool isPromiscuous = true;
  FanoutGroup* fanout = nullptr;  ///< group of the port's sockets; nullptr = only one socket
};

struct SocketCounts {
  uint64_t offeredPackets = 0;  ///< put into the ring or dropped
  uint64_t droppedPackets = 0;  ///< because the ring was full
};

/// Not thread-safe. Fails with kCaptureUnavailable.
class CaptureSocket {
 public:
  /// The gate is closed: no packet comes before openGate().
  static Result<CaptureSocket> open(const CaptureSocketOptions& options);
  CaptureSocket(CaptureSocket&& other) noexcept;
  CaptureSocket& operator=(CaptureSocket&& other) noexcept;
  ~CaptureSocket();

  Status openGate();
  /// No new packets arrive; those in the ring stay.
  void closeGate();

  /// The oldest packet that the kernel has passed on; its bytes are valid until drop() has passed
  /// the last packet of its ring block. The kernel passes on blocks of 1 MiB when they are full or
  /// after 20 to 40 ms. Null = there is none now.
  const RingPacket* front();
  /// Finishes with the front packet. REQUIRES: front() returned one.
  void drop();

  /// Counts since the last call.
  SocketCounts takeCounts();
  /// Whether an error was reported since the last call, for instance because the interface went
  /// down. Until it is taken, waiting for the socket returns at once.
  bool takeError();
  /// Whether the interface that it was opened for no longer exists (one that is down does).
  bool isGone() const;
  bool hasNicTimestamps() const { return hasNicTimestamps_; }
  int descriptor() const { return descriptor_; }

 private:
  CaptureSocket(int descriptor, std::string interfaceName)
      : descriptor_(descriptor), interfaceName_(std::move(interfaceName)) {}
  Error failure(const std::string& action, int errorNumber) const;
  Status setUp(const CaptureSocketOptions& options);
  Status findInterface();
  Status makeRing(uint64_t bytes);
  Status bindTo(const CaptureSocketOptions& options);
  void enterBlock();
  void loadPacket();

  int descriptor_;
  std::string interfaceName_;
  int interfaceIndex_ = 0;
  bool isLoopback_ = false;
  bool hasNicTimestamps_ = false;
  uint8_t* ring_ = nullptr;
  uint32_t ringBlocks_ = 0;
  uint32_t block_ = 0;        ///< the next one to be handed over, or being read
  uint32_t packetsLeft_ = 0;  ///< left in the block being read, including `packet_`; 0 = no block
  const uint8_t* header_ = nullptr;  ///< header of `packet_`
  RingPacket packet_;
};

}  // namespace capfleet
