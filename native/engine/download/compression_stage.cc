#include "download/compression_stage.h"

#include <algorithm>
#include <cassert>

namespace capfleet {

BodyPart BodyPart::of(PacketBatch batch) {
  const size_t bytes = batch.slab->size;
  return {std::move(batch.slab), batch.packets, bytes, batch.firstNs, batch.lastNs, batch.excluded};
}

struct CompressionStage::Job {
  enum class State { kWaiting, kRunning, kDone };

  State state = State::kWaiting;
  std::vector<SlabPtr> raw;
  std::vector<SlabPtr> out;  ///< in order; once done, without empty ones
  BodyPart summary;          ///< totals of all packets, without a slab
  std::optional<Error> error;
};

namespace {

uint32_t slabLimit(Codec codec, const GroupLimits& limits) {
  return limits.atOnce * compressedSlabs(codec, limits.slabs) + kHeldParts;
}

}  // namespace

CompressionStage::CompressionStage(Compression compression, GroupLimits limits,
                                   WorkerPool::Queue queue, std::shared_ptr<BufferPool> pool,
                                   Callbacks callbacks)
    : compression_(compression),
      limits_(limits),
      slabs_(slabLimit(compression.codec, limits)),
      queue_(std::move(queue)),
      pool_(std::move(pool)),
      callbacks_(std::move(callbacks)) {}

void CompressionStage::submit(std::vector<PacketBatch> group) {
  assert(!group.empty() && group.size() <= limits_.slabs);
  auto job = std::make_shared<Job>();
  job->summary.firstNs = group.front().firstNs;
  job->summary.lastNs = group.back().lastNs;
  for (PacketBatch& batch : group) {
    job->summary.packets += batch.packets;
    job->summary.excluded += batch.excluded;
    job->summary.bytes += batch.slab->size;
    job->raw.push_back(std::move(batch.slab));
  }
  {
    const std::lock_guard lock(mutex_);
    if (!isCancelled_) {
      jobs_.push_back(std::move(job));
      startJobs();
      return;
    }
  }
  for (SlabPtr& slab : job->raw) callbacks_.giveRaw(std::move(slab));
}

/// Starts waiting jobs in order, while slabs for their results are free. Called with the lock held.
void CompressionStage::startJobs() {
  for (const auto& job : jobs_) {
    if (job->state != Job::State::kWaiting) continue;
    const uint32_t needed = compressedSlabs(compression_.codec, job->raw.size());
    if (slabsInUse_ > 0 && slabsInUse_ + needed > slabs_) return;
    slabsInUse_ += needed;
    for (uint32_t i = 0; i < needed; i++) job->out.push_back(pool_->take());
    job->state = Job::State::kRunning;
    auto task = [self = shared_from_this(), job] { self->run(job); };
    if (isSlow(compression_)) {
      queue_.postSlow(std::move(task));
    } else {
      queue_.post(std::move(task));
    }
  }
}

void CompressionStage::run(const std::shared_ptr<Job>& job) {
  std::unique_ptr<SlabCompressor> compressor = takeCompressor();
  const Status status = compressor->compress(job->raw, job->out, isCancelled_);
  for (SlabPtr& slab : job->raw) callbacks_.giveRaw(std::move(slab));
  job->raw.clear();
  {
    const std::lock_guard lock(mutex_);
    // The tables of slow ones are large, and creating them takes little time compared with a group.
    if (!isSlow(compression_)) idleCompressors_.push_back(std::move(compressor));
    finish(*job, status);
  }
  callbacks_.onChange();
}

std::unique_ptr<SlabCompressor> CompressionStage::takeCompressor() {
  {
    const std::lock_guard lock(mutex_);
    if (!idleCompressors_.empty()) {
      auto compressor = std::move(idleCompressors_.back());
      idleCompressors_.pop_back();
      return compressor;
    }
  }
  return makeCompressor(compression_);
}

/// Called with the lock held.
void CompressionStage::finish(Job& job, const Status& status) {
  job.state = Job::State::kDone;
  if (isCancelled_ || !status) {
    dropSlabs(job.out);
    if (!status) job.error = status.error();
    return;
  }
  const auto unused = std::find_if(job.out.begin(), job.out.end(),
                                   [](const SlabPtr& slab) { return slab->size == 0; });
  std::vector<SlabPtr> rest(unused, job.out.end());
  job.out.erase(unused, job.out.end());
  dropSlabs(rest);
  startJobs();
}

std::optional<BodyPart> CompressionStage::take() {
  const std::lock_guard lock(mutex_);
  if (jobs_.empty() || jobs_.front()->state != Job::State::kDone || jobs_.front()->error) {
    return std::nullopt;
  }
  Job& job = *jobs_.front();
  BodyPart part;
  // Packets count with the part that completes them.
  if (job.out.size() == 1) part = job.summary;
  part.slab = std::move(job.out.front());
  job.out.erase(job.out.begin());
  if (job.out.empty()) jobs_.pop_front();
  return part;
}

void CompressionStage::give(SlabPtr slab) {
  std::vector<SlabPtr> one{std::move(slab)};
  const std::lock_guard lock(mutex_);
  dropSlabs(one);
  if (!isCancelled_) startJobs();
}

/// Called with the lock held.
void CompressionStage::dropSlabs(std::vector<SlabPtr>& slabs) {
  for (SlabPtr& slab : slabs) pool_->give(std::move(slab));
  slabsInUse_ -= static_cast<uint32_t>(slabs.size());
  slabs.clear();
}

bool CompressionStage::isIdle() const {
  const std::lock_guard lock(mutex_);
  return jobs_.empty();
}

std::optional<Error> CompressionStage::error() const {
  const std::lock_guard lock(mutex_);
  if (jobs_.empty()) return std::nullopt;
  return jobs_.front()->error;
}

void CompressionStage::cancel() {
  std::vector<SlabPtr> raw;
  {
    const std::lock_guard lock(mutex_);
    isCancelled_ = true;
    for (const auto& job : jobs_) {
      if (job->state == Job::State::kDone) dropSlabs(job->out);
      if (job->state != Job::State::kWaiting) continue;
      raw.insert(raw.end(), job->raw.begin(), job->raw.end());
    }
    jobs_.clear();
  }
  for (SlabPtr& slab : raw) callbacks_.giveRaw(std::move(slab));
}

}  // namespace capfleet
