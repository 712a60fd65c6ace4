#include "download/ordered_scan.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace capfleet {

/// A slice between its first step and the taking of its last packets. It either has a task that is
/// posted or running, or it is waiting, or it is done.
struct OrderedScan::ActiveSlice {
  std::shared_ptr<const SlicePlan> plan;
  Slice slice;  ///< from the plan; skipped blocks are removed in the first step
  size_t inputs = 0;
  int64_t endNs = 0;  ///< same as for SliceScan, like maxSpanNs
  std::optional<int64_t> maxSpanNs;
  std::optional<SliceScan> scan;   ///< made by its first step
  PacketBatch batch;               ///< being filled; without a slab between batches
  std::deque<PacketBatch> filled;  ///< not yet taken
  uint64_t passed = 0;             ///< packets of the skipped blocks
  uint64_t excluded = 0;           ///< excluded after the last batch, once done
  bool isWaiting = false;          ///< for a slab
  bool isDone = false;
  std::optional<Error> error;
};

OrderedScan::OrderedScan(std::unique_ptr<ScanContext> context, PlannedSlices planned,
                         OrderedScanOptions options, WorkerPool::Queue queue,
                         std::shared_ptr<BufferPool> slabs, std::function<void()> onChange)
    : context_(std::move(context)),
      options_(options),
      queue_(std::move(queue)),
      pool_(std::move(slabs)),
      onChange_(std::move(onChange)),
      nextSlice_(planned.firstSlice),
      planner_(std::move(planned.rest)),
      needsFinalSlice_(context_->vendorTimes != nullptr) {
  assert(options_.slabs > kReservedSlabs && options_.slicesAtOnce > 0);
  if (planned.first) plans_.push_back(std::move(planned.first));
}

OrderedScan::~OrderedScan() = default;

void OrderedScan::start() {
  const std::lock_guard lock(mutex_);
  startSlices();
}

/// Starts as many slices as may run at once. Called with the lock held.
void OrderedScan::startSlices() {
  while (!context_->isCancelled && findNextSlice()) {
    // Before the first packet is known it is unknown how far to scan: one slice at a time.
    if (options_.maxSpanNs && !limitNs_ && !active_.empty()) break;
    const Slice& slice = plans_.front()->slices[nextSlice_];
    if (isBehindLimit(slice)) {
      endPlanning();
      break;
    }
    if (!hasRoomFor(slice)) break;
    if (!passOver(slice)) start(slice);
    nextSlice_++;
  }
  if (!context_->isCancelled) planAhead();
}

/// Makes `nextSlice_` refer to the first plan. False if no slice is planned that has not begun.
bool OrderedScan::findNextSlice() {
  // In a vendor's time slices run one by one, and the last one may have seen the end.
  if (active_.empty() && context_->vendorTimes && context_->vendorTimes->hasEnded()) endPlanning();
  while (!plans_.empty()) {
    // Nothing in this plan or after it is before the limit.
    if (limitNs_ && plans_.front()->range.beginNs >= *limitNs_) {
      endPlanning();
      break;
    }
    if (nextSlice_ == 0) countRuledOut();
    if (nextSlice_ < plans_.front()->slices.size()) break;
    plans_.pop_front();
    nextSlice_ = 0;
    isRuledOutCounted_ = false;
  }
  if (plans_.empty() && planError_) {
    // Like that of a slice that fails at once, the failure is reported when all earlier ones are
    // done.
    auto failed = std::make_unique<ActiveSlice>();
    failed->error = std::exchange(planError_, std::nullopt);
    failed->isDone = true;
    active_.push_back(std::move(failed));
    needsFinalSlice_ = false;
  }
  if (plans_.empty() && !planner_ && !isPlanning_ && needsFinalSlice_) {
    auto last = std::make_shared<SlicePlan>();
    last->slices.push_back({context_->endNs, context_->endNs, {}, true});
    plans_.push_back(std::move(last));
    needsFinalSlice_ = false;
  }
  return !plans_.empty();
}

/// Counts the segments that were ruled out before the first plan. Called with the lock held.
void OrderedScan::countRuledOut() {
  if (std::exchange(isRuledOutCounted_, true)) return;
  const ScanCounts& counts = plans_.front()->ruledOut;
  counts_ += counts;
  (active_.empty() ? excluded_ : active_.back()->excluded) += counts.packets;
}

void OrderedScan::start(const Slice& slice) {
  auto active = std::make_unique<ActiveSlice>();
  active->plan = plans_.front();
  active->slice = slice;
  active->inputs = slice.inputs.size();
  active->endNs = limitNs_.value_or(std::numeric_limits<int64_t>::max());
  active->maxSpanNs = limitNs_ ? std::nullopt : options_.maxSpanNs;
  active_.push_back(std::move(active));
  post(*active_.back());
}

/// Plans the next window, unless enough slices are planned. Called with the lock held.
void OrderedScan::planAhead() {
  if (!planner_ || isPlanning_) return;
  size_t waiting = 0;
  for (const auto& plan : plans_) waiting += plan->slices.size();
  if (!plans_.empty()) waiting -= nextSlice_;
  if (waiting >= options_.slicesAtOnce) return;
  isPlanning_ = true;
  queue_.post([self = shared_from_this()] { self->planStep(); });
}

/// On a worker thread.
void OrderedScan::planStep() {
  std::unique_ptr<WindowPlanner> planner;
  {
    const std::lock_guard lock(mutex_);
    planner = std::move(planner_);
  }
  std::optional<Result<WindowPlanner::Step>> step;
  if (planner && !context_->isCancelled) step = planner->step();
  {
    const std::lock_guard lock(mutex_);
    const bool isWanted = isPlanning_ && step && !context_->isCancelled;
    isPlanning_ = false;
    if (isWanted && !*step) {
      planError_ = step->error();
    } else if (isWanted) {
      WindowPlanner::Step& found = **step;
      counts_.corruptBlocks += found.corruptBlocks;
      if (found.plan) plans_.push_back(std::move(found.plan));
      if (!found.isFinished) planner_ = std::move(planner);
    }
    startSlices();
  }
  onChange_();
}

/// Drops all slices that have not begun. Called with the lock held.
void OrderedScan::endPlanning() {
  plans_.clear();
  nextSlice_ = 0;
  isRuledOutCounted_ = false;
  planner_.reset();
  planError_.reset();
  isPlanning_ = false;  // what a step finds out now is thrown away
}

/// Whether the slice may run concurrently with the active ones: every open input holds a block.
bool OrderedScan::hasRoomFor(const Slice& slice) const {
  constexpr size_t kManyInputs = 16;
  size_t inputs = slice.inputs.size();
  for (const auto& active : active_) inputs = std::max(inputs, active->inputs);
  size_t most = options_.slicesAtOnce;
  if (inputs > kManyInputs) most = std::min<size_t>(most, 2);
  if (inputs > kMostWholeBlocks) most = 1;
  return active_.size() < most;
}

/// Whether all blocks of the slice are known to be skipped: then it needs no task. Called with the
/// lock held, so nothing may be read for it.
bool OrderedScan::passOver(const Slice& slice) {
  const SlicePlan& plan = *plans_.front();
  if (!context_->passed.passWhole(plan, slice)) return false;
  const ScanCounts passed = context_->passed.leaveOut(plan, slice).passed;
  counts_ += passed;
  (active_.empty() ? excluded_ : active_.back()->excluded) += passed.packets;
  return true;
}

/// Whether this slice, and so all later ones, contain nothing before the limit.
bool OrderedScan::isBehindLimit(const Slice& slice) const {
  if (!limitNs_) return false;
  for (const SliceInput& input : slice.inputs) {
    const BlockEntry& first = plans_.front()->runs[input.run].blocks[input.firstBlock].entry;
    if (std::max(first.minNs, slice.beginNs) < *limitNs_) return false;
  }
  return true;
}

void OrderedScan::post(ActiveSlice& slice) {
  queue_.post([self = shared_from_this(), &slice] { self->run(slice); });
}

/// One step of a slice, on a worker thread.
void OrderedScan::run(ActiveSlice& slice) {
  // Once it waits, another thread may continue the slice: it must not be accessed then.
  if (claimSlab(slice)) {
    ScanCounts counts;
    const Result<ScanStep> step = advance(slice, counts);
    const std::lock_guard lock(mutex_);
    counts_ += counts;
    settle(slice, step);
  }
  onChange_();
}

/// Starts the slice if necessary, and continues it.
Result<ScanStep> OrderedScan::advance(ActiveSlice& slice, ScanCounts& counts) {
  if (!slice.scan) {
    PassedBlocks::Rest rest = context_->passed.leaveOut(*slice.plan, slice.slice);
    slice.slice = std::move(rest.slice);
    counts += rest.passed;
    slice.passed = rest.passed.packets;
    if (slice.slice.inputs.empty() && !slice.slice.isFinal) return ScanStep::kDone;
    slice.scan.emplace(*context_, *slice.plan, slice.slice, slice.endNs, slice.maxSpanNs);
  }
  return slice.scan->fill(slice.batch, counts);
}

/// Gives the slice a slab if it has none. False if it must wait for one or is cancelled.
bool OrderedScan::claimSlab(ActiveSlice& slice) {
  const std::lock_guard lock(mutex_);
  if (slice.batch.slab) return true;
  if (context_->isCancelled) return false;
  slice.isWaiting = !mayTakeSlab(slice);
  if (slice.isWaiting) return false;
  slabsInUse_++;
  slice.batch.slab = pool_->take();
  return true;
}

bool OrderedScan::mayTakeSlab(const ActiveSlice& slice) const {
  const bool isHead = active_.front().get() == &slice;
  return slabsInUse_ + (isHead ? 0 : kReservedSlabs) < options_.slabs;
}

/// Decides what follows a step. Called with the lock held.
void OrderedScan::settle(ActiveSlice& slice, const Result<ScanStep>& step) {
  if (context_->isCancelled) {
    finish(slice);
    return;
  }
  if (slice.batch.packets > 0) noteFirstPacket(slice);
  if (!step) {
    slice.error = step.error();
    deliver(slice);
    finish(slice);
    return;
  }
  const bool isHead = active_.front().get() == &slice;
  // The head's packets could be returned now, if someone is waiting for them.
  if (*step != ScanStep::kPause || isHead) deliver(slice);
  if (*step == ScanStep::kDone) {
    finish(slice);
  } else {
    post(slice);
  }
}

void OrderedScan::noteFirstPacket(const ActiveSlice& slice) {
  if (!options_.maxSpanNs || limitNs_) return;
  const int64_t room = std::numeric_limits<int64_t>::max() - slice.batch.firstNs;
  limitNs_ = slice.batch.firstNs + std::min(*options_.maxSpanNs, room);
  startSlices();
}

/// Makes the packets of the open batch available, if there are any.
void OrderedScan::deliver(ActiveSlice& slice) {
  if (slice.batch.packets == 0) return;
  slice.filled.push_back(std::move(slice.batch));
  slice.batch = {};
}

void OrderedScan::finish(ActiveSlice& slice) {
  if (slice.batch.slab) dropSlab(std::move(slice.batch.slab));
  // Where skipped blocks lie among the packets is ignored: they count after the last one.
  slice.excluded += slice.batch.excluded + slice.passed;
  slice.batch = {};
  slice.isDone = true;
}

std::optional<PacketBatch> OrderedScan::take() {
  const std::lock_guard lock(mutex_);
  while (!active_.empty()) {
    ActiveSlice& head = *active_.front();
    if (!head.filled.empty()) {
      PacketBatch batch = std::move(head.filled.front());
      head.filled.pop_front();
      batch.excluded += std::exchange(excluded_, 0);
      return batch;
    }
    if (!head.isDone || error_) return std::nullopt;
    if (head.error) {
      error_ = std::move(head.error);
      context_->isCancelled = true;
      return std::nullopt;
    }
    excluded_ += head.excluded;
    active_.pop_front();
    startSlices();
    wake();
  }
  return std::nullopt;
}

uint64_t OrderedScan::takeExcluded() {
  const std::lock_guard lock(mutex_);
  return std::exchange(excluded_, 0);
}

void OrderedScan::give(SlabPtr slab) {
  const std::lock_guard lock(mutex_);
  dropSlab(std::move(slab));
}

/// Called with the lock held.
void OrderedScan::dropSlab(SlabPtr slab) {
  pool_->give(std::move(slab));
  slabsInUse_--;
  wake();
}

/// Lets waiting slices try again, the earliest first. Called with the lock held.
void OrderedScan::wake() {
  for (const auto& slice : active_) {
    if (!slice->isWaiting) continue;
    if (!mayTakeSlab(*slice)) return;
    slice->isWaiting = false;
    post(*slice);
  }
}

bool OrderedScan::isFinished() const {
  const std::lock_guard lock(mutex_);
  return error_.has_value() || (active_.empty() && plans_.empty() && !planner_ && !isPlanning_ &&
                                !planError_ && !needsFinalSlice_);
}

std::optional<Error> OrderedScan::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

bool OrderedScan::isStalled() const {
  const std::lock_guard lock(mutex_);
  return !active_.empty() && active_.front()->isWaiting;
}

void OrderedScan::cancel() {
  const std::lock_guard lock(mutex_);
  context_->isCancelled = true;
  for (const auto& slice : active_) {
    for (PacketBatch& batch : slice->filled) {
      pool_->give(std::move(batch.slab));
      slabsInUse_--;
    }
    slice->filled.clear();
  }
}

ScanCounts OrderedScan::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace capfleet
