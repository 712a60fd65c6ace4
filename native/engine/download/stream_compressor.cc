#include "download/stream_compressor.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace capfleet {

std::shared_ptr<StreamCompressor> StreamCompressor::create(Compression compression,
                                                           WorkerPool& workers,
                                                           std::shared_ptr<BufferPool> slabs,
                                                           bool hasSmallGroups) {
  const GroupLimits limits =
      hasSmallGroups ? kSmallGroups : usualGroups(compression, workers.tasksAtOnce());
  const std::shared_ptr<StreamCompressor> self(new StreamCompressor(limits, slabs));
  // Weak: the stage calls this object, which owns it.
  const std::weak_ptr<StreamCompressor> weak = self;
  const auto giveRaw = [weak, pool = std::move(slabs)](SlabPtr raw) {
    pool->give(std::move(raw));
    if (const auto owner = weak.lock()) owner->rawSlabs_--;
  };
  const auto onChange = [weak] {
    if (const auto owner = weak.lock()) owner->answerPending();
  };
  self->stage_ =
      std::make_shared<CompressionStage>(compression, limits, workers.makeQueue(), self->pool_,
                                         CompressionStage::Callbacks{giveRaw, onChange});
  return self;
}

StreamCompressor::StreamCompressor(GroupLimits limits, std::shared_ptr<BufferPool> slabs)
    : limits_(limits), pool_(std::move(slabs)) {}

StreamCompressor::~StreamCompressor() { close(); }

size_t StreamCompressor::write(std::span<const uint8_t> bytes) {
  assert(!isEnded_ && !isClosed_);
  size_t written = 0;
  while (written < bytes.size() && hasRoom()) {
    PacketBatch& last = group_.back();
    const size_t count = std::min(last.room(), bytes.size() - written);
    std::memcpy(last.slab->bytes.get() + last.slab->size, bytes.data() + written, count);
    last.slab->size += count;
    written += count;
    if (group_.size() == limits_.slabs && last.room() == 0) submit();
  }
  return written;
}

/// Whether the group's last slab, possibly a new one, has room for a byte.
bool StreamCompressor::hasRoom() {
  if (!group_.empty() && group_.back().room() > 0) return true;
  // One group is filled while others are compressed.
  if (rawSlabs_ >= (limits_.atOnce + 1) * limits_.slabs) return false;
  rawSlabs_++;
  group_.push_back({.slab = pool_->take()});
  return true;
}

void StreamCompressor::submit() {
  hasSubmitted_ = true;
  stage_->submit(std::exchange(group_, {}));
}

void StreamCompressor::flush() {
  if (!group_.empty() && stage_->isIdle()) submit();
}

void StreamCompressor::end() {
  if (group_.empty() && !hasSubmitted_) hasRoom();
  if (!group_.empty()) submit();
  {
    const std::lock_guard lock(mutex_);
    isEnded_ = true;
  }
  answerPending();
}

void StreamCompressor::next(Callback done) {
  std::optional<Answer> answer;
  {
    const std::lock_guard lock(mutex_);
    assert(!pending_);
    if (valid_.size() == kHeldParts) {
      stage_->give(std::move(valid_.front()));
      valid_.pop_front();
    }
    answer = findAnswer();
    if (!answer) pending_ = std::move(done);
  }
  if (answer) done(std::move(*answer));
}

void StreamCompressor::answerPending() {
  Callback done;
  std::optional<Answer> answer;
  {
    const std::lock_guard lock(mutex_);
    if (!pending_) return;
    answer = findAnswer();
    if (!answer) return;
    done = std::exchange(pending_, nullptr);
  }
  done(std::move(*answer));
}

/// The current answer for next(), if any. Called with the lock held.
std::optional<StreamCompressor::Answer> StreamCompressor::findAnswer() {
  if (isClosed_) return Error{Code::kCancelled, "the compressor was closed"};
  if (std::optional<BodyPart> part = stage_->take()) {
    valid_.push_back(part->slab);
    return std::move(part->slab);
  }
  if (std::optional<Error> error = stage_->error()) return std::move(*error);
  if (isEnded_ && stage_->isIdle()) return SlabPtr{};
  return std::nullopt;
}

void StreamCompressor::close() {
  Callback done;
  {
    const std::lock_guard lock(mutex_);
    if (isClosed_) return;
    isClosed_ = true;
    done = std::exchange(pending_, nullptr);
    for (SlabPtr& slab : valid_) pool_->abandon(std::move(slab));
    valid_.clear();
  }
  stage_->cancel();
  for (PacketBatch& batch : group_) pool_->give(std::move(batch.slab));
  group_.clear();
  if (done) done(Error{Code::kCancelled, "the compressor was closed"});
}

}  // namespace capfleet
