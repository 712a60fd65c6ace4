#include "capture/live_capture.h"

#include <algorithm>
#include <utility>

namespace capfleet {

namespace {

constexpr uint64_t kMinQueueBytesPerThread = uint64_t{1} << 20;
/// The disk is several times faster if it is synced in large pieces.
constexpr uint64_t kMaxCommitBytes = uint64_t{64} << 20;

CaptureSocketOptions socketOptions(const LivePort& port, FanoutGroup& fanout) {
  return {port.interfaceName, port.ringBytes, port.isPromiscuous,
          port.threads > 1 ? &fanout : nullptr};
}

void addThread(LivePortCounts& port, const ThreadCounts& thread) {
  const IntakeCounts& intake = thread.intake;
  port.seenPackets += intake.packets + thread.ringDrops + thread.diskDrops;
  port.seenBytes += intake.originalBytes;
  port.filteredPackets += intake.filteredPackets;
  port.ringDrops += thread.ringDrops;
  port.diskDrops += thread.diskDrops;
  port.pendingPackets += intake.packets - intake.filteredPackets;
  port.pendingBytes += intake.recordBytes;
  port.lastPacketNs = std::max(port.lastPacketNs, intake.lastPacketNs);
  port.hasNicTimestamps = thread.hasNicTimestamps;
  for (size_t i = 0; i < kSizeClasses; ++i) port.sizes[i] += intake.sizes[i];
}

/// The class 1024_2047 includes 1024_1518; the threads count only the rest of it.
void joinOverlap(LivePortCounts& port) { port.sizes[7] += port.sizes[6]; }

void addWritten(LivePortCounts& port, const WrittenCounts& written) {
  port.storedPackets = written.packets;
  port.storedBytes = written.bytes;
  port.diskDrops += written.lostPackets;
  port.pendingPackets -= written.packets + written.lostPackets;
  port.pendingBytes -= written.bytes + written.lostBytes;
}

void subtract(LivePortCounts& port, const LivePortCounts& before) {
  if (port.seenPackets == before.seenPackets) port.lastPacketNs = 0;
  port.seenPackets -= before.seenPackets;
  port.storedPackets -= before.storedPackets;
  port.storedBytes -= before.storedBytes;
  port.seenBytes -= before.seenBytes;
  port.filteredPackets -= before.filteredPackets;
  port.ringDrops -= before.ringDrops;
  port.diskDrops -= before.diskDrops;
  // Drivers may reset their counters when the interface is reset.
  port.fcsErrors -= std::min(port.fcsErrors, before.fcsErrors);
  for (size_t i = 0; i < kSizeClasses; ++i) port.sizes[i] -= before.sizes[i];
}

/// How far the wall clock is behind the value expected from the steady clock, if it was set back.
int64_t setBackNs(const Instant& since) {
  const Instant now = Instant::now();
  const int64_t expectedNs = since.wallNs + (now.steadyNs - since.steadyNs);
  return std::max<int64_t>(0, expectedNs - now.wallNs);
}

}  // namespace

LiveCapture::LiveCapture(LiveCaptureOptions options)
    : options_(std::move(options)), queue_(options_.queueBytes) {}

Result<std::unique_ptr<LiveCapture>> LiveCapture::open(LiveCaptureOptions options) {
  uint64_t threads = 0;
  for (const LivePort& port : options.ports) threads += port.threads;
  if (options.queueBytes < std::max<uint64_t>(1, threads) * kMinQueueBytesPerThread) {
    return Error{Code::kBadParameter, "queueBytes must be at least 1 MiB for each capture thread"};
  }
  std::unique_ptr<LiveCapture> capture(new LiveCapture(std::move(options)));
  if (auto status = capture->openThreads(); !status) return status.error();
  return capture;
}

LiveCapture::~LiveCapture() = default;

Status LiveCapture::openThreads() {
  // Every socket is open before the first thread starts.
  std::vector<CaptureSocket> sockets;
  CaptureWriterOptions writer;
  std::vector<std::string> interfaceNames;
  for (const LivePort& port : options_.ports) {
    FanoutGroup& fanout = *fanouts_.emplace_back(std::make_unique<FanoutGroup>());
    for (uint32_t i = 0; i < port.threads; ++i) {
      auto socket = CaptureSocket::open(socketOptions(port, fanout));
      if (!socket) return socket.error();
      sockets.push_back(std::move(*socket));
      portOfThread_.push_back(writer.ports.size());
    }
    writer.ports.push_back({port.port, {kLinkTypeEthernet, kMaxCapturedLength}});
    interfaceNames.push_back(port.interfaceName);
  }
  writer.portOfThread = portOfThread_;
  writer.segmentBytes = options_.segmentBytes;
  // A packet waits for its block, then for the commit, then for the disk: one interval in total.
  writer.commitIntervalNs = options_.syncIntervalNs / 2;
  writer.commitBytes = std::min(kMaxCommitBytes, options_.queueBytes / 4);
  writer_ = std::make_unique<CaptureWriter>(std::move(writer), queue_);

  for (size_t i = 0; i < sockets.size(); ++i) {
    const LivePort& port = options_.ports[portOfThread_[i]];
    CaptureThreadOptions thread;
    thread.thread = static_cast<uint32_t>(i);
    thread.socket = socketOptions(port, *fanouts_[portOfThread_[i]]);
    thread.snaplen = port.snaplen;
    if (port.filter) thread.filter.emplace(*port.filter);
    thread.flushIntervalNs = options_.syncIntervalNs / 4;
    threads_.push_back(
        std::make_unique<CaptureThread>(std::move(thread), std::move(sockets[i]), queue_));
  }
  watch_ = std::make_unique<PortWatch>(std::move(interfaceNames));
  return ok();
}

void LiveCapture::start(const std::string& folder, const LastNumbers& lastNumbers) {
  {
    // Between two captures nothing is counted.
    LiveCounts now = countAll();
    const std::lock_guard lock(mutex_);
    before_ = std::move(now);
  }
  recording_ += 1;
  writer_->begin(recording_, folder, lastNumbers);
  pursue(true);
  for (const auto& thread : threads_) thread->awaitGoal();
}

void LiveCapture::roll(const std::string& folder, OnEnded onEnded) {
  recording_ += 1;
  writer_->begin(recording_, folder);
  pursue(true);
  writer_->end(recording_ - 1, false, std::move(onEnded));
}

void LiveCapture::stop(OnEnded onEnded) {
  recording_ += 1;
  pursue(false);
  writer_->end(recording_ - 1, true, std::move(onEnded));
}

void LiveCapture::pursue(bool isCapturing) {
  for (const auto& thread : threads_) {
    thread->pursue({.recording = recording_, .isCapturing = isCapturing});
  }
}

LiveCounts LiveCapture::counts() const {
  LiveCounts counts = countAll();
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < before_.ports.size(); ++i) subtract(counts.ports[i], before_.ports[i]);
  counts.diskErrors -= before_.diskErrors;
  if (counts.diskErrors == 0) counts.diskMessage.clear();
  return counts;
}

LiveCounts LiveCapture::countAll() const {
  // Read the writer's counts first: each packet that it has written is then already in the threads'
  // counts.
  WriterCounts written = writer_->counts();
  const std::vector<PortState> states = watch_->states();
  LiveCounts counts;
  counts.ports.resize(options_.ports.size());
  for (size_t i = 0; i < threads_.size(); ++i) {
    addThread(counts.ports[portOfThread_[i]], threads_[i]->counts());
  }
  for (size_t i = 0; i < counts.ports.size(); ++i) {
    counts.ports[i].port = options_.ports[i].port;
    counts.ports[i].fcsErrors = states[i].fcsErrors;
    counts.ports[i].isUp = states[i].isUp;
    joinOverlap(counts.ports[i]);
    addWritten(counts.ports[i], written.ports[i]);
  }
  counts.flushedNs = std::max<int64_t>(0, written.flushed.wallNs - setBackNs(written.flushed));
  counts.diskErrors = written.diskErrors;
  counts.diskMessage = std::move(written.diskMessage);
  return counts;
}

}  // namespace capfleet
