// The single thread that writes what all capture threads pass on.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "capture/block_queue.h"
#include "capture/stream_writer.h"

namespace capfleet {

/// The segments of one port created by a recording.
struct RecordedStream {
  uint32_t port = 0;
  PcapFileHeader header;
  std::vector<SegmentSummary> segments;
};

struct WriterPort {
  uint32_t port = 0;
  PcapFileHeader header;
};

/// The highest number that a segment of each port has had; ports without one are omitted.
using LastNumbers = std::map<uint32_t, uint32_t>;

struct CaptureWriterOptions {
  std::vector<WriterPort> ports;
  std::vector<size_t> portOfThread;  ///< index in `ports` of each capture thread
  uint64_t segmentBytes = 0;
  int64_t commitIntervalNs = 0;
  /// Commits at the latest when this many bytes are held.
  uint64_t commitBytes = 0;
};

/// Counts since the writer started.
struct WrittenCounts {
  uint64_t packets = 0;      ///< safe on the disk
  uint64_t bytes = 0;        ///< size of these packets as PCAP records
  uint64_t lostPackets = 0;  ///< given up because the disk failed
  uint64_t lostBytes = 0;
};

struct WriterCounts {
  std::vector<WrittenCounts> ports;
  /// Every packet before this is safe; the minimum over all capture threads.
  Instant flushed;
  uint64_t diskErrors = 0;
  std::string diskMessage;  ///< message of the newest error
};

/// Thread-safe. A failing disk is retried for as long as a recording continues.
class CaptureWriter {
 public:
  using OnEnded = std::function<void(std::vector<RecordedStream>)>;

  CaptureWriter(CaptureWriterOptions options, BlockQueue& queue);
  /// Tries once more to write what it has. The capture threads must have ended.
  ~CaptureWriter();

  /// Starts a recording, whose packets go to cap<port>/ in `folder`. Must be called before any of
  /// its blocks is passed on.
  void begin(uint32_t number, std::string folder, const LastNumbers& lastNumbers = {});
  /// Calls back on the writer's thread, when every capture thread has left the recording and
  /// everything is safe; oldest recording first. With `isLast`, if the disk then fails for 5 s, the
  /// data it has not accepted is lost.
  void end(uint32_t number, bool isLast, OnEnded onEnded);

  WriterCounts counts() const;
  /// Segments of the newest recording that have ended since the last call. Those not taken are
  /// returned at the recording's end.
  std::vector<RecordedStream> takeFinished();

 private:
  struct Recording {
    uint32_t number = 0;
    std::vector<StreamWriter> streams;  ///< one for each port
    OnEnded onEnded;                    ///< set when it shall end
    int64_t giveUpNs = INT64_MAX;       ///< steady
  };

  void run();
  int waitMs() const;
  bool takeWork();
  Recording& recordingOf(uint32_t number);
  bool hasEveryThreadLeft(const Recording& recording) const;
  void work();
  Status forEachStream(Status (StreamWriter::*action)());
  bool isCommitDue() const;
  void settleSafe();
  void giveUpLate();
  void endRecordings();
  void publish();
  void addUntaken(uint32_t number, const WriterPort& port,
                  const std::vector<SegmentSummary>& ended);
  std::vector<RecordedStream> takeUntaken(uint32_t number);

  const CaptureWriterOptions options_;
  BlockQueue& queue_;

  mutable std::mutex mutex_;
  std::vector<std::function<void()>> requests_;  ///< to run on the writer's thread
  WriterCounts published_;
  /// Ended segments of each recording that have not been taken, by its number.
  std::map<uint32_t, std::vector<RecordedStream>> untaken_;
  bool isEnding_ = false;

  // The writer's thread only.
  std::deque<Recording> recordings_;  ///< oldest first
  std::vector<uint32_t> recordingOfThread_;
  std::vector<Instant> covered_;  ///< per thread: time covered by the blocks taken so far
  WriterCounts counts_;
  uint64_t heldBytes_ = 0;
  bool isFailing_ = false;
  bool mustCommit_ = false;
  int64_t nextCommitNs_ = 0;  ///< steady
  int64_t retryNs_ = 0;
  std::thread thread_;
};

}  // namespace capfleet
