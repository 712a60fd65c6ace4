#include "capture/capture_thread.h"

#include <utility>

#include "os/thread_priority.h"

namespace capfleet {

namespace {

/// The kernel may pass on a packet this long after it was stamped.
constexpr int64_t kStampLagNs = 20'000'000;
/// Packets and goals wake the idle thread; its clock does not.
constexpr int kIdleWaitMs = 50;
constexpr int kStallWaitMs = 2;
/// Packets that are consumed before commands and clocks are checked.
constexpr int kPacketsPerTurn = 4096;
constexpr int64_t kWatchIntervalNs = 200'000'000;
/// The kernel passes on a block of its ring after 40 ms; if not by then, it will not.
constexpr int64_t kDrainLimitNs = 1'000'000'000;

}  // namespace

CaptureThread::CaptureThread(CaptureThreadOptions options, CaptureSocket socket, BlockQueue& queue)
    : options_(std::move(options)),
      queue_(queue),
      socket_(std::move(socket)),
      intake_(options_.snaplen, options_.filter) {
  counts_.hasNicTimestamps = socket_->hasNicTimestamps();
  publish();
  thread_ = std::thread([this] { run(); });
}

CaptureThread::~CaptureThread() {
  pursue({.isEnding = true});
  thread_.join();
}

void CaptureThread::pursue(CaptureGoal goal) {
  {
    const std::lock_guard lock(goalMutex_);
    goal_ = goal;
    goalsSet_ += 1;
  }
  wakeup_.signal();
}

void CaptureThread::awaitGoal() {
  const uint32_t wanted = goalsSet_;
  for (uint32_t seen = goalsReached_; static_cast<int32_t>(seen - wanted) < 0;
       seen = goalsReached_) {
    goalsReached_.wait(seen);
  }
}

ThreadCounts CaptureThread::counts() const {
  const std::lock_guard lock(publishedMutex_);
  return published_;
}

void CaptureThread::run() {
  raiseThreadPriority();
  while (!reached_.isEnding) {
    if (goalsReached_ != goalsSet_) {
      CaptureGoal goal;
      uint32_t number;
      {
        const std::lock_guard lock(goalMutex_);
        goal = goal_;
        number = goalsSet_;
      }
      reach(goal);
      publish();
      goalsReached_ = number;
      goalsReached_.notify_all();
      continue;
    }
    watchInterface();
    const bool hasMore = reached_.isCapturing && consume();
    keepTime();
    publish();
    if (isStalled_) {
      wakeup_.wait(kStallWaitMs);
    } else if (!hasMore) {
      wakeup_.wait(kIdleWaitMs, socket_ ? socket_->descriptor() : -1);
    }
  }
}

void CaptureThread::reach(CaptureGoal goal) {
  if (goal.isEnding) {
    if (socket_) socket_->closeGate();
  } else if (goal.isCapturing && !reached_.isCapturing) {
    beginCapture();
  } else if (!goal.isCapturing && reached_.isCapturing) {
    endCapture();
  }
  const bool isSame = goal.recording == reached_.recording;
  reached_ = goal;
  // The block still belongs to the previous recording.
  if (!isSame && !goal.isEnding) handOver(std::nullopt);
}

void CaptureThread::beginCapture() {
  mark_.reset();
  nextMarkNs_ = steadyNs() + options_.flushIntervalNs;
  if (!socket_) return;
  discardRing();
  if (!socket_->openGate()) socket_.reset();
}

/// Packets that arrive between closing the gate and counting belong to no recording.
void CaptureThread::discardRing() {
  const SocketCounts counts = socket_->takeCounts();
  acceptedPackets_ += counts.offeredPackets - counts.droppedPackets;
  const int64_t limitNs = steadyNs() + kDrainLimitNs;
  while (takenPackets_ != acceptedPackets_ && steadyNs() < limitNs) {
    if (socket_->front() == nullptr) {
      wakeup_.wait(kStallWaitMs, socket_->descriptor());
      continue;
    }
    socket_->drop();
    takenPackets_ += 1;
  }
}

void CaptureThread::endCapture() {
  if (socket_) socket_->closeGate();
  setMark();
  int64_t limitNs = steadyNs() + kDrainLimitNs;
  while (socket_ && takenPackets_ != acceptedPackets_ && steadyNs() < limitNs) {
    const uint64_t takenBefore = takenPackets_;
    consume();
    publish();
    if (takenPackets_ != takenBefore || isStalled_) limitNs = steadyNs() + kDrainLimitNs;
    if (takenPackets_ == takenBefore) wakeup_.wait(kStallWaitMs);
  }
  readSocketCounts();
  handOver(mark_->instant);
  mark_.reset();
}

/// Moves packets from the ring to blocks; false if none is left, or no block is free.
bool CaptureThread::consume() {
  if (!socket_) return false;
  for (int i = 0; i < kPacketsPerTurn; ++i) {
    const RingPacket* packet = socket_->front();
    if (packet == nullptr) return false;
    if (!takeFront(*packet)) return false;
    socket_->drop();
    takenPackets_ += 1;
  }
  return true;
}

bool CaptureThread::takeFront(const RingPacket& packet) {
  while (true) {
    if (block_ && intake_.take(packet, *block_)) return true;
    if (block_) handOver(std::nullopt);
    takeBlock();
    if (!block_) return false;
  }
}

/// While no block is free, packets wait in the ring, so that its memory is used too.
void CaptureThread::takeBlock() {
  block_ = queue_.takeBlock();
  if (isStalled_ == !block_) return;
  // Drops before this are caused by a lack of CPU time, those while stalled by a lack of memory.
  readSocketCounts();
  isStalled_ = !block_;
}

/// Ends the block and reports up to when packets have been passed on, every flushInterval. The
/// kernel's packet count at an instant shows when all packets before it have arrived, on a busy and
/// on an idle wire.
void CaptureThread::keepTime() {
  if (!reached_.isCapturing) return;
  if (steadyNs() >= nextMarkNs_) {
    nextMarkNs_ = steadyNs() + options_.flushIntervalNs;
    // While a mark waits for the ring to be emptied, drops must still be counted.
    if (mark_) {
      readSocketCounts();
    } else {
      setMark();
    }
  }
  if (!mark_ || takenPackets_ < mark_->ringPackets) return;
  handOver(mark_->instant);
  mark_.reset();
}

void CaptureThread::setMark() {
  Instant instant = Instant::now();
  instant.wallNs -= kStampLagNs;
  readSocketCounts();
  mark_ = {instant, acceptedPackets_};
}

void CaptureThread::readSocketCounts() {
  if (!socket_) return;
  const SocketCounts counts = socket_->takeCounts();
  acceptedPackets_ += counts.offeredPackets - counts.droppedPackets;
  (isStalled_ ? counts_.diskDrops : counts_.ringDrops) += counts.droppedPackets;
}

void CaptureThread::handOver(std::optional<Instant> covered) {
  // The writer must not have written packets that are not counted yet.
  publish();
  if (block_ && block_->isEmpty()) queue_.giveBack(std::move(block_));
  queue_.push({options_.thread, reached_.recording, std::move(block_), covered});
}

/// An interface that is down comes back on its own; one that was removed needs a new socket.
void CaptureThread::watchInterface() {
  if (socket_ && socket_->takeError()) nextWatchNs_ = 0;
  if (steadyNs() < nextWatchNs_) return;
  nextWatchNs_ = steadyNs() + kWatchIntervalNs;
  if (!socket_) return reopenSocket();
  if (!socket_->isGone()) return;
  readSocketCounts();
  // Consume the rest of its ring first.
  if (takenPackets_ == acceptedPackets_ || !reached_.isCapturing) socket_.reset();
}

void CaptureThread::reopenSocket() {
  auto opened = CaptureSocket::open(options_.socket);
  if (!opened) return;
  if (reached_.isCapturing && !opened->openGate()) return;
  socket_ = std::move(*opened);
  acceptedPackets_ = takenPackets_ = 0;
  if (mark_) mark_->ringPackets = 0;
  counts_.hasNicTimestamps = socket_->hasNicTimestamps();
}

void CaptureThread::publish() {
  counts_.intake = intake_.counts();
  const std::lock_guard lock(publishedMutex_);
  published_ = counts_;
}

}  // namespace capfleet
