#include "capture/stream_writer.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "store/block_checksum.h"
#include "store/segment_folder.h"
#include "store/segment_path.h"

namespace capfleet {

void StreamWriter::add(std::unique_ptr<CaptureBlock> block) {
  assert(!block->isEmpty());
  heldBytes_ += block->entry().bytes;
  held_.push_back(std::move(block));
}

Status StreamWriter::write() {
  if (isDamaged_) {
    if (auto status = leaveDamaged(); !status) return status;
  }
  auto status = writeHeld();
  isDamaged_ = !status;
  return status;
}

Status StreamWriter::writeHeld() {
  while (written_ < held_.size()) {
    CaptureBlock& block = *held_[written_];
    BlockEntry entry = block.entry();
    if (auto status = makeRoom(entry.bytes); !status) return status;
    if (auto status = segment_->write(block.bytes()); !status) return status;
    // The bytes are in the cache now; they have not been used for longer before.
    entry.checksum = blockChecksum(block.bytes());
    segment_->addBlock(entry, block.tallyRows(), block.bytes());
    written_ += 1;
  }
  return ok();
}

Status StreamWriter::makeRoom(uint32_t blockBytes) {
  if (segment_ && segment_->bytes() > kPcapFileHeaderBytes &&
      segment_->bytes() + blockBytes > options_.segmentBytes) {
    if (auto status = endSegment(); !status) return status;
  }
  return segment_ ? ok() : openSegment();
}

Status StreamWriter::openFolder(const std::string& folder) {
  if (hasFolder_) return ok();
  if (auto status = makeDirectory(folder); !status) return status;
  if (auto status = syncDirectory(options_.captureFolder); !status) return status;
  const auto newest = newestSegment(folder);
  if (!newest) return newest.error();
  lastNumber_ = std::max(options_.lastNumber, newest->number);
  hasFolder_ = true;
  return ok();
}

Status StreamWriter::openSegment() {
  const std::string folder = portFolder(options_.captureFolder, options_.port);
  if (auto status = openFolder(folder); !status) return status;
  auto made = SegmentFiles::create({folder, options_.port, options_.header}, lastNumber_ + 1);
  if (!made) return made.error();
  segment_ = std::move(*made);
  lastNumber_ += 1;
  return ok();
}

Status StreamWriter::endSegment() {
  if (auto status = commitHeld(); !status) return status;
  finished_.push_back(segment_->finish());
  segment_.reset();
  return ok();
}

Status StreamWriter::commit() {
  if (auto status = write(); !status) return status;
  if (!segment_) return ok();
  auto status = commitHeld();
  isDamaged_ = !status;
  return status;
}

Status StreamWriter::commitHeld() {
  if (auto status = segment_->commit(); !status) return status;
  for (; written_ > 0; --written_) {
    heldBytes_ -= held_.front()->entry().bytes;
    safe_.push_back(std::move(held_.front()));
    held_.pop_front();
  }
  return ok();
}

Status StreamWriter::close() {
  if (auto status = commit(); !status) return status;
  if (!segment_) return ok();
  finished_.push_back(segment_->finish());
  segment_.reset();
  return ok();
}

Status StreamWriter::leaveDamaged() {
  if (segment_) {
    if (auto status = segment_->cutBack(); !status) return status;
    if (segment_->committed().packets > 0) {
      finished_.push_back(segment_->finish());
    } else {
      lastNumber_ -= 1;
    }
    segment_.reset();
  }
  // Remains of a segment without committed blocks. They belong to nobody else, because the number
  // was free.
  if (hasFolder_) {
    const std::string folder = portFolder(options_.captureFolder, options_.port);
    const std::string segment = groupedSegmentPath(folder, lastNumber_ + 1);
    if (auto status = SegmentFiles::remove(segment); !status) return status;
  }
  written_ = 0;
  isDamaged_ = false;
  return ok();
}

CaptureBlocks StreamWriter::takeSafe() { return std::exchange(safe_, {}); }

CaptureBlocks StreamWriter::giveUp() {
  // If the disk refuses even this, its entries may describe blocks that count as lost.
  if (!leaveDamaged() && segment_ && segment_->committed().packets > 0) {
    finished_.push_back(segment_->finish());
  }
  segment_.reset();
  isDamaged_ = false;
  written_ = 0;
  heldBytes_ = 0;
  CaptureBlocks lost(std::make_move_iterator(held_.begin()), std::make_move_iterator(held_.end()));
  held_.clear();
  return lost;
}

}  // namespace capfleet
