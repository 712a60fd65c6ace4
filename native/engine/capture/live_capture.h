// A capture of network interfaces into segments of the store: capture threads, memory, writer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/capture_thread.h"
#include "capture/capture_writer.h"
#include "capture/port_watch.h"
#include "filter/bpf_program.h"

namespace capfleet {

struct LivePort {
  uint32_t port = 0;  ///< capN
  std::string interfaceName;
  uint32_t threads = 1;
  uint64_t ringBytes = 0;  ///< ring size of each thread, in the kernel
  uint32_t snaplen = kMaxCapturedLength;
  bool isPromiscuous = true;
  std::optional<BpfProgram> filter;  ///< for Ethernet, with VLAN tags
};

struct LiveCaptureOptions {
  std::vector<LivePort> ports;
  uint64_t segmentBytes = uint64_t{1} << 30;
  int64_t syncIntervalNs = 1'000'000'000;
  uint64_t queueBytes =
      0;  ///< between the capture threads and the disk; 1 MiB for each thread at least
};

/// Counts since the start() of the newest capture; they stay after its end.
/// seenPackets = stored + filtered + ringDrops + diskDrops + pending, at any time.
struct LivePortCounts {
  uint32_t port = 0;
  uint64_t seenPackets = 0;
  uint64_t storedPackets = 0;  ///< safe on the disk, with their index entry
  uint64_t storedBytes = 0;    ///< size of these packets as PCAP records
  uint64_t seenBytes = 0;      ///< original lengths of what reached this program
  uint64_t filteredPackets = 0;
  uint64_t ringDrops = 0;  ///< the capture thread was too slow for the kernel's ring
  uint64_t diskDrops =
      0;  ///< no memory was free because the disk was too slow, or it failed for good
  uint64_t pendingPackets = 0;
  uint64_t pendingBytes = 0;
  uint64_t fcsErrors = 0;
  int64_t lastPacketNs = 0;  ///< 0 = none
  std::array<uint64_t, kSizeClasses> sizes{};
  bool hasNicTimestamps = false;
  bool isUp = false;
};

struct LiveCounts {
  std::vector<LivePortCounts> ports;
  /// Every packet that arrived when the wall clock showed less is safe. If the clock was set back,
  /// this goes back by the same amount: new packets then have times that have occurred before. Two
  /// opposite steps within one sync interval are not detected. 0 = not known yet.
  int64_t flushedNs = 0;
  uint64_t diskErrors = 0;
  std::string diskMessage;  ///< message of the newest error
};

/// One capture at a time; its methods may be called from any thread, but not two commands (start,
/// roll, stop) at once.
class LiveCapture {
 public:
  using OnEnded = CaptureWriter::OnEnded;

  /// Opens every socket; nothing is captured yet. Fails with kCaptureUnavailable or kBadParameter.
  static Result<std::unique_ptr<LiveCapture>> open(LiveCaptureOptions options);
  ~LiveCapture();

  /// Captures into cap<port>/ of an existing folder. Segment numbers continue after those that
  /// exist and after `lastNumbers`. Every packet that arrives after it has returned is seen.
  void start(const std::string& folder, const LastNumbers& lastNumbers = {});
  /// Packets go to another folder from one block on. Calls back when earlier ones are safe, with
  /// the segments that have ended since start() or the previous roll and were not taken.
  void roll(const std::string& folder, OnEnded onEnded);
  /// Ends the capture. Calls back as roll() does, when everything that arrived before is safe, or
  /// was given up because the disk failed for 5 s.
  void stop(OnEnded onEnded);

  LiveCounts counts() const;
  /// Segments of the running recording that have ended since the last call. The rest is returned at
  /// the recording's end.
  std::vector<RecordedStream> takeFinished() { return writer_->takeFinished(); }

 private:
  explicit LiveCapture(LiveCaptureOptions options);
  Status openThreads();
  void pursue(bool isCapturing);
  LiveCounts countAll() const;

  const LiveCaptureOptions options_;
  std::vector<std::unique_ptr<FanoutGroup>> fanouts_;  ///< fanout group of each port
  BlockQueue queue_;
  std::vector<size_t> portOfThread_;
  // In this order: threads end before the writer, and everything before what it uses.
  std::unique_ptr<CaptureWriter> writer_;
  std::vector<std::unique_ptr<CaptureThread>> threads_;
  std::unique_ptr<PortWatch> watch_;

  uint32_t recording_ = 0;
  mutable std::mutex mutex_;
  LiveCounts before_;  ///< at the start
};

}  // namespace capfleet
