// The engine's PcapngRecords and MergedInterfaces as JavaScript objects, which run entirely on the
// JavaScript thread. pcapng-records.ts checks the arguments.
#pragma once

#include <napi.h>

#include "merge/merged_interfaces.h"
#include "merge/pcapng_records.h"

namespace capfleet::binding {

/// new PcapngRecords(). Methods:
///   show(bytes: Uint8Array): void               records are written into them
///   advance(): number                           PcapngRecords::State
///   recordsAt(): number | undefined             where in the bytes; undefined: elsewhere
///   recordsBytes(): number
///   records(): Buffer                           a copy
///   addInterface(tag: number): void
///   block(): Buffer                             a copy
///   statisticsTag(): number
///   remarked(): {tag: number, ns: bigint}
///   failure(): string
///   isBetweenBlocks(): boolean
class PcapngRecordsWrap : public Napi::ObjectWrap<PcapngRecordsWrap> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit PcapngRecordsWrap(const Napi::CallbackInfo& info) : ObjectWrap(info) {}

 private:
  void show(const Napi::CallbackInfo& info);
  Napi::Value advance(const Napi::CallbackInfo& info);
  Napi::Value recordsAt(const Napi::CallbackInfo& info);
  Napi::Value recordsBytes(const Napi::CallbackInfo& info);
  Napi::Value records(const Napi::CallbackInfo& info);
  void addInterface(const Napi::CallbackInfo& info);
  Napi::Value block(const Napi::CallbackInfo& info);
  Napi::Value statisticsTag(const Napi::CallbackInfo& info);
  Napi::Value remarked(const Napi::CallbackInfo& info);
  Napi::Value failure(const Napi::CallbackInfo& info);
  Napi::Value isBetweenBlocks(const Napi::CallbackInfo& info);

  Napi::ObjectReference shown_;  ///< the bytes that records_ reads
  std::span<uint8_t> bytes_;     ///< the same
  PcapngRecords records_;
};

/// new MergedInterfaces(). Methods:
///   add(linkType: number, description: Uint8Array): number   the identifier
///   describe(id: number, description: Uint8Array): void
///   remark(id: number, atNs: bigint, options: Uint8Array): void
///   at(id: number): {number: number | undefined, packets: number, duplicates: number}
class MergedInterfacesWrap : public Napi::ObjectWrap<MergedInterfacesWrap> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit MergedInterfacesWrap(const Napi::CallbackInfo& info) : ObjectWrap(info) {}

  MergedInterfaces& interfaces() { return interfaces_; }

 private:
  Napi::Value add(const Napi::CallbackInfo& info);
  void describe(const Napi::CallbackInfo& info);
  void remark(const Napi::CallbackInfo& info);
  Napi::Value at(const Napi::CallbackInfo& info);

  MergedInterfaces interfaces_;
};

}  // namespace capfleet::binding
