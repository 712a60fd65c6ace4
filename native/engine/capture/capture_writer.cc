#include "capture/capture_writer.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "os/thread_priority.h"

namespace capfleet {

namespace {

constexpr int64_t kNanosPerMs = 1'000'000;
constexpr int64_t kRetryNs = 200 * kNanosPerMs;
constexpr int64_t kGiveUpNs = 5'000 * kNanosPerMs;
constexpr int kIdleWaitMs = 200;

}  // namespace

CaptureWriter::CaptureWriter(CaptureWriterOptions options, BlockQueue& queue)
    : options_(std::move(options)),
      queue_(queue),
      recordingOfThread_(options_.portOfThread.size(), 0),
      covered_(options_.portOfThread.size()) {
  counts_.ports.resize(options_.ports.size());
  published_ = counts_;
  thread_ = std::thread([this] { run(); });
}

CaptureWriter::~CaptureWriter() {
  {
    const std::lock_guard lock(mutex_);
    isEnding_ = true;
  }
  queue_.wake();
  thread_.join();
}

void CaptureWriter::begin(uint32_t number, std::string folder, const LastNumbers& lastNumbers) {
  Recording recording;
  recording.number = number;
  for (const WriterPort& port : options_.ports) {
    const auto last = lastNumbers.find(port.port);
    recording.streams.emplace_back(
        StreamWriterOptions{folder, port.port, port.header, options_.segmentBytes,
                            last == lastNumbers.end() ? 0 : last->second});
  }
  const auto request = std::make_shared<Recording>(std::move(recording));
  const std::lock_guard lock(mutex_);
  requests_.push_back([this, request] { recordings_.push_back(std::move(*request)); });
}

void CaptureWriter::end(uint32_t number, bool isLast, OnEnded onEnded) {
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back([this, number, isLast, onEnded = std::move(onEnded)] {
      recordingOf(number).onEnded = onEnded;
      // An earlier one is written first, and must not delay the last one either.
      if (!isLast) return;
      for (Recording& recording : recordings_) recording.giveUpNs = steadyNs() + kGiveUpNs;
    });
  }
  queue_.wake();
}

WriterCounts CaptureWriter::counts() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

std::vector<RecordedStream> CaptureWriter::takeFinished() {
  const std::lock_guard lock(mutex_);
  return untaken_.empty() ? std::vector<RecordedStream>{}
                          : std::exchange(untaken_.rbegin()->second, {});
}

void CaptureWriter::run() {
  // An unemptied queue loses packets as surely as a ring does.
  preferThread();
  bool goesOn = true;
  while (goesOn) {
    queue_.wait(waitMs());
    goesOn = takeWork();
    mustCommit_ = mustCommit_ || !goesOn;
    if (!isFailing_ || steadyNs() >= retryNs_ || !goesOn) work();
    giveUpLate();
    publish();
    endRecordings();
  }
  // Nothing is written any more: report what is safe to all waiting callers.
  for (const Recording& recording : recordings_) {
    if (recording.onEnded) recording.onEnded(takeUntaken(recording.number));
  }
}

int CaptureWriter::waitMs() const {
  const int64_t wantedNs = isFailing_ ? retryNs_ : heldBytes_ > 0 ? nextCommitNs_ : INT64_MAX;
  const int64_t waitNs = std::min(wantedNs - steadyNs(), kIdleWaitMs * kNanosPerMs);
  return static_cast<int>(std::max<int64_t>(0, waitNs / kNanosPerMs + 1));
}

/// Collects queued blocks and requests; false when the writer must end.
bool CaptureWriter::takeWork() {
  // In this order: a recording is announced before its blocks.
  std::vector<QueueItem> items = queue_.popAll();
  std::vector<std::function<void()>> requests;
  bool goesOn;
  {
    const std::lock_guard lock(mutex_);
    std::swap(requests, requests_);
    goesOn = !isEnding_;
  }
  for (const auto& request : requests) request();
  for (QueueItem& item : items) {
    if (item.block) {
      heldBytes_ += item.block->entry().bytes;
      Recording& recording = recordingOf(recordingOfThread_[item.thread]);
      recording.streams[options_.portOfThread[item.thread]].add(std::move(item.block));
    }
    recordingOfThread_[item.thread] = item.recording;
    if (item.covered) covered_[item.thread] = *item.covered;
  }
  for (const Recording& recording : recordings_) {
    mustCommit_ = mustCommit_ || (recording.onEnded && hasEveryThreadLeft(recording));
  }
  return goesOn;
}

CaptureWriter::Recording& CaptureWriter::recordingOf(uint32_t number) {
  const auto found = std::find_if(recordings_.begin(), recordings_.end(),
                                  [&](const auto& one) { return one.number == number; });
  assert(found != recordings_.end());
  return *found;
}

bool CaptureWriter::hasEveryThreadLeft(const Recording& recording) const {
  return std::all_of(recordingOfThread_.begin(), recordingOfThread_.end(),
                     [&](uint32_t number) { return number > recording.number; });
}

void CaptureWriter::work() {
  Status status = forEachStream(&StreamWriter::write);
  if (isCommitDue()) {
    // A port whose files cannot be written does not keep the blocks of the others in memory.
    const Status committed = forEachStream(&StreamWriter::commit);
    if (status) status = committed;
    nextCommitNs_ = steadyNs() + options_.commitIntervalNs;
    mustCommit_ = false;
  }
  settleSafe();
  isFailing_ = !status;
  if (status) return;
  counts_.diskErrors += 1;
  counts_.diskMessage = status.error().message;
  retryNs_ = steadyNs() + kRetryNs;
  mustCommit_ = true;
}

/// Returns the first failure; the other streams continue.
Status CaptureWriter::forEachStream(Status (StreamWriter::*action)()) {
  Status first = ok();
  for (Recording& recording : recordings_) {
    for (StreamWriter& stream : recording.streams) {
      Status status = (stream.*action)();
      if (!status && first) first = status;
    }
  }
  return first;
}

bool CaptureWriter::isCommitDue() const {
  if (heldBytes_ == 0) return false;
  return mustCommit_ || heldBytes_ >= options_.commitBytes || steadyNs() >= nextCommitNs_;
}

void CaptureWriter::settleSafe() {
  for (Recording& recording : recordings_) {
    for (size_t i = 0; i < recording.streams.size(); ++i) {
      for (auto& block : recording.streams[i].takeSafe()) {
        counts_.ports[i].packets += block->entry().packets;
        counts_.ports[i].bytes += block->entry().bytes;
        heldBytes_ -= block->entry().bytes;
        queue_.giveBack(std::move(block));
      }
    }
  }
}

void CaptureWriter::giveUpLate() {
  if (!isFailing_) return;
  for (Recording& recording : recordings_) {
    if (steadyNs() < recording.giveUpNs) continue;
    for (size_t i = 0; i < recording.streams.size(); ++i) {
      for (auto& block : recording.streams[i].giveUp()) {
        counts_.ports[i].lostPackets += block->entry().packets;
        counts_.ports[i].lostBytes += block->entry().bytes;
        heldBytes_ -= block->entry().bytes;
        queue_.giveBack(std::move(block));
      }
    }
  }
}

void CaptureWriter::publish() {
  if (heldBytes_ == 0 && !covered_.empty()) {
    counts_.flushed = *std::min_element(
        covered_.begin(), covered_.end(),
        [](const Instant& a, const Instant& b) { return a.steadyNs < b.steadyNs; });
  }
  const std::lock_guard lock(mutex_);
  published_ = counts_;
  for (Recording& recording : recordings_) {
    for (size_t i = 0; i < recording.streams.size(); ++i) {
      const std::vector<SegmentSummary> ended = recording.streams[i].takeFinished();
      if (!ended.empty()) addUntaken(recording.number, options_.ports[i], ended);
    }
  }
}

void CaptureWriter::endRecordings() {
  while (!recordings_.empty()) {
    Recording& recording = recordings_.front();
    if (!recording.onEnded || !hasEveryThreadLeft(recording)) return;
    for (StreamWriter& stream : recording.streams) {
      if (stream.hasHeld()) return;
    }
    for (StreamWriter& stream : recording.streams) {
      // Nothing is held, so nothing is left that could fail.
      [[maybe_unused]] const Status closed = stream.close();
      assert(closed);
    }
    const OnEnded onEnded = std::move(recording.onEnded);
    publish();
    std::vector<RecordedStream> streams = takeUntaken(recording.number);
    recordings_.pop_front();
    onEnded(std::move(streams));
  }
}

/// Called with the lock.
void CaptureWriter::addUntaken(uint32_t number, const WriterPort& port,
                               const std::vector<SegmentSummary>& ended) {
  std::vector<RecordedStream>& streams = untaken_[number];
  auto stream = std::find_if(streams.begin(), streams.end(),
                             [&](const RecordedStream& one) { return one.port == port.port; });
  if (stream == streams.end()) stream = streams.insert(stream, {port.port, port.header, {}});
  stream->segments.insert(stream->segments.end(), ended.begin(), ended.end());
}

/// The remaining ended segments of a recording that ends.
std::vector<RecordedStream> CaptureWriter::takeUntaken(uint32_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = untaken_.find(number);
  if (found == untaken_.end()) return {};
  std::vector<RecordedStream> streams = std::move(found->second);
  untaken_.erase(found);
  return streams;
}

}  // namespace capfleet
