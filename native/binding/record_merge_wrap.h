// The engine's RecordInput and RecordMerge as JavaScript objects, which run entirely on the
// JavaScript thread. record-merge.ts checks the arguments.
#pragma once

#include <napi.h>

#include <memory>
#include <optional>
#include <vector>

#include "merge/record_input.h"
#include "merge/record_merge.h"
#include "merge/sort_window.h"

namespace capfleet::binding {

/// new RecordInput({nanoseconds: boolean, widens: boolean, bigEndian: boolean, alignNs: bigint,
/// marksTail: boolean, marksAll: boolean, isTagged: boolean, sortWindow: {ns: bigint, bytes:
/// number} | undefined}). Methods:
///   show(bytes: Uint8Array): boolean   whether a record is at hand now
///   end(): boolean                     the same; the stream has ended
///   breakOff(): boolean                the same; drops what is not sorted here
///   forget(): void
///   hasRecord(): boolean
///   skip(count: number, isHashed: boolean): number
///   skippedHash(): bigint              of all records skipped with isHashed
///   impossibleLength(): number | undefined
///   partialBytes(): number
///   untaken(): Buffer
///   figures(): RecordFigures
///   arrived(): ArrivedRecords
class RecordInputWrap : public Napi::ObjectWrap<RecordInputWrap> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit RecordInputWrap(const Napi::CallbackInfo& info);

  /// The input that a merge uses.
  RecordInput& input() { return window_ ? window_->records() : stream_; }

 private:
  Napi::Value show(const Napi::CallbackInfo& info);
  Napi::Value end(const Napi::CallbackInfo& info);
  Napi::Value breakOff(const Napi::CallbackInfo& info);
  void forget(const Napi::CallbackInfo& info);
  Napi::Value hasRecord(const Napi::CallbackInfo& info);
  Napi::Value skip(const Napi::CallbackInfo& info);
  Napi::Value skippedHash(const Napi::CallbackInfo& info);
  Napi::Value impossibleLength(const Napi::CallbackInfo& info);
  Napi::Value partialBytes(const Napi::CallbackInfo& info);
  Napi::Value untaken(const Napi::CallbackInfo& info);
  Napi::Value figures(const Napi::CallbackInfo& info);
  Napi::Value arrived(const Napi::CallbackInfo& info);

  Napi::ObjectReference shown_;  ///< the bytes that stream_ reads
  RecordInput stream_;
  std::optional<SortWindow> window_;
  uint64_t skippedHash_ = 0;
};

/// new RecordMerge(inputs: RecordInput[], {maxSpanNs, maxPackets, maxBytes, dedupNs: bigint |
/// undefined, linkType: number, sliceBytes: number | undefined, toMicroseconds: boolean,
/// pcapng: {interfaces: MergedInterfaces, ofInputs: (number | undefined)[], closingBytes: number} |
/// undefined}). Methods:
///   advance(output: Uint8Array, written: number): number   as it has grown
///   state(): number                                        RecordMerge::State after that
///   dryInput(): number
///   refilled(): void
///   nextNs(): bigint | undefined
///   dropped(input: number): {packets: number, bytes: number}
class RecordMergeWrap : public Napi::ObjectWrap<RecordMergeWrap> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit RecordMergeWrap(const Napi::CallbackInfo& info);

 private:
  Napi::Value advance(const Napi::CallbackInfo& info);
  Napi::Value state(const Napi::CallbackInfo& info);
  Napi::Value dryInput(const Napi::CallbackInfo& info);
  void refilled(const Napi::CallbackInfo& info);
  Napi::Value nextNs(const Napi::CallbackInfo& info);
  Napi::Value dropped(const Napi::CallbackInfo& info);

  Napi::ObjectReference list_;     ///< the inputs that merge_ reads
  Napi::ObjectReference options_;  ///< with the interfaces that it writes
  RecordMerge::State state_ = RecordMerge::State::kReady;
  std::unique_ptr<RecordMerge> merge_;
};

}  // namespace capfleet::binding
