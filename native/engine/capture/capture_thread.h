// A thread that empties one packet socket into blocks, and passes these to the writer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "capture/block_queue.h"
#include "capture/capture_socket.h"
#include "capture/packet_intake.h"
#include "os/inheriting_mutex.h"
#include "os/wakeup.h"

namespace capfleet {

struct CaptureThreadOptions {
  uint32_t thread = 0;  ///< its number among all threads of the capture
  CaptureSocketOptions socket;
  uint32_t snaplen = kMaxCapturedLength;
  std::optional<BpfEvaluator> filter;
  /// How often blocks are ended that are not full.
  int64_t flushIntervalNs = 0;
};

/// Counts since the thread started.
struct ThreadCounts {
  IntakeCounts intake;
  uint64_t ringDrops = 0;  ///< the kernel's ring was full, while this thread was slow
  uint64_t diskDrops = 0;  ///< the kernel's ring was full, while no block was free
  bool hasNicTimestamps = false;
};

/// The thread's target state. Recording numbers ascend. When the number changes, packets go to new
/// blocks, so that no block contains packets of two recordings.
struct CaptureGoal {
  uint32_t recording = 0;
  bool isCapturing = false;
  bool isEnding = false;
};

/// Thread-safe.
class CaptureThread {
 public:
  /// `queue` must outlive it. `socket` is the result of opening `options.socket`; the thread opens
  /// another one if the interface is removed and comes back.
  CaptureThread(CaptureThreadOptions options, CaptureSocket socket, BlockQueue& queue);
  /// Ends the thread; packets that have not been passed on are lost.
  ~CaptureThread();

  /// Returns at once; the goal is reached when awaitGoal() returns. Stopping is complete when every
  /// earlier packet has been passed on; the thread waits while no block is free.
  void pursue(CaptureGoal goal);
  void awaitGoal();

  ThreadCounts counts() const;

 private:
  /// An instant whose packets have all been passed on once this many have left the ring.
  struct Mark {
    Instant instant;
    uint64_t ringPackets;
  };

  void run();
  void reach(CaptureGoal goal);
  void beginCapture();
  void endCapture();
  void discardRing();
  bool consume();
  bool takeFront(const RingPacket& packet);
  void takeBlock();
  void keepTime();
  void setMark();
  void readSocketCounts();
  void handOver(std::optional<Instant> covered);
  void watchInterface();
  void reopenSocket();
  void publish();

  const CaptureThreadOptions options_;
  BlockQueue& queue_;
  Wakeup wakeup_;

  std::optional<CaptureSocket> socket_;  ///< empty while the interface is gone
  PacketIntake intake_;
  std::unique_ptr<CaptureBlock> block_;
  CaptureGoal reached_;
  bool isStalled_ = false;        ///< no block is free
  uint64_t acceptedPackets_ = 0;  ///< accepted by the kernel into this socket's ring
  uint64_t takenPackets_ = 0;     ///< taken from the ring
  std::optional<Mark> mark_;
  int64_t nextMarkNs_ = 0;  ///< steady
  int64_t nextWatchNs_ = 0;
  ThreadCounts counts_;

  mutable InheritingMutex publishedMutex_;
  ThreadCounts published_;

  InheritingMutex goalMutex_;
  CaptureGoal goal_;
  std::atomic<uint32_t> goalsSet_ = 0;
  std::atomic<uint32_t> goalsReached_ = 0;
  std::thread thread_;
};

}  // namespace capfleet
