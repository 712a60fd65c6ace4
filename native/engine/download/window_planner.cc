#include "download/window_planner.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "store/segment_index.h"

namespace capfleet {
namespace {

/// Bytes of indexes, including the overhead of opening each, that one step reads: more would delay
/// other users of the thread.
constexpr uint64_t kStepBytes = uint64_t{512} << 10;
constexpr uint64_t kOpenBytes = uint64_t{8} << 10;

/// A window in which this many segments begin may end, however small they are, if few others extend
/// across its end: their blocks there are read for both windows.
constexpr size_t kSmallSegments = 64;
constexpr size_t kFewRunning = kSmallSegments / 16;

/// Like slices, windows grow with the number of concurrent segments, for the same reason.
constexpr uint64_t kMostGrowth = 256;

/// How many bytes the segments of a window hold up to an instant, assuming they are filled evenly.
class Filling {
 public:
  explicit Filling(int64_t beginNs) : atNs_(beginNs) {}

  void advanceTo(int64_t ns) {
    while (!running_.empty() && running_.top().maxNs < ns) {
      const Running ended = running_.top();
      running_.pop();
      addUntil(ended.maxNs + 1);
      bytesPerNs_ -= ended.bytesPerNs;
    }
    addUntil(ns);
  }
  void begin(const SegmentEntry& entry) {
    const double spanNs = static_cast<double>(entry.maxNs) - static_cast<double>(entry.minNs) + 1;
    const double bytesPerNs = static_cast<double>(entry.bytes) / spanNs;
    running_.push({entry.maxNs, bytesPerNs});
    bytesPerNs_ += bytesPerNs;
  }
  double bytes() const { return bytes_; }
  size_t running() const { return running_.size(); }

 private:
  struct Running {
    int64_t maxNs;
    double bytesPerNs;
    bool operator>(const Running& other) const { return maxNs > other.maxNs; }
  };
  void addUntil(int64_t ns) {
    bytes_ += bytesPerNs_ * static_cast<double>(ns - atNs_);
    atNs_ = ns;
  }

  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
  double bytesPerNs_ = 0;
  double bytes_ = 0;
  int64_t atNs_;
};

/// The number of blocks of a segment whose index is not even known.
uint64_t blocksOf(const SegmentEntry& entry) {
  return std::max<uint64_t>(1, (entry.bytes + kBlockTargetBytes - 1) / kBlockTargetBytes);
}

/// Whether a finished segment has a different index than its log entry says. A segment that has
/// just been removed looks like a lost one.
bool isSuspect(const SegmentEntry& entry, const Result<std::optional<SegmentIndex>>& found) {
  if (entry.isGrowing()) return false;
  if (!found)
    return found.error().code == Code::kStoreCorrupt || found.error().code == Code::kAgedOut;
  if (!*found) return false;
  const SegmentIndex& index = **found;
  const bool isMarked = (entry.flags & kSegmentDamaged) != 0;
  return index.rebuiltBlocks > 0 || index.lastEntryLeftOut ||
         (index.damagedBlocks > 0 && !isMarked);
}

}  // namespace

WindowPlanner::WindowPlanner(std::vector<StreamSegments> streams, WindowOptions options)
    : options_(std::move(options)),
      // Stored timestamps are not negative.
      readFromNs_(options_.beginNs - std::min(options_.beginNs, options_.lookBackNs.value_or(0))),
      streams_(std::move(streams)),
      windowBeginNs_(readFromNs_),
      ruledOut_(options_.conditions, options_.beginNs, options_.endNs) {
  for (uint32_t stream = 0; stream < streams_.size(); stream++) {
    const std::vector<SegmentEntry>& segments = streams_[stream].segments;
    for (uint32_t number = 0; number < segments.size(); number++) {
      if (segments[number].isGrowing()) growing_.push_back({stream, number});
    }
  }
}

Result<WindowPlanner::Step> WindowPlanner::step() {
  if (!growing_.empty()) return readGrowing();
  if (!order_) order();
  Step step;
  uint64_t readBytes = 0;
  if (!windowEndNs_) {
    passRuledOut(readBytes);
    if (readBytes < kStepBytes && !chooseWindow()) step.isFinished = true;
  }
  while (windowEndNs_ && next_ < windowEnd_ && readBytes < kStepBytes) {
    if (Status status = openNext(step, readBytes); !status) return status.error();
  }
  if (windowEndNs_ && next_ == windowEnd_) {
    step.plan = planWindow();
    step.isFinished = open_.empty() && next_ == order_->size();
  }
  if (!step.plan && ruledOutCounts_.ruledOutSegments > 0) {
    SlicePlan plan;
    plan.range = {windowBeginNs_, windowBeginNs_, windowBeginNs_ != readFromNs_};
    plan.ruledOut = std::exchange(ruledOutCounts_, {});
    step.plan = std::make_shared<const SlicePlan>(std::move(plan));
  }
  return step;
}

/// Reads the index of a segment that is being written, which may hold more than the log says.
Result<WindowPlanner::Step> WindowPlanner::readGrowing() {
  const Place place = growing_.back();
  growing_.pop_back();
  Step step;
  Result<std::shared_ptr<IndexedSegment>> read = readSegment(place, step);
  if (!read) return read.error();
  SegmentEntry& entry = entryAt(place);
  entry.minNs = INT64_MAX;
  entry.maxNs = INT64_MIN;
  if (*read == nullptr) return step;
  for (const BlockEntry& block : (*read)->index.blocks) {
    entry.minNs = std::min(entry.minNs, block.minNs);
    entry.maxNs = std::max(entry.maxNs, block.maxNs);
  }
  entry.bytes = (*read)->index.endOffset;
  grown_.push_back({place, std::move(*read), entry.maxNs});
  return step;
}

/// Finds the segments to read, by smallest timestamp.
void WindowPlanner::order() {
  std::vector<Place>& order = order_.emplace();
  if (options_.beginNs >= options_.endNs) return;
  for (uint32_t stream = 0; stream < streams_.size(); stream++) {
    const std::vector<SegmentEntry>& segments = streams_[stream].segments;
    const auto reachesInto = [&](const SegmentEntry& entry, int64_t beginNs) {
      return entry.maxNs >= beginNs && entry.minNs < options_.endNs;
    };
    // The clock of a stream without a packet in the range is not needed.
    if (std::none_of(segments.begin(), segments.end(), [&](const SegmentEntry& entry) {
          return reachesInto(entry, options_.beginNs);
        })) {
      continue;
    }
    for (uint32_t number = 0; number < segments.size(); number++) {
      if (reachesInto(segments[number], readFromNs_)) order.push_back({stream, number});
    }
  }
  const auto isEarlier = [&](Place a, Place b) { return entryAt(a).minNs < entryAt(b).minNs; };
  if (!std::is_sorted(order.begin(), order.end(), isEarlier)) {
    std::stable_sort(order.begin(), order.end(), isEarlier);
  }
}

/// Passes over the segments before the next window that are ruled out.
void WindowPlanner::passRuledOut(uint64_t& readBytes) {
  while (next_ < order_->size() && readBytes < kStepBytes &&
         isRuledOut((*order_)[next_], readBytes)) {
    next_++;
  }
}

bool WindowPlanner::isRuledOut(Place place, uint64_t& readBytes) {
  const auto counts = ruledOut_.countsOf(streams_[place.stream], place.stream, entryAt(place));
  if (const uint64_t bytes = ruledOut_.takeReadBytes(); bytes > 0) readBytes += kOpenBytes + bytes;
  if (!counts) return false;
  ruledOutCounts_ += *counts;
  return true;
}

/// Decides where the next window ends: where a segment begins, so that successive segments have no
/// block in two windows. False if nothing is left.
bool WindowPlanner::chooseWindow() {
  if (open_.empty() && next_ == order_->size()) return false;
  Filling filling(windowBeginNs_);
  for (const OpenSegment& open : open_) filling.begin(entryAt(open.place));
  windowEndNs_ = options_.endNs;
  for (windowEnd_ = next_; windowEnd_ < order_->size(); windowEnd_++) {
    const SegmentEntry& entry = entryAt((*order_)[windowEnd_]);
    const int64_t startNs = std::max(entry.minNs, windowBeginNs_);
    filling.advanceTo(startNs);
    const uint64_t growth = std::clamp<uint64_t>((filling.running() + 1) / 2, 1, kMostGrowth);
    const bool isFull =
        filling.bytes() >= static_cast<double>(options_.windowBytes) * static_cast<double>(growth);
    const bool isLong = windowEnd_ - next_ >= kSmallSegments && filling.running() <= kFewRunning;
    if (startNs > windowBeginNs_ && (isFull || isLong)) {
      windowEndNs_ = startNs;
      break;
    }
    filling.begin(entry);
  }
  return true;
}

/// Opens the next segment of the window.
Status WindowPlanner::openNext(Step& step, uint64_t& readBytes) {
  const Place place = (*order_)[next_++];
  if (entryAt(place).isGrowing()) {
    const auto found = std::find_if(grown_.begin(), grown_.end(), [&](const OpenSegment& grown) {
      return !(grown.place < place) && !(place < grown.place);
    });
    open_.push_back(std::move(*found));
    grown_.erase(found);
    return ok();
  }
  if (isRuledOut(place, readBytes)) return ok();
  Result<std::shared_ptr<IndexedSegment>> read = readSegment(place, step);
  if (!read) return read.error();
  readBytes += kOpenBytes;
  if (*read == nullptr || (*read)->index.blocks.empty()) return ok();
  const std::vector<BlockEntry>& blocks = (*read)->index.blocks;
  readBytes += blocks.size() * kIndexEntryBytes;
  if (Status status = checkTimes(**read); !status) return status;
  int64_t maxNs = entryAt(place).maxNs;
  for (const BlockEntry& block : blocks) maxNs = std::max(maxNs, block.maxNs);
  open_.push_back({place, std::move(*read), maxNs});
  return ok();
}

/// Null if the segment is lost: then all its blocks are counted.
Result<std::shared_ptr<IndexedSegment>> WindowPlanner::readSegment(Place place, Step& step) {
  const SegmentEntry& entry = entryAt(place);
  std::string path = streams_[place.stream].pathOf(entry);
  auto found = readIndexOf(streams_[place.stream], entry);
  if (isSuspect(entry, found) && options_.checkedBlocks) {
    options_.checkedBlocks->suspects().note(path);
  }
  if (!found && found.error().code != Code::kStoreCorrupt) return found.error();
  if (!found || !*found) {
    step.corruptBlocks += blocksOf(entry);
    return std::shared_ptr<IndexedSegment>{};
  }
  SegmentIndex& index = **found;
  // The index of a finished segment lost an entry, and with it its block.
  if (index.lastEntryLeftOut && !entry.isGrowing()) step.corruptBlocks++;
  auto checks = options_.checkedBlocks ? options_.checkedBlocks->of(path, index)
                                       : std::make_shared<SegmentChecks>();
  return std::make_shared<IndexedSegment>(std::move(path), std::move(index), place.stream,
                                          std::move(checks));
}

/// Packets before the window would be too late: earlier windows should have included them.
Status WindowPlanner::checkTimes(const IndexedSegment& segment) {
  if (windowBeginNs_ == readFromNs_) return ok();
  for (const BlockEntry& block : segment.index.blocks) {
    if (block.minNs >= windowBeginNs_ || block.isDamaged()) continue;
    return Error{Code::kStoreCorrupt,
                 segment.path + ".idx: has packets from before the time in the capture's log"};
  }
  return ok();
}

/// Null if no block overlaps the window.
std::shared_ptr<const SlicePlan> WindowPlanner::planWindow() {
  std::sort(open_.begin(), open_.end(),
            [](const OpenSegment& a, const OpenSegment& b) { return a.place < b.place; });
  std::vector<IndexedStream> streams;
  for (size_t i = 0; i < open_.size(); i++) {
    if (i == 0 || open_[i].place.stream != open_[i - 1].place.stream) streams.emplace_back();
    streams.back().push_back(open_[i].segment);
  }
  const PlanRange range{windowBeginNs_, *windowEndNs_, windowBeginNs_ != readFromNs_};
  SlicePlan plan = options_.lookBackNs ? planOneSlice(streams, range)
                                       : planSlices(streams, range, options_.sliceBytes);
  windowBeginNs_ = range.endNs;
  windowEndNs_.reset();
  const bool isLast = windowBeginNs_ >= options_.endNs;
  std::erase_if(open_,
                [&](const OpenSegment& open) { return isLast || open.maxNs < windowBeginNs_; });
  if (plan.slices.empty()) return nullptr;
  plan.ruledOut = std::exchange(ruledOutCounts_, {});
  return std::make_shared<const SlicePlan>(std::move(plan));
}

}  // namespace capfleet
